//! Beside those to whom somebody outside gave a priority.

use super::*;

/// Slots under a rogue that takes nearly all give a modem nothing that is sure, and the driver is named; as is who is below the rogue, too.
#[test]
fn a_modem_whose_slots_are_taken_by_a_rogue_is_named() {
    let text = "[devices.modem]\nkind = \"soft-modem\"\n[tasks.rogue]\nkind = \"rogue\"\nburst = \"100ms\"\nevery = \"250ms\"\nfifo = 90\n[tasks.cothread]\nkind = \"periodic\"\nperiod = \"1ms\"\npriority = 26\n[variants.v]\non = \"live\"\nplacement = \"reserved 2.35ms/8ms\"\n";
    let said = headline(with_lines(text, |_| {}));
    let named = "`modem thread` (connected) by more and more";
    let missed = format!("v: admitted; 2 deadlines can be missed: {named}");
    assert!(said.starts_with(&missed), "{said}");
    assert!(said.contains(", `cothread`; not sure"), "{said}");
}

/// Whoever somebody outside ranked is counted by all that is said of a modem, or by nothing.
/// A thread of priority 31 has `SCHED_FIFO` 95.
#[test]
fn a_rogue_above_slots_goes_before_none_that_the_kernel_puts_above_it() {
    for (fifo, waits) in [
        (79, false),
        (85, false),
        (94, false),
        (96, true),
        (99, true),
    ] {
        let text = format!(
            "[tasks.rogue]\nkind = \"rogue\"\nburst = \"3ms\"\nevery = \"10ms\"\nfifo = {fifo}\n[tasks.top]\nkind = \"periodic\"\nperiod = \"10ms\"\nservice = \"1ms\"\npriority = 31\n[variants.v]\non = \"live\"\ntasks = [\"rogue\", \"top\"]\n"
        );
        let plan = with_lines(&text, |_| {});
        let line = plan.lines.iter().find(|line| line.name == "top");
        let bound = line.and_then(|line| line.bound_ns).expect("a bound");
        assert_eq!(bound > 3_000_000, waits, "{fifo}: {bound}");
    }
}

#[test]
fn of_a_modem_beneath_a_rogue_there_is_one_answer() {
    let beneath = |burst: &str, fifo: u8| {
        let text = format!(
            "[devices.modem]\nkind = \"soft-modem\"\n[tasks.rogue]\nkind = \"rogue\"\nburst = \"{burst}\"\nevery = \"250ms\"\nfifo = {fifo}\n[variants.v]\non = \"live\"\nplacement = \"reserved 2.35ms/8ms\"\n"
        );
        with_lines(&text, |_| {})
    };
    let response = |plan: &VariantPlan| plan.devices[0].margins.map(|most| most.response_ns);
    let is_bounded = |plan: &VariantPlan| bounded(plan).contains(&"modem thread");
    let [below, short, long] =
        [("100ms", 50), ("100us", 90), ("100ms", 90)].map(|(burst, fifo)| beneath(burst, fifo));
    assert!(is_bounded(&below) && is_bounded(&short) && !is_bounded(&long));
    assert!(response(&short) > response(&below));
    assert_eq!(response(&long), None);
    let late = headline(long);
    assert!(
        late.contains("not sure to be served in time: `modem thread`"),
        "{late}"
    );
    assert!(!headline(short).contains("not sure"));
}
