//! `laxity upcalls`: the coordinator of the upcalls of several processes, and who has what there.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Args, Subcommand};
use laxity::command::is_ignored;
use laxity::upcalls::Watch;
use laxity::upcalls::coordinator::{self, At, Coordinator, CoordinatorError, Settings};
use laxity::{Service, Span};
use laxity_lab::plain;
use laxity_lab::scenario::units;
use laxity_model::program::coordinator::{Item, Presence, Told, share_ppm};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::{CANNOT_RUN, ERROR, Failure, MET, USAGE, failed};
use crate::files;
use crate::outputs::{self, Json};

/// What is done.
#[derive(Subcommand, Debug)]
pub(crate) enum Upcalls {
    /// Be the coordinator of a processor, until nobody has been there for a while.
    Serve(Box<Serve>),
    /// Show who has a seat from a coordinator, and what of the processor.
    List(List),
}

/// What `serve` takes.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// The processor, by the kernel's number.
    #[arg(long, short = 'a', value_name = "N")]
    processor: usize,
    /// Where its socket is; without it, $LAXITY_COORDINATOR_DIRECTORY, $XDG_RUNTIME_DIR/laxity or /run/laxity.
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// The FIFO priority of all executors; the guards are just below and above it.
    #[arg(long, short, value_name = "PRIORITY", default_value_t = Watch::default().executors, value_parser = clap::value_parser!(u8).range(2..=98))]
    priority: u8,
    /// Serve executors that are ordinary threads, for which no right is needed; nobody guards them.
    #[arg(long, conflicts_with = "priority")]
    ordinary: bool,
    /// The longest quantum: a longer one is refused, and who works twice as long without a look loses its seat, sooner if it was admitted with less. What that takes by the longest of all is charged to all.
    #[arg(long, value_name = "SPAN", default_value = "500us", value_parser = longest)]
    longest: Span,
    /// Users other than its own may connect.
    #[arg(long)]
    everyone: bool,
    /// What the processes of one user may keep from others together: their calls with all that is charged, in their periods or until they are due, and once the time for seeing who does not come back; without it, whatever there is.
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    share: Option<u64>,
    /// The same of one user by its number; may be given several times.
    #[arg(long = "quota", value_name = "UID=PERCENT", value_parser = quota)]
    quotas: Vec<(u32, u64)>,
    /// So long what a dead process had is kept for others to clean up.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span)]
    kept: Span,
    /// It ends when nobody has been there for so long.
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = span)]
    linger: Span,
}

/// What `list` takes.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// The processor, by the kernel's number; without it, all that have a coordinator.
    #[arg(long, short = 'a', value_name = "N")]
    processor: Option<usize>,
    /// Where the sockets are; without it, $LAXITY_COORDINATOR_DIRECTORY, $XDG_RUNTIME_DIR/laxity or /run/laxity.
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    #[command(flatten)]
    json: Json,
}

fn span(text: &str) -> Result<Span, String> {
    units::span(text).map_err(|error| error.to_string())
}

/// Whoever looks more often than this has the processor, and whoever looks more seldom sees nothing in time.
fn longest(text: &str) -> Result<Span, String> {
    let longest = span(text)?;
    let possible = Span::from_micros(10)..=Span::from_millis(10);
    match possible.contains(&longest) {
        true => Ok(longest),
        false => Err("the longest quantum is from 10us to 10ms".to_owned()),
    }
}

/// In millionths.
fn share(text: &str) -> Result<u64, String> {
    let share = units::share(text).map_err(|error| error.to_string())?;
    Ok(share.ppm.into())
}

fn quota(text: &str) -> Result<(u32, u64), String> {
    let (user, quota) = text.split_once('=').ok_or("a quota is as 1000=30%")?;
    let user = user
        .parse()
        .map_err(|_| "a quota is as 1000=30%, with the user's number")?;
    Ok((user, share(quota)?))
}

/// Serves or lists.
pub(crate) fn run(what: &Upcalls) -> Result<u8, Failure> {
    match what {
        Upcalls::Serve(arguments) => serve(arguments),
        Upcalls::List(arguments) => list(arguments),
    }
}

fn serve(arguments: &Serve) -> Result<u8, Failure> {
    let mut quotas = BTreeMap::new();
    for (user, quota) in &arguments.quotas {
        if quotas.insert(*user, *quota).is_some() {
            let message = format!("two quotas of user {user}: give it one");
            return Err(Failure::new(USAGE, message));
        }
    }
    let at = At::new(arguments.processor, arguments.directory.clone());
    let watch = Watch {
        executors: arguments.priority,
        longest: Service::from_nanos(arguments.longest.as_nanos()),
        ..Watch::default()
    };
    let settings = Settings {
        watch: (!arguments.ordinary).then_some(watch),
        everyone: arguments.everyone,
        share_ppm: arguments.share.unwrap_or(u64::MAX),
        quotas,
        kept: arguments.kept,
        linger: arguments.linger,
        ..Settings::new(at)
    };
    // Before there is a socket: it is to be gone again whenever one comes.
    let (told, _tell) = told_to_end().map_err(failed("signals"))?;
    let opened = Coordinator::open(settings).map(|one| one.ends_by(told));
    match opened.and_then(Coordinator::serve) {
        Err(error @ CoordinatorError::Served(_)) => {
            // Whoever wants one has one.
            files::say(&format!("laxity: {error}"));
            Ok(MET)
        }
        served => served.map(|()| MET).map_err(|error| failure(&error)),
    }
}

