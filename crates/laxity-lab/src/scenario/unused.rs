//! What a file declares and no variant has: without a word it would pass for what was run and judged.

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

/// The tasks that take part in no variant and the executors that have none there, a sentence for each.
pub(super) fn parts(
    tasks: &Names<ResolvedTask>,
    executors: &Names<Hosting>,
    variants: &[ResolvedVariant],
) -> Vec<String> {
    let at_work = || variants.iter().flat_map(|variant| &variant.tasks);
    let tasks = tasks.iter().map(|declared| &declared.name);
    let tasks = tasks.filter(|name| at_work().all(|task| task.name != **name));
    let tasks = tasks.map(|name| format!("the task `{name}` takes part in no variant"));
    let executors = executors.iter().map(|declared| &declared.name);
    let executors = executors.filter(|name| at_work().all(|task| task.holder() != *name));
    let executors =
        executors.map(|name| format!("the executor `{name}` has no task in any variant"));
    tasks.chain(executors).collect()
}
