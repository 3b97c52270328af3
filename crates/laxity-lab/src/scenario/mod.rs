//! The scenario file: what is compared, on what machine, and what is expected of it. TOML; `scenarios/soft-modem.toml` explains the most of it,
//! `scenarios/turns.toml` executors, `scenarios/one-hour.toml` commands.
//!
//! [`parse`] reads and checks a file as a whole: what it returns runs, or every [`Diagnostic`] says file, line, column, cause and remedy.
//! [`Scenario::resolve`] then makes one length of it plain data for a runner.
//!
//! * [`channels`]: a network that is described once for all its hosts, by [`parse_network`].
//! * [`units`]: numbers with their unit. [`kinds`]: the kinds of components, and what is observed of each.
//! * `reader`: typed access to the parsed table; `sections`, `devices`, `tasks`, `contracts`, `variants` with `placing`, `expectations` and
//!   `control`: its parts; `unused`: what no variant has of them.

use std::ops::Range;

pub mod channels;
mod contracts;
mod control;
pub mod devices;
pub(crate) mod diagnostic;
mod expectations;
mod keys;
pub mod kinds;
mod lengths;
mod limits;
mod links;
pub(crate) mod network;
mod periodic;
mod placing;
mod profile;
pub(crate) mod quantities;
pub(crate) mod reader;
mod reference;
mod sections;
mod stated;
mod syntax;
mod tasks;
mod types;
pub mod units;
mod unused;
mod variants;

pub(crate) use contracts::needs_control;
pub use devices::{PhaseOverrides, Phases};
pub use diagnostic::{Diagnostic, Severity, Style};
/// Where a device's driver runs, or a command, which is in threads.
pub use laxity_devices::modem::DriverPlacement as Placing;
pub use lengths::{Length, LengthSpec};
pub(crate) use network::INTERRUPT;
pub(crate) use placing::show_placing;
pub use profile::TwinProfile;
pub use reference::{network_reference, reference};
pub use sections::MOST_PROCESSORS;
pub use types::{
    Chosen, Demultiplexing, Executor, Expectations, ExpectedGrade, Flow, HostSpec, Interface, Loss,
    NetworkClient, Outcome, PeriodicRank, Proposal, Rank, Resolved, ResolvedDevice, ResolvedTask,
    ResolvedVariant, Scenario, Start, Taking, TaskGroup, TaskKind, TaskLinks, Traffic, TurnPolicy,
};

use crate::plain;
use diagnostic::Source;
use laxity_model::verify::contract::Contract;
use reader::Section;

/// Files larger than this are refused unread: 128 KiB, as every finding keeps its line.
const LARGEST_FILE: usize = 1 << 17;

/// Reads a scenario. `file` is only named in messages. Never panics, whatever the text; linear in its size but for spelling suggestions.
///
/// # Errors
///
/// All that is wrong, in the order of the file: the syntax first, and only if that is right, the meaning.
pub fn parse(text: &str, file: &str) -> Result<Scenario, Vec<Diagnostic>> {
    let source = readable(text, file)?;
    let not_toml = |errors: &[toml::de::Error]| syntax::diagnostics(source, errors);
    let (mut scenario, notes) = reader::document(source, not_toml, |root| read(root, file))?;
    scenario.notes = notes;
    Ok(scenario)
}

/// A text that is not too large to be read.
fn readable<'s>(text: &'s str, file: &'s str) -> Result<Source<'s>, Vec<Diagnostic>> {
    let source = Source { file, text };
    if text.len() > LARGEST_FILE {
        return Err(vec![source.diagnostic(
            Severity::Error,
            &(0..0),
            &format!("the file has {} bytes", text.len()),
            &format!("such a file has at most {LARGEST_FILE} bytes"),
        )]);
    }
    Ok(source)
}

