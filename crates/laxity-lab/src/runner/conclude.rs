//! The results of a whole scenario: all variants, the verdict and the exit code.

use std::collections::BTreeMap;

use laxity::calibrate;
use laxity_model::Span;
use laxity_model::admission::Supply;
use laxity_model::verify::contract::Outcome;

use super::again::MadeAgain;
use super::provenance::provenance;
use super::{RunDone, aggregate, proposal};
use crate::each_once::each_once;
use crate::evidence::results::{
    FILE_VERSION, Machine, RunResults, Skipped, Speed, SummaryJson, VariantResults,
};
use crate::exit;
use crate::scenario::Resolved;

/// What is to be known of a scenario's runs besides the runs.
pub struct Circumstances {
    /// What ran them: `linux 6.18.44`.
    pub host: String,
    /// Whether that is the machine itself.
    pub live: bool,
    /// What of it admission had.
    pub supply: Supply,
    /// Receivers in each modem, by its name; one where it has no entry.
    pub receivers: BTreeMap<String, u32>,
    /// Variants of which a run failed, by their place in the scenario, and why; they were not run again.
    pub failed: BTreeMap<usize, String>,
    /// What was made again, as the machine had spoiled it.
    pub made_again: MadeAgain,
    /// What the reader should know first.
    pub notices: Vec<String>,
}

impl Circumstances {
    /// The grain at which the kernel notices that a budget is used up.
    pub(super) fn tick(&self) -> Span {
        proposal::tick(&self.supply)
    }
}

/// The results of all runs, judged; `skipped` are the variants that were not run.
pub fn conclude(
    resolved: &Resolved,
    runs: &[RunDone],
    mut skipped: Vec<Skipped>,
    circumstances: Circumstances,
) -> RunResults {
    let all = 0..resolved.variants.len();
    let variants: Vec<VariantResults> = all
        .filter_map(|index| aggregate::variant(resolved, index, runs, &circumstances))
        .collect();
    let unmade = circumstances.failed.iter().filter_map(|(index, reason)| {
        let name = &resolved.variants[*index].name;
        let is_told = variants.iter().any(|variant| variant.name == *name);
        (!is_told).then(|| Skipped {
            name: name.clone(),
            reason: reason.clone(),
            has_failed: true,
        })
    });
    let unmade: Vec<Skipped> = unmade.collect();
    let (verdict, exit_code) = overall(&variants, &unmade);
    skipped.extend(unmade);
    let machine = circumstances.live.then(|| Machine {
        speed: Speed::of(runs.iter().flat_map(|run| run.speed.iter().copied())),
        ..machine(steal_ns(runs.iter().map(|run| run.record.steal)))
    });
    RunResults {
        file_version: FILE_VERSION,
        laxity_version: env!("CARGO_PKG_VERSION").into(),
        scenario: resolved.title.clone(),
        file: resolved.file.clone(),
        contract: contracts(resolved),
        provenance: provenance(resolved, &variants, &circumstances.host, machine.as_ref()),
        host: circumstances.host,
        seed: resolved.seed,
        machine,
        notices: circumstances.notices,
        variants,
        skipped,
        verdict,
        exit_code,
    }
}

/// The names of all contracts, in the order of their first use.
fn contracts(resolved: &Resolved) -> String {
    let contracts = resolved.variants.iter().flat_map(|v| &v.contracts);
    let names = each_once(contracts.map(|(contract, _)| contract.name.as_str()));
    names.join(", ")
}

/// Violated if any variant that can be judged is not as expected, whatever became of others; an error if something failed without which a variant
/// cannot be judged, and that is not the machine's doing, or was not made; inconclusive if all that is not as expected may be the machine's doing; met if every variant came as the
/// scenario expects, and at least one was judged by a contract.
fn overall(variants: &[VariantResults], unmade: &[Skipped]) -> (SummaryJson, u8) {
    let surprising = variants.iter().filter(|variant| !variant.as_expected);
    let (mut judged, has_failed) = (
        surprising.clone().filter(|one| one.failures.is_empty()),
        variants.iter().any(VariantResults::has_failed) || !unmade.is_empty(),
    );
    let (result, exit_code) = if judged.any(|one| !one.is_open()) {
        (Some(Outcome::Violated), exit::VIOLATED)
    } else if has_failed {
        (Some(Outcome::Inconclusive), exit::ERROR)
    } else if surprising.clone().next().is_some() {
        (Some(Outcome::Inconclusive), exit::INCONCLUSIVE)
    } else {
        let is_judged = variants.iter().any(|one| one.verdict.result.is_some());
        (is_judged.then_some(Outcome::Met), exit::MET)
    };
    let convicts = result == Some(Outcome::Violated);
    let mut surprising: Vec<&VariantResults> = surprising.collect();
    surprising.sort_by_key(|variant| variant.is_open());
    let reasons = surprising.into_iter().map(|variant| {
        let why: Vec<String> = variant.unexpected().collect();
        // Beside those that convict, who merely cannot be judged is told apart.
        let open = if convicts && variant.is_open() {
            " (cannot be told)"
        } else {
            ""
        };
        format!("{}{open}: {}", variant.name, why.join("; "))
    });
    let unmade = unmade.iter();
    let unmade = unmade.map(|one| format!("{}: {}", one.name, one.reason));
    let reasons = reasons.chain(unmade).collect();
    (SummaryJson { result, reasons }, exit_code)
}

/// Time that the hypervisor took away during all of these runs, as the kernel counts it; `None` if that is not known of one.
pub fn steal_ns(runs: impl IntoIterator<Item = Option<Span>>) -> Option<u64> {
    let steal = runs.into_iter();
    steal.map(|steal| steal.map(Span::as_nanos)).sum()
}

/// This machine, as far as its timing depends on it, which lost so much to its hypervisor; `None` if that is not known.
pub fn machine(steal_ns: Option<u64>) -> Machine {
    let here = calibrate::Circumstances::now(0);
    let known = |text: String| (!text.is_empty()).then_some(text);
    Machine {
        kernel: here.kernel,
        cpu_model: here.model,
        cpus: here.processors,
        governor: known(here.governor),
        clock_source: here.clock_source,
        hypervisor: known(here.hypervisor),
        steal_ns,
        speed: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_read_of_one_run_is_not_known_of_all() {
        let ns = |ns| Some(Span::from_nanos(ns));
        assert_eq!(steal_ns([ns(3), ns(4)]), Some(7));
        assert_eq!(steal_ns([ns(3), None]), None);
    }
}
