//! Every figure of the results says where it comes from, and nothing else does.

use std::collections::BTreeSet;

use laxity_lab::evidence::results::{Provenance, RunResults};
use laxity_lab::report::page;
use laxity_lab::report::run::report;
use serde_json::Value;

use crate::common::run;

const PLAYER: &str = "[devices.player]\nkind = \"audio\"\nload = \"10 %\"\n";
const MODEM: &str = "[devices.modem]\nkind = \"soft-modem\"\n";

/// Of a variant with these components.
fn results(components: &str) -> RunResults {
    let placed = ["modem", "player"].map(|name| match components.contains(name) {
        true => format!("{name} = \"thread 24\"\n"),
        false => String::new(),
    });
    run(&format!(
        "[quick]\nidle = \"1s\"\n{components}[variants.v]\ncontracts = []\n[variants.v.placement]\n{}",
        placed.concat()
    ))
}

/// Whether a field of a component tells what it did, in numbers, and is there: names and words are no figures.
fn is_figure(value: &Value) -> bool {
    match value {
        Value::Null | Value::String(_) => false,
        Value::Array(all) => !all.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

/// The names of all figures that components have, each with the component's, whatever they are.
fn figures(results: &RunResults) -> BTreeSet<(String, String)> {
    let json: Value = serde_json::from_slice(&results.to_json()).expect("JSON");
    let variants = json["variants"].as_array().expect("variants").iter();
    let subjects = variants.flat_map(|one| one["subjects"].as_array().expect("subjects"));
    let mut found = BTreeSet::new();
    for subject in subjects {
        let name = subject["name"].as_str().expect("a name");
        let all = subject.as_object().expect("fields").iter();
        let own = all.filter(|(field, value)| *field != "quantities" && is_figure(value));
        let observed = subject["quantities"].as_object().expect("quantities");
        let fields = own.map(|(field, _)| field).chain(observed.keys());
        found.extend(fields.map(|field| (name.to_owned(), field.clone())));
    }
    found
}

/// Where a component has a figure from.
fn of<'r>(results: &'r RunResults, name: &str, figure: &str) -> Option<&'r Provenance> {
    let own = results.provenance.get(&format!("{name}.{figure}"));
    own.or_else(|| results.provenance.get(figure))
}

/// What is told of variants, and a modem's two: all that it lost in either direction, and what that rests on.
const OTHERS: [&str; 5] = [
    "disturbed",
    "events_lost",
    "events_recorded",
    "output_lead",
    "samples_lost",
];

#[test]
fn every_figure_of_a_component_says_where_it_comes_from_and_no_other_is_named() {
    let tasks = "[executors.all]\npolicy = \"edf\"\nplacement = \"reserved 4ms/8ms\"\n\
        [tasks.a]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"2ms\"\non = \"all\"\n\
        [tasks.b]\nkind = \"periodic\"\nperiod = \"40ms\"\nservice = \"2ms\"\ndeadline = \"30ms\"\non = \"all\"\n";
    for components in [[MODEM, PLAYER].concat().as_str(), PLAYER, tasks] {
        let results = results(components);
        let figures = figures(&results);
        assert!(!figures.is_empty());
        for (name, figure) in &figures {
            let from = of(&results, name, figure);
            assert!(
                from.is_some(),
                "{figure} of {name}: {:?}",
                results.provenance
            );
        }
        for named in results.provenance.keys() {
            let is_there = figures
                .iter()
                .any(|(name, figure)| named == figure || *named == format!("{name}.{figure}"));
            assert!(is_there || OTHERS.contains(&named.as_str()), "{named}");
        }
        let has_modem = components.contains(MODEM);
        assert_eq!(results.provenance.contains_key("output_lead"), has_modem);
    }
}

/// What the study's table says of the modem, it does not say of the player beside it.
#[test]
fn what_components_have_from_different_sources_is_named_by_each() {
    let results = results(&[MODEM, PLAYER].concat());
    for figure in ["processing_ns", "cpu_share"] {
        assert!(!results.provenance.contains_key(figure));
        let modem = of(&results, "modem", figure);
        assert!(
            matches!(modem, Some(Provenance::Calibrated { .. })),
            "{modem:?}"
        );
        let player = of(&results, "player", figure);
        assert!(
            matches!(player, Some(Provenance::Charged { .. })),
            "{player:?}"
        );
    }
    assert!(results.provenance.contains_key("samples_underrun"));
    let page = page::render(&report(&results, Vec::new())).expect("a page");
    assert!(page.contains("player: cpu share") && page.contains("modem: cpu share"));
}
