//! Random scenarios of one processor, the same on every machine.

use std::fmt::Write as _;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Tasks,
    BesideAModem,
    /// A modem and another device, or two.
    BesideDevices,
}

/// A scenario with one variant, as a file has it.
pub(crate) fn random(seed: u64, shape: Shape) -> String {
    let mut scenario = Scenario {
        random: Pcg64Mcg::seed_from_u64(seed),
        text: "[quick]\nidle = \"600ms\"\n".into(),
        tasks: Vec::new(),
    };
    let executors = scenario.random.random_range(1..=2);
    for number in 0..executors {
        scenario.executor(number);
    }
    for number in 0..scenario.random.random_range(0..=3) {
        scenario.thread(number);
    }
    if scenario.random.random_bool(0.5) {
        let priority = scenario.random.random_range(1..=20);
        let text = format!("kind = \"spinner\"\ncount = 2\npriority = {priority}\n");
        scenario.task("spinners", &text);
    }
    if scenario.random.random_bool(0.3) {
        scenario.rogue();
    }
    let placement = match shape {
        Shape::Tasks => String::new(),
        Shape::BesideAModem => scenario.modem(),
        Shape::BesideDevices => scenario.devices(),
    };
    let names = scenario.tasks.join("\", \"");
    let _ = write!(
        scenario.text,
        "[variants.a]\ncontracts = []\ntasks = [\"{names}\"]\n{placement}"
    );
    scenario.text
}

struct Scenario {
    random: Pcg64Mcg,
    text: String,
    tasks: Vec<String>,
}

impl Scenario {
    fn task(&mut self, name: &str, keys: &str) {
        let _ = write!(self.text, "[tasks.{name}]\n{keys}\n");
        self.tasks.push(name.to_owned());
    }

    /// A reservation, with what its holder is beside it; and X/Y in parts per thousand.
    fn reservation(&mut self) -> (String, u64) {
        let period_us = self.random.random_range(2..=20_u64) * 1_000;
        let share = self.random.random_range(100..=300_u64);
        let service_us = period_us * share / 1_000;
        let outside = match self.random.random_range(0..4) {
            0 => "priority = 31".to_owned(),
            1 => format!("priority = {}", self.random.random_range(1..=30)),
            _ => "outside = \"confined\"".to_owned(),
        };
        let keys = format!("placement = \"reserved {service_us}us/{period_us}us\"\n{outside}\n");
        (keys, share)
    }

    /// One with one to three tasks, which need most of what it has, or a little more.
    fn executor(&mut self, number: u32) {
        let policy = ["edf", "fcfs"][self.random.random_range(0..2)];
        let (placement, share) = match self.random.random_range(0..4) {
            0 => {
                let priority = self.random.random_range(16..=31);
                (format!("placement = \"thread {priority}\"\n"), 300)
            }
            _ => self.reservation(),
        };
        let _ = write!(
            self.text,
            "[executors.x{number}]\npolicy = \"{policy}\"\n{placement}\n"
        );
        let tasks = self.random.random_range(1..=3_u64);
        let most = [40, 105][self.random.random_range(0..2)];
        let load = self.random.random_range(10..=most) * share / 100;
        for task in 0..tasks {
            let period_us = self.random.random_range(4..=60_u64) * 1_000;
            let service_us = (period_us * load / tasks / 1_000).max(10);
            let keys = format!(
                "kind = \"periodic\"\nperiod = \"{period_us}us\"\nservice = \"{service_us}us\"\non = \"x{number}\"\n"
            );
            self.task(&format!("t{number}{task}"), &keys);
        }
    }

    fn thread(&mut self, number: u32) {
        let period_us = self.random.random_range(2..=40_u64) * 1_000;
        let service_us = period_us * self.random.random_range(5..=120) / 1_000;
        let priority = match self.random.random_range(0..3) {
            0 => 31,
            _ => self.random.random_range(9..=30),
        };
        let keys = format!(
            "kind = \"periodic\"\nperiod = \"{period_us}us\"\nservice = \"{service_us}us\"\npriority = {priority}\n"
        );
        self.task(&format!("p{number}"), &keys);
    }

    fn rogue(&mut self) {
        let burst_us = self.random.random_range(500..=8_000);
        let priority = self.random.random_range(9..=30);
        let keys = format!(
            "kind = \"rogue\"\nburst = \"{burst_us}us\"\nevery = \"60ms\"\npriority = {priority}\n"
        );
        self.task("rogue", &keys);
    }

    fn modem(&mut self) -> String {
        self.text
            .push_str("[devices.modem]\nkind = \"soft-modem\"\n");
        match self.random.random_range(0..5) {
            0 => "placement = \"interrupt\"\n".into(),
            1 => "placement = \"deferred\"\n".into(),
            2 => format!(
                "placement = \"thread {}\"\n",
                self.random.random_range(16..=31)
            ),
            _ => {
                let before = self.random.random_range(9..=31);
                let (keys, _) = self.reservation();
                format!("{keys}before = {before}\n")
            }
        }
    }

    /// The interrupts of whose name comes first go first, so that others have names before the modem's and behind it.
    fn devices(&mut self) -> String {
        let load = self.random.random_range(5..=45);
        let _ = write!(
            self.text,
            "[devices.m]\nkind = \"soft-modem\"\nload = \"{load} %\"\n"
        );
        let mut placed = vec![format!("m = {}", self.placed())];
        let others = [&["a"][..], &["z"], &["a", "z"]][self.random.random_range(0..3)];
        for name in others {
            let kind = ["audio", "radio"][self.random.random_range(0..2)];
            let _ = write!(self.text, "[devices.{name}]\nkind = \"{kind}\"\n");
            placed.push(format!("{name} = {}", self.placed()));
        }
        format!("placement = {{ {} }}\n", placed.join(", "))
    }

    fn placed(&mut self) -> String {
        match self.random.random_range(0..6) {
            0 => "{ placement = \"interrupt\" }".into(),
            1 => "{ placement = \"deferred\" }".into(),
            2 | 3 => {
                let priority = self.random.random_range(16..=31);
                format!("{{ placement = \"thread {priority}\" }}")
            }
            _ => {
                let before = self.random.random_range(9..=31);
                let (keys, _) = self.reservation();
                let keys = keys.trim().replace('\n', ", ");
                format!("{{ {keys}, before = {before} }}")
            }
        }
    }
}