/// Reads a contract for one program: a file with `limits`, as a contract of a scenario has them.
///
/// # Errors
///
/// As of [`parse`]; also limits on what is not observed of a program.
pub fn parse_contract(text: &str, file: &str) -> Result<Contract, Vec<Diagnostic>> {
    let source = readable(text, file)?;
    let not_toml = |errors: &[toml::de::Error]| syntax::diagnostics(source, errors);
    let (contract, _) =
        reader::document(source, not_toml, |root| contracts::of_program(root, file))?;
    Ok(contract)
}

/// Whether a text is meant to describe a network of hosts, and is no scenario: by its sections, also where they are not written as they must be.
#[must_use]
pub fn is_network(text: &str) -> bool {
    let (document, _) = toml::de::DeTable::parse_recoverable(text);
    let begins = |line: &str, key: &str| {
        let behind = line.trim_start().strip_prefix('[')?.strip_prefix(key)?;
        behind.starts_with(['.', ']']).then_some(())
    };
    let is_there = |key: &str| {
        let mut lines = text.lines();
        document.get_ref().contains_key(key) || lines.any(|line| begins(line, key).is_some())
    };
    let has = |keys: &[&str]| keys.iter().any(|key| is_there(key));
    has(&["hosts", "links", "channels", "users"]) && !has(&["variants", "devices", "tasks"])
}

/// Reads the description of a network of hosts: hosts, links, channels and users.
///
/// # Errors
///
/// As of [`parse`].
pub fn parse_network(text: &str, file: &str) -> Result<channels::Network, Vec<Diagnostic>> {
    let source = readable(text, file)?;
    let not_toml = |errors: &[toml::de::Error]| syntax::diagnostics(source, errors);
    let (network, _) = reader::document(source, not_toml, channels::read)?;
    Ok(network)
}

/// The whole file. `None` only where an error has been found.
fn read(root: &Section<'_>, file: &str) -> Option<Scenario> {
    root.keyed([&sections::ROOT]);
    let host = sections::host(root);
    let quick = sections::length(root, "quick", LengthSpec::QUICK);
    let full = sections::length(root, "full", LengthSpec::FULL);
    let mss_bytes = sections::mss_bytes(root);
    let devices = devices::devices(root, &host, &[("quick", &quick), ("full", &full)]);
    let named = tasks::Scope::of(root, &host);
    let executors = &named.executors;
    let tasks = tasks::tasks(root, &host, &named);
    sections::distinct(root, ("a device", &devices), ("task", &tasks));
    sections::distinct(root, ("a device", &devices), ("executor", executors));
    sections::distinct(root, ("a task", &tasks), ("executor", executors));
    let networks = network::networks(root, &host);
    networks.distinct(root, ("a device", &devices));
    networks.distinct(root, ("a task", &tasks));
    networks.distinct(root, ("an executor", executors));
    sections::distinct(
        root,
        ("a flow", &networks.flows),
        ("client", &networks.clients),
    );
    let contracts = contracts::contracts(root, &devices, &tasks, &networks.flows);
    let scope = variants::Scope {
        devices: &devices,
        tasks: &tasks,
        networks: &networks,
        contracts: &contracts,
        lengths: [("quick", &quick), ("full", &full)],
    };
    let variants = variants::variants(root, &scope);
    let title = root.optional(&sections::TITLE);
    let seed = root.take(&sections::SEED);
    let variants = variants?;
    // Of a file with a mistake nobody knows yet what its variants have.
    if root.findings.errors() == 0 {
        unused::contracts(root, &contracts, &variants);
    }
    Some(Scenario {
        quick: Resolved {
            file: file.to_owned(),
            title: title.unwrap_or_else(|| plain(file).into_owned()),
            seed,
            host,
            length: Length::Quick,
            run: quick,
            mss_bytes,
            unused: unused::parts(&tasks, executors, &networks, &variants),
            variants,
        },
        full,
        notes: Vec::new(),
    })
}

/// A declared name, and what it stands for if that could be read; a broken declaration still declares its name.
struct Declared<T> {
    name: String,
    place: Range<usize>,
    value: Option<T>,
}
