//! `laxity net show`: which ways to interfaces there are, and what comes through one.

use clap::Args;
use laxity::doctor::{Finding, Machine, diagnose};
use laxity::net::exchange::{Account, Reason};
use laxity::net::registry::Fallback;
use laxity::net::{Counters, Error, Interface, Shown, interface_names, shown};
use laxity::{Grade, Span, sleep_until};
use laxity_lab::plain;
use laxity_lab::report::doctor;
use serde_json::{Value, json};

use super::{
    DOWN, Lasts, Looking, failed_looks, failure, is_down, lost_below, named, opened, span, warn,
};
use crate::exit::{Failure, MET, failed};
use crate::files;
use crate::outputs::{self, Json};
use crate::progress::Reporter;

/// What `show` takes.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The interface; without it, all that there are, and the ways to them.
    interface: Option<String>,
    /// Count for so long.
    #[arg(long = "for", value_name = "SPAN", default_value = "5s", value_parser = span, requires = "interface")]
    lasts: Span,
    #[command(flatten)]
    looking: Looking,
    #[command(flatten)]
    json: Json,
    /// No progress: only the result.
    #[arg(long, short)]
    quiet: bool,
}

/// What `doctor` says of the ways to an interface.
const WAYS: [&str; 4] = ["packet-sockets", "xdp", "tap", "unfinished-packets"];

pub(super) fn run(arguments: &Show) -> Result<u8, Failure> {
    outputs::check(None, arguments.json.output().as_slice())?;
    match &arguments.interface {
        None => ways(&arguments.json),
        Some(name) => counted(name, arguments),
    }
}

/// An interface of this network namespace, as the kernel shows it.
struct There {
    name: String,
    state: String,
    mtu: String,
    address: String,
}

fn interfaces() -> Result<Vec<There>, Failure> {
    let names = interface_names()
        .map_err(failed("the interfaces"))?
        .into_iter();
    let all = names.map(|name| {
        let shown = shown(&name).ok();
        let of =
            |what: fn(&Shown) -> String| shown.as_ref().map_or_else(|| "unknown".to_owned(), what);
        There {
            state: of(|shown| if shown.is_up { "up" } else { "down" }.to_owned()),
            mtu: of(|shown| shown.mtu.to_string()),
            address: of(|shown| {
                let bytes = shown.address.map(|byte| format!("{byte:02x}"));
                bytes.join(":")
            }),
            name,
        }
    });
    Ok(all.collect())
}

fn ways(json: &Json) -> Result<u8, Failure> {
    let machine = Machine::probe();
    let all = diagnose(&machine).into_iter();
    let findings: Vec<Finding> = all.filter(|found| WAYS.contains(&found.name)).collect();
    let interfaces = interfaces()?;
    let people = || {
        let longest = interfaces.iter().map(|there| there.name.len()).max();
        let width = longest.unwrap_or(0);
        let lines = interfaces.iter().map(|there| {
            let (name, state) = (plain(&there.name), &there.state);
            format!(
                "{name:width$}  {state:7}  MTU {:5}  {}\n",
                there.mtu, there.address
            )
        });
        let lines: String = lines.collect();
        format!(
            "{lines}\n{}",
            doctor::table(&machine, &findings, files::width())
        )
    };
    outputs::tell(json, people, || {
        let ways = findings.iter().map(|found| {
            json!({
                "name": found.name,
                "status": found.status.as_str(),
                "cause": found.cause,
                "remedy": found.remedy,
            })
        });
        let ways: Vec<_> = ways.collect();
        let there = interfaces.iter().map(|there| {
            json!({
                "name": there.name,
                "state": there.state,
                "mtu_bytes": there.mtu.parse::<u64>().ok(),
                "address": there.address,
            })
        });
        let there: Vec<_> = there.collect();
        let all = json!({ "file_version": 1, "interfaces": there, "ways": ways });
        Ok(format!("{all:#}\n").into_bytes())
    })?;
    Ok(MET)
}

/// What was counted of an interface, and for how long.
struct Seen {
    counters: Counters,
    lasted: Span,
    /// At the end, where that is known.
    is_down: Option<bool>,
    /// What its driver was promised, and had.
    driver: Grade,
    /// How often it failed, and why last.
    failures: (u64, Option<String>),
    /// It ended before.
    ended: Option<Error>,
}

fn counted(name: &str, arguments: &Show) -> Result<u8, Failure> {
    let name = named(name)?;
    warn(&name);
    let mut lasts = Lasts::begin();
    let interface = opened(&name, arguments.looking.options())?;
    if interface.facts().is_shared_with_kernel {
        let left = interface.leave_rest(Fallback::Kernel);
        left.map_err(|error| failure(&error))?;
    }
    lasts.count(Some(arguments.lasts));
    let seen = watch(&interface, &lasts, arguments)?;
    let facts = interface.facts();
    outputs::tell(
        &arguments.json,
        || table(&facts.name, &seen),
        || {
            let all = to_json(&facts.name, &seen);
            Ok(format!("{all:#}\n").into_bytes())
        },
    )?;
    match &seen.ended {
        None => Ok(MET),
        Some(error) => Err(failure(error)),
    }
}

