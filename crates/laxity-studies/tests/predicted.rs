//! What the twin of a Linux machine predicts for the soft modem's scenario, to the letter.

use laxity_lab::bench::Request;
use laxity_lab::runner::Silent;
use laxity_lab::{machine_file, sheet};
use laxity_studies::prediction;

#[test]
fn what_a_twin_of_linux_predicts() {
    let file = "docs/results/epyc-2-processors/machine.toml";
    let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let measured = machine_file::parse(&text, file).expect("a machine file");
    let request = Request {
        figures: Vec::new(),
        live: false,
        threads: 0,
        seed: 1,
        repeats: Some(1),
        machine: Some(measured.machine),
    };
    let predicted = (prediction::STUDY.run)(&request, &mut Silent).expect("a sheet");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots-of-scenarios");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let table = sheet::text::render(&predicted);
    settings.bind(|| insta::assert_snapshot!("prediction.linux.table", table));
}
