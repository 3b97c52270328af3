//! The reference of all keys, written from the tables by which they are read.

use std::fmt::Write as _;

use laxity_model::Span;
use laxity_model::verify::contract::Unit;

use super::keys::Table;
use super::{
    channels, contracts, devices, expectations, kinds, limits, links, network, placing, sections,
    tasks, variants,
};

/// All tables, in the order of the page.
fn tables() -> Vec<&'static Table> {
    let mut all = vec![
        &sections::ROOT,
        &sections::HOST_KEYS,
        &sections::TRANSFER_KEYS,
        &sections::LENGTH_KEYS,
    ];
    all.extend(devices::TABLES);
    all.extend(tasks::TABLES);
    all.extend([
        &tasks::EXECUTOR_KEYS,
        &links::GROUP_KEYS,
        &network::INTERFACE_KEYS,
        &network::FLOW_KEYS,
        &network::VIDEO_KEYS,
        &network::BULK_KEYS,
        &network::CLIENT_KEYS,
        &contracts::KEYS,
        &limits::KEYS,
        &variants::DEFAULTS,
        &variants::KEYS,
        &expectations::EXPECTED,
        &placing::PLACEMENT_KEYS,
        &placing::DETAILS,
    ]);
    all
}

/// Every key of a scenario, as a page of Markdown: what may be written for it, what holds without it, and what it means.
pub fn reference() -> String {
    page(HEAD, &tables())
}

/// Every key of a description of a network, in the same way.
pub fn network_reference() -> String {
    page(NETWORK_HEAD, &channels::TABLES)
}

