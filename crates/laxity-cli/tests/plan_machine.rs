//! `laxity plan --machine`: the machine file that bounds on Linux rest on.

mod common;

use common::{Bench, assert_code, assert_says, stderr, stdout, unbroken};
use laxity::doctor::rights::{self, Right};
use serde_json::Value;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("this is JSON")
}

const LIGHT: &str = "name,cost_us,period_ms\na,1000,10\nb,2000,20\n";
/// As it was measured on another day.
const MEASURED: &str = include_str!("../../../docs/results/epyc-2-processors/machine.toml");
const TASK: &str = "[tasks.one]\nkind = \"periodic\"\nperiod = \"10ms\"\nservice = \"1ms\"\npriority = 20\n[variants.v]\n";

/// On which machine a file was measured is said beside what rests on it; without it nothing does, if that is asked.
#[test]
fn the_machine_file_of_a_plan_is_named_or_left_out() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let bench = Bench::new();
    bench.write("s.toml", TASK);
    let edited = MEASURED.replace("model = \"AMD EPYC\"", "model = \"ARM Cortex\"");
    bench.write("arm.toml", &edited);
    let with = |file: &str, json: &str| {
        let output = bench.run(&["plan", "--on=linux", "--machine", file, json, "s.toml"]);
        assert_code(&output, 0);
        output
    };
    let said = unbroken(&stdout(&with("arm.toml", "--json=other.json")));
    assert_says(&said, &["measured on another machine: ARM Cortex, here "]);
    let other = json(&bench.read("other.json"));
    let elsewhere = other["machine"]["elsewhere"].as_str().expect("it is said");
    assert_says(
        elsewhere,
        &["measured on another machine: ARM Cortex, here "],
    );
    assert!(other["variants"][0]["lines"][0]["usual_bound_ns"].is_u64());
    let said = unbroken(&stdout(&with("none", "--json=none.json")));
    assert_says(&said, &["as `--machine none` asks"]);
    let without = json(&bench.read("none.json"));
    assert!(without.get("machine").is_none());
    assert!(
        without["variants"][0]["lines"][0]
            .get("usual_bound_ns")
            .is_none()
    );
}

/// What packets take is the one thing that a twin takes from a file, and only from one that is named.
#[test]
fn a_twin_takes_what_packets_take_from_the_file_that_is_named() {
    let bench = Bench::new();
    bench.write("s.toml", TASK);
    let network = "[quick]\nidle = \"0.2s\"\n[interfaces.lan]\n[flows.video]\nkind = \"video\"\n[clients.viewer]\ninterface = \"lan\"\nflows = [\"video\"]\nplacement = \"thread 24\"\n[variants.one]\nclients = [\"viewer\"]\n";
    bench.write("net.toml", network);
    let packets = "[packets.packet]\nwake = \"9us\"\nreceive = \"2us\"\nreceive_byte_ps = 70\nsend = \"3us\"\nsend_byte_ps = 50\n";
    bench.write("machine.toml", &format!("{MEASURED}{packets}"));
    let words = [
        "`interrupt` 9us and `packet` 3us and 70 ps a byte",
        "is calibrated",
    ];
    for arguments in [
        &["plan", "--on=twin", "--machine=machine.toml", "net.toml"][..],
        &["run", "--on=twin", "--machine=machine.toml", "net.toml"],
    ] {
        let said = unbroken(&stdout(&bench.run(arguments)));
        assert_says(&said, &words);
    }
    let said = unbroken(&stdout(&bench.run(&["plan", "--on=twin", "net.toml"])));
    assert!(
        !said.contains("is calibrated") && !said.contains("is assumed"),
        "{said}"
    );
    let output = bench.run(&["run", "--on=twin", "--machine=machine.toml", "s.toml"]);
    assert_code(&output, 64);
    assert_says(&stderr(&output), &["there is none"]);
}

#[test]
fn a_machine_file_that_a_plan_names_must_be_right_and_of_use() {
    let bench = Bench::new();
    bench.write("s.toml", TASK);
    bench.write("light.csv", LIGHT);
    bench.write("bad.toml", "bad");
    let cases: [(&[&str], &[&str]); 3] = [
        (
            &["--machine=none", "light.csv"],
            &["--machine is for scenarios"],
        ),
        (&["--machine=none", "--on=twin", "s.toml"], &["--on linux"]),
        (&["--machine=-", "-"], &["not both"]),
    ];
    for (arguments, words) in cases {
        let output = bench.run(&[&["plan"], arguments].concat());
        assert_code(&output, 64);
        assert_says(&unbroken(&stderr(&output)), words);
    }
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let here = ["plan", "--on=linux", "s.toml"];
    let named = bench.run(&[&here[..], &["--machine=bad.toml"]].concat());
    assert_code(&named, 64);
    assert_says(
        &stderr(&named),
        &["not TOML", " --> bad.toml:1:4", "1 | bad\n"],
    );
    let missing = bench.run(&[&here[..], &["--machine=nowhere.toml"]].concat());
    assert_code(&missing, 64);
    // What was merely left there is told in a line, and the plan is made without.
    std::fs::create_dir(bench.path("laxity")).expect("a directory");
    bench.write("laxity/machine.toml", "bad");
    let mut command = bench.command();
    command.args(here).env("XDG_CONFIG_HOME", bench.path("."));
    let found = command.output().expect("laxity starts");
    assert_code(&found, 0);
    let said = unbroken(&stdout(&found));
    assert_says(&said, &["machine.toml:1:4: not TOML: key with no value"]);
    assert!(!said.contains("-->"), "{said}");
}
