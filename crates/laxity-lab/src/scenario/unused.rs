//! What a file declares and no variant has: without a word it would pass for what was run and judged.

use super::network::Networks;
use super::reader::{Section, shortened};
use super::sections::Names;
use super::tasks::Hosting;
use super::types::{ResolvedTask, ResolvedVariant};
use laxity_model::verify::contract::Contract;

/// Reports the file's own contracts by which no variant is judged.
pub(super) fn contracts(root: &Section<'_>, all: &Names<Contract>, variants: &[ResolvedVariant]) {
    let judges = |name: &str| {
        let mut judged = variants.iter().flat_map(ResolvedVariant::judged_by);
        judged.any(|contract| contract.name == name)
    };
    // Those that are built in stand nowhere in the file.
    let own = all.iter().filter(|declared| !declared.place.is_empty());
    for declared in own.filter(|declared| !judges(&declared.name)) {
        let name = shortened(&declared.name);
        let cause = format!("the contract `{name}` judges no variant");
        let remedy = format!(
            "name it in a variant, or under [defaults], where what it limits takes part: contracts = [\"{name}\"]"
        );
        root.findings.error(&declared.place, cause, remedy);
    }
}

/// The tasks, clients and flows that take part in no variant and the executors that have no task there, a sentence for each.
pub(super) fn parts(
    tasks: &Names<ResolvedTask>,
    executors: &Names<Hosting>,
    networks: &Networks,
    variants: &[ResolvedVariant],
) -> Vec<String> {
    let at_work = || variants.iter().flat_map(|variant| &variant.tasks);
    let idle = |what: &'static str, names: Vec<&String>| {
        let idle = names.into_iter();
        let idle = idle.filter(|name| at_work().all(|task| task.name != **name));
        idle.map(|name| format!("the {what} `{name}` takes part in no variant"))
            .collect::<Vec<_>>()
    };
    let tasks = idle("task", named(tasks));
    let clients = idle("client", named(&networks.clients));
    let flows = idle("flow", named(&networks.flows));
    let executors = executors.iter().map(|declared| &declared.name);
    let executors = executors.filter(|name| at_work().all(|task| task.holder() != *name));
    let executors =
        executors.map(|name| format!("the executor `{name}` has no task in any variant"));
    let of_networks = clients.into_iter().chain(flows);
    tasks
        .into_iter()
        .chain(executors)
        .chain(of_networks)
        .collect()
}

fn named<T>(all: &Names<T>) -> Vec<&String> {
    all.iter().map(|declared| &declared.name).collect()
}