fn watch(interface: &Interface, lasts: &Lasts, arguments: &Show) -> Result<Seen, Failure> {
    let mut reporter = Reporter::patient(arguments.quiet);
    let counters = interface.counters().map_err(|error| failure(&error))?;
    let mut seen = Seen {
        counters,
        lasted: Span::ZERO,
        is_down: None,
        driver: Grade::Enforced,
        failures: (0, None),
        ended: None,
    };
    loop {
        let is_over = lasts.is_over();
        match interface.counters() {
            Ok(counters) => seen.counters = counters,
            Err(error) => seen.ended = Some(error),
        }
        seen.lasted = lasts.lasted();
        seen.failures = interface.failures();
        if is_over || seen.ended.is_some() {
            seen.driver = interface.grade();
            seen.is_down = is_down(interface);
            laxity_lab::runner::Progress::end(&mut reporter);
            return Ok(seen);
        }
        let millis = |span: Span| (span.as_nanos() / 1_000_000) as usize;
        let what = format!("ms, {} packets", seen.counters.came());
        reporter.tell(millis(seen.lasted), millis(arguments.lasts), &what);
        sleep_until(lasts.look());
    }
}

/// In the order of [`Reason::ALL`].
const REASONS: [&str; Reason::ALL.len()] = [
    "no_buffer",
    "too_long",
    "malformed",
    "nobodys",
    "closed",
    "panicked",
    "refused",
];

fn words(reason: &str) -> String {
    match reason {
        "nobodys" => "nobody's".to_owned(),
        other => other.replace('_', " "),
    }
}

fn table(name: &str, seen: &Seen) -> String {
    let Counters {
        account, losses, ..
    } = &seen.counters;
    let dropped: u64 = account.dropped.iter().sum();
    let reasons = REASONS
        .iter()
        .zip(account.dropped)
        .map(|(reason, count)| format!("{} {count}", words(reason)));
    let reasons: Vec<String> = reasons.collect();
    let below = losses.no_room + losses.too_long;
    let failed = failed_looks(seen.failures.clone());
    let failed = failed.map_or_else(String::new, |failed| format!("\n{}\n", plain(&failed)));
    let driver = match seen.driver.reason() {
        Some(reason) => format!("\n  the driver is {}: {}\n", seen.driver, plain(reason)),
        None => String::new(),
    };
    let down = match seen.is_down {
        Some(true) => format!("\n  {DOWN}\n"),
        Some(false) | None => String::new(),
    };
    format!(
        "{}, {}\n{down}\n  came          {:>12}\n  delivered     {:>12}\n  the kernel's  {:>12}\n  dropped       {dropped:>12}   {}\n  lost below    {below:>12}   {}\n{failed}{driver}",
        plain(name),
        seen.lasted,
        seen.counters.came(),
        account.delivered(),
        account.kernels,
        reasons.join(", "),
        lost_below(losses),
    )
}

fn to_json(name: &str, seen: &Seen) -> Value {
    let Counters {
        account, losses, ..
    } = &seen.counters;
    let Account {
        arrived,
        swapped,
        copied,
        peeked,
        kernels,
        dropped,
    } = account;
    let dropped: serde_json::Map<String, Value> = REASONS
        .iter()
        .zip(dropped)
        .map(|(reason, count)| ((*reason).to_owned(), json!(count)))
        .collect();
    json!({
        "file_version": 1,
        "interface": name,
        "state": match seen.is_down {
            Some(true) => "down",
            Some(false) => "up",
            None => "unknown",
        },
        "lasted_ns": seen.lasted.as_nanos(),
        "came": seen.counters.came(),
        "arrived": arrived,
        "swapped": swapped,
        "copied": copied,
        "peeked": peeked,
        "kernels": kernels,
        "dropped": dropped,
        "lost_below": { "no_room": losses.no_room, "too_long": losses.too_long },
        "lost_below_is_partial": losses.is_partial,
        "driver": { "grade": seen.driver.to_string(), "reason": seen.driver.reason() },
        "failures": seen.failures.0,
        "failed_last": seen.failures.1,
        "ended": seen.ended.as_ref().map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    use laxity::net::driver::Handed;
    use laxity::net::exchange::Census;
    use laxity::net::{InterfaceName, Losses};

    use super::*;

    /// A counter that could not be read is not zero.
    #[test]
    fn what_could_not_be_counted_is_told() {
        for (is_partial, told) in [(false, false), (true, true)] {
            let losses = Losses {
                no_room: 3,
                too_long: 4,
                is_partial,
            };
            let counters = Counters {
                account: Account::default(),
                losses,
                census: Census::default(),
                handed: Handed::default(),
            };
            let seen = Seen {
                counters,
                is_down: None,
                failures: (3, Some("no buffer space".to_owned())),
                lasted: Span::ZERO,
                driver: Grade::Enforced,
                ended: None,
            };
            let shown = table("eth0", &seen);
            assert!(shown.contains("no room 3, too long 4"), "{shown}");
            assert_eq!(shown.contains("perhaps more"), told, "{shown}");
            assert!(shown.contains("no buffer space"), "{shown}");
            let shown = to_json("eth0", &seen);
            assert_eq!(shown["lost_below_is_partial"], json!(told));
            assert_eq!(shown["failures"], 3);
        }
    }

    #[test]
    fn a_bare_name_is_in_nobodys_way() {
        let packet = InterfaceName::Packet("eth0".to_owned());
        assert_eq!(named("eth0").unwrap(), packet);
        assert_eq!(named("auto:eth0").unwrap(), packet);
        assert_eq!(named("a:b:c").unwrap_err().code, crate::exit::USAGE);
    }
}