fn page(head: &str, tables: &[&'static Table]) -> String {
    let mut text = String::from(head);
    let mut heading = "";
    for table in tables {
        if table.heading != heading {
            heading = table.heading;
            // Writing to a string does not fail.
            let _ = write!(text, "\n## {heading}\n");
        }
        if let Some(kind) = table.kind {
            let _ = write!(text, "\n### kind = \"{kind}\"\n");
        }
        if !table.about.is_empty() {
            let _ = write!(text, "\n{}\n", table.about);
        }
        text.push_str("\n| key | value | without it | meaning |\n|---|---|---|---|\n");
        for key in table.keys {
            let [value, without, meaning] = key.explain();
            let row = [format!("`{}`", key.name()), value, without, meaning];
            let _ = writeln!(
                text,
                "| {} |",
                row.map(|cell| cell.replace('|', "\\|")).join(" | ")
            );
        }
        if std::ptr::eq(*table, &limits::KEYS) {
            text.push_str(&quantities());
        }
    }
    text
}

/// Every word for a quantity, as the judge knows it: of whom it is observed, what its values are, and what it means.
fn quantities() -> String {
    let mut text = String::from(QUANTITIES);
    for quantity in kinds::quantities() {
        let of = kinds::KINDS.iter().chain([&kinds::PROGRAM]);
        let of = of.filter(|kind| kind.shows(quantity));
        let of: Vec<String> = of.map(|kind| format!("`{}`", kind.name)).collect();
        let unit = match quantity.unit() {
            Unit::Nanoseconds => "durations",
            Unit::Count => "integers",
        };
        let adds_up = match (quantity.is_summed(), quantity.in_every(Span::from_secs(1))) {
            (false, _) => "",
            (true, None) => " that add up",
            (true, Some(_)) => " that add up, also in windows",
        };
        let (name, of, meaning) = (quantity.name(), of.join(", "), kinds::meaning(quantity));
        let _ = writeln!(text, "| `{name}` | {of} | {unit}{adds_up} | {meaning} |");
    }
    text
}

const QUANTITIES: &str = "
## Quantities

What a limit may be about, and the kinds of devices and tasks of which it is observed; a `program` is what `laxity exec` runs, limited by the file that
`--contract` names. Of what adds up the sum is limited, unless `statistic` says otherwise; in windows it is by `in_every`.

| quantity | of | values | meaning |
|---|---|---|---|
";

const HEAD: &str = "# The keys of a scenario

A scenario is a TOML file; `scenarios/soft-modem.toml` and its neighbours show whole ones. This page is written from the tables by which laxity reads
such a file:

```sh
cargo run --release --quiet -- keys > docs/scenario-keys.md
```

Numbers have their unit, in a string: durations `ns`, `us`, `ms` or `s`; shares `%`; sizes `B`, `kB`, `KiB`, `MB` or `MiB`; levels `dB`; frequencies
`mHz`, `Hz` or `kHz`; clock offsets `ppb` or `ppm`. A name has 1 to 32 letters, digits, `-` or `_`.
";

const NETWORK_HEAD: &str = "# The keys of a network

A network of hosts is described once, in a TOML file that all of them have: [network.toml](network.toml) is a whole one. This page is written from the tables by which laxity reads
such a file:

```sh
cargo run --release --quiet -- keys --network > docs/network-keys.md
```

Numbers have their unit, in a string: durations `ns`, `us`, `ms` or `s`; sizes `B`, `kB`, `KiB`, `MB` or `MiB`; rates of links `bit/s`, `kbit/s`, `Mbit/s` or `Gbit/s`; rates of messages
`30/s`, `29.97/s` or `3 every 100ms`. A name has 1 to 32 letters, digits, `-` or `_`.

What counts is what files mean, not how they are written: comments, order, and defaults that are written out make no difference. Which of its channels would be granted, by which link and
with how much room, or what would be granted instead, says

```sh
cargo run --release --quiet -- plan docs/network.toml
```

[Channels between hosts](channels.md) says how that is to be read.
";

#[cfg(test)]
mod tests {
    use laxity_model::Priority;
    use laxity_model::enforce::ranks::of_thread;

    use super::*;
    use crate::scenario::TwinProfile;
    use crate::scenario::units::format_span;

    #[test]
    fn every_default_can_be_read() {
        let tables = tables().into_iter().chain(channels::TABLES);
        for key in tables.flat_map(|table| table.keys) {
            assert!(key.is_sound(), "{}", key.name());
        }
    }

    /// Each word that the page lists can be limited of a kind that it names, and no other word can.
    #[test]
    fn every_quantity_is_listed_with_its_meaning() {
        let page = reference();
        let (_, listed) = page.split_once("\n## Quantities\n").expect("a section");
        let (listed, _) = listed.split_once("\n## ").expect("not the last");
        let rows = listed.lines().filter(|line| line.starts_with("| `"));
        let words: Vec<&str> = rows
            .clone()
            .filter_map(|row| row.split('`').nth(1))
            .collect();
        let known = kinds::quantities();
        assert_eq!(
            words,
            known
                .iter()
                .map(|quantity| quantity.name())
                .collect::<Vec<_>>()
        );
        for (row, quantity) in rows.zip(known) {
            let cells: Vec<&str> = row.split(" | ").collect();
            assert!(
                cells
                    .iter()
                    .all(|cell| !cell.trim_matches(['|', ' ']).is_empty()),
                "{row}"
            );
            let value = if cells[2].starts_with("durations") {
                "\"1s\""
            } else {
                "1"
            };
            let text = format!(
                "[devices.m]\nkind = \"soft-modem\"\n[variants.v]\nplacement = \"thread 24\"\n[contracts.c]\nlimits = [{{ quantity = \"{}\", at_most = {value} }}]",
                quantity.name()
            );
            // That is found only where nothing else is wrong.
            let wrong = crate::scenario::parse(&text, "x.toml").expect_err("it judges nobody");
            assert_eq!(wrong.len(), 1, "{row}: {wrong:?}");
            assert!(wrong[0].cause.contains("judges no variant"), "{wrong:?}");
        }
    }

    /// What the page says of turns, and of who takes none on Linux, is so.
    #[test]
    fn turns_are_as_long_as_the_page_says() {
        let quantum = TwinProfile::WIN2000_PII450.machine.bands.quantum;
        let said = format!(
            "by turns of {}. On Linux those of 16 to 31 are FIFO",
            format_span(quantum)
        );
        assert!(reference().contains(&said));
        for level in 0..32 {
            let scheduling = of_thread(Priority::new(level).expect("there are 32"));
            assert_eq!(scheduling.real_time().is_some(), level >= 16, "{level}");
        }
    }

    /// A key of the page that nobody reads would take any value: each finds a date wrong, or what it does not stand for.
    #[test]
    fn every_key_is_read() {
        const DATE: &str = "1999-12-31";
        let mut tried = 0;
        for table in tables() {
            for key in table.keys {
                let name = key.name();
                let (heading, kind) = (table.heading, table.kind);
                for text in with_key(heading, kind, name, DATE) {
                    let found = crate::scenario::parse(&text, "x.toml").expect_err(&text);
                    let here = |one: &&crate::scenario::Diagnostic| {
                        let told = one.render(crate::scenario::Style::Plain);
                        told.contains(DATE) && !told.contains("has no key")
                    };
                    assert!(
                        found.iter().any(|one| here(&one)),
                        "{name} of {heading}: {found:?}"
                    );
                    tried += 1;
                }
            }
        }
        assert!(tried > 80, "{tried}");
    }

    /// What a table needs before its other keys are looked at.
    const NEEDED: [(&str, &[&str]); 9] = [
        ("[devices.<name>]", &["kind = \"soft-modem\""]),
        ("[tasks.<name>]", &["kind = \"spinner\""]),
        ("periodic", &["period = \"5ms\""]),
        ("rogue", &["burst = \"1ms\"", "every = \"5ms\""]),
        ("command", &["argv = [\"true\"]"]),
        ("[executors.<name>]", &["placement = \"thread 8\""]),
        (
            "limits = { … } of [contracts.<name>]",
            &["quantity = \"wakeup_gap\"", "at_most = \"1ms\""],
        ),
        ("[contracts.<name>]", &["limits = []"]),
        ("Placements", &["placement = \"reserved 2ms/8ms\""]),
    ];

    /// Scenarios in which this key has this value, wherever its table is.
    fn with_key(heading: &str, kind: Option<&str>, key: &str, value: &str) -> Vec<String> {
        let mut lines = vec![format!("{key} = {value}")];
        lines.extend(kind.map(|kind| format!("kind = \"{kind}\"")));
        for (of, needed) in NEEDED {
            if of == heading || kind == Some(of) {
                lines.extend(needed.iter().map(|line| (*line).to_owned()));
            }
        }
        let mut known: Vec<String> = Vec::new();
        lines.retain(|line| {
            let name = line.split(' ').next().unwrap_or_default().to_owned();
            let is_new = !known.contains(&name);
            known.push(name);
            is_new
        });
        let (block, inline) = (lines.join("\n"), lines.join(", "));
        let head = |heading: &str| heading.replace("<name>", "n");
        match heading {
            "The file" => vec![block],
            "[quick] and [full]" => ["quick", "full"]
                .map(|one| format!("[{one}]\n{block}"))
                .into(),
            "[defaults]" => vec![format!("[variants.v]\n[defaults]\n{block}")],
            "Placements" => vec![format!(
                "[devices.m]\nkind = \"soft-modem\"\n[variants.v]\n{block}"
            )],
            _ => match heading.split_once(" = { … } of ") {
                Some(("limits", owner)) => {
                    vec![format!("{}\nlimits = [{{ {inline} }}]", head(owner))]
                }
                Some((own, owner)) => vec![format!(
                    "{}\nkind = \"soft-modem\"\n{own} = {{ {key} = {value} }}",
                    head(owner)
                )],
                None => vec![format!("{}\n{block}", head(heading))],
            },
        }
    }
}