/// The first can be read once SIGINT or SIGTERM has come, unless that is ignored, and when nobody has the other any more.
pub(crate) fn told_to_end() -> io::Result<(OwnedFd, UnixStream)> {
    let (told, tell) = UnixStream::pair()?;
    let heeded = [SIGINT, SIGTERM]
        .into_iter()
        .filter(|one| !is_ignored(*one));
    for signal in heeded {
        signal_hook::low_level::pipe::register(signal, tell.try_clone()?)?;
    }
    Ok((told.into(), tell))
}

fn failure(error: &CoordinatorError) -> Failure {
    let code = match error {
        CoordinatorError::Guard(_) | CoordinatorError::NoProcessor(_) => CANNOT_RUN,
        _ => ERROR,
    };
    Failure::new(code, plain(&error.to_string()).into_owned())
}

fn list(arguments: &List) -> Result<u8, Failure> {
    outputs::check(None, arguments.json.output().as_slice())?;
    if let Some(named) = &arguments.directory {
        is_there(named)?;
    }
    let At { directory, .. } = At::new(0, arguments.directory.clone());
    let processors = match arguments.processor {
        Some(processor) => vec![processor],
        None => {
            let all = At::new(0, Some(directory.clone())).processors();
            all.map_err(|error| {
                let directory = directory.to_string_lossy();
                Failure::new(ERROR, format!("{}: {error}", plain(&directory)))
            })?
        }
    };
    let mut all = Vec::new();
    for processor in processors {
        let at = At::new(processor, Some(directory.clone()));
        if let Some(told) = coordinator::list(&at).map_err(|error| failure(&error))? {
            all.push((processor, told));
        }
    }
    let shown = directory.to_string_lossy();
    let shown = plain(&shown);
    outputs::tell(
        &arguments.json,
        || match (all.is_empty(), arguments.processor) {
            (false, _) => table(&all),
            (true, None) => format!("No coordinator serves in {shown}.\n"),
            (true, Some(processor)) => {
                format!("No coordinator serves processor {processor} in {shown}.\n")
            }
        },
        || {
            let list: Vec<Value> = all
                .iter()
                .map(|(processor, told)| to_json(*processor, told))
                .collect();
            let all = json!({ "file_version": 1, "directory": shown, "coordinators": list });
            let text = format!("{all:#}\n");
            Ok(text.into_bytes())
        },
    )?;
    Ok(MET)
}

/// Where nobody has served yet there may be no directory; but who names one means one that is there.
fn is_there(directory: &Path) -> Result<(), Failure> {
    let why = match fs::metadata(directory) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "it is no directory".to_owned(),
        Err(error) => error.to_string(),
    };
    let shown = directory.to_string_lossy();
    let text = format!("no coordinator serves in {}: {why}", plain(&shown));
    Err(Failure::new(ERROR, text))
}

const fn presence(told: &Told) -> &'static str {
    match told.presence {
        Presence::Here => "here",
        Presence::Gone => "gone",
        Presence::Awaited => "awaited",
        Presence::Stopped => "stopped",
    }
}

/// For people: a process a line, and below it its upcalls.
fn table(all: &[(usize, Vec<Told>)]) -> String {
    let share = |items: &[Item]| {
        let ppm = share_ppm(items);
        format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
    };
    let mut text = String::new();
    for (processor, told) in all {
        let items = told.iter().flat_map(|told| told.items.iter().cloned());
        let items: Vec<Item> = items.collect();
        text.push_str(&format!(
            "Processor {processor}: {} processes, {} upcalls, {}\n",
            told.len(),
            items.len(),
            share(&items)
        ));
        for one in told {
            let (seat, process, user) = (one.seat, one.process, one.user);
            let (name, presence) = (&one.name, presence(one));
            text.push_str(&format!(
                "  seat {seat:>2}  {:>8}  process {process} of user {user}, {name}, {presence}\n",
                share(&one.items)
            ));
            for item in &one.items {
                let task = &item.linked.task;
                let alone = share(std::slice::from_ref(item));
                text.push_str(&format!(
                    "           {alone:>8}  {}: {} every {}, due in {}\n",
                    item.name,
                    task.cost(),
                    task.period(),
                    task.deadline()
                ));
            }
        }
    }
    text
}

/// For programs: integers, nanoseconds and parts per million.
fn to_json(processor: usize, told: &[Told]) -> Value {
    let upcall = |item: &Item| {
        let task = &item.linked.task;
        json!({
            "name": item.name,
            "cost_ns": task.cost().as_nanos(),
            "period_ns": task.period().as_nanos(),
            "deadline_ns": task.deadline().as_nanos(),
            "share_ppm": share_ppm(std::slice::from_ref(item)),
        })
    };
    let process = |one: &Told| {
        json!({
            "process": one.process,
            "user": one.user,
            "seat": one.seat,
            "name": one.name,
            "presence": presence(one),
            "share_ppm": share_ppm(&one.items),
            "upcalls": one.items.iter().map(upcall).collect::<Vec<_>>(),
        })
    };
    json!({ "processor": processor, "processes": told.iter().map(process).collect::<Vec<_>>() })
}
