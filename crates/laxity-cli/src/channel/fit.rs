//! `laxity channel fit`: the least rate and burst that cover a flow of a file.

use std::path::PathBuf;

use clap::Args;
use laxity_lab::plain;
use laxity_lab::recorded::messages::{Grouping, grouping};
use laxity_lab::recorded::pairs::{self, Fitted, PairsError};
use laxity_lab::recorded::{Seen, SelectError, select};
use laxity_lab::runner::Progress as _;
use laxity_model::nif::filter::Filter;

use crate::exit::{ERROR, Failure, MET, USAGE};
use crate::files;
use crate::net::file::Named;
use crate::outputs::{self, Json};
use crate::progress::Reporter;

/// What `fit` takes.
#[derive(Args, Debug)]
pub(crate) struct Fit {
    /// The file of pcap or pcapng; `-` is standard input.
    file: PathBuf,
    /// The flow: words of pcap's language, such as `udp dst port 5004`, without `not` (docs/net.md lists them); without one, the only flow that the file has.
    filter: Vec<String>,
    /// Which packets are one message: `packet`, each; `gap=TIME`, all until one comes later than that behind the one before; `rtp`, those with one source and timestamp, as of a frame of video.
    #[arg(long, value_name = "packet|gap=TIME|rtp", default_value = "packet", value_parser = message)]
    message: Grouping,
    /// Propose the rate that goes with this burst; without it, the least burst with which a rate is enough that is no more than a tenth above the mean.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    burst: Option<u32>,
    #[command(flatten)]
    json: Json,
}

fn message(text: &str) -> Result<Grouping, String> {
    grouping(text).map_err(|error| error.to_string())
}

/// Where no packet has ports.
const NO_FLOW: &str = "its packets have no ports, and so are of no flow; say which are meant, by a filter such as `host 10.0.0.1` or `ether proto 0x88b5`";
/// So many flows are listed.
const MOST_LISTED: usize = 20;

pub(super) fn run(arguments: &Fit) -> Result<u8, Failure> {
    outputs::check(Some(&arguments.file), arguments.json.output().as_slice())?;
    let filter = filter(&arguments.filter.join(" "))?;
    let named = Named::open(&arguments.file, None)?;
    let name = named.name().to_owned();
    let fitted = fitted(arguments, filter.as_ref(), named)
        .map_err(|(code, why)| Failure::new(code, format!("{name}: {why}")))?;
    outputs::tell(
        &arguments.json,
        || pairs::render(&fitted, &name, files::width()),
        || {
            let all = pairs::to_json(&fitted, &name);
            Ok(format!("{all:#}\n").into_bytes())
        },
    )?;
    Ok(MET)
}

/// `None` where nothing is asked for.
fn filter(text: &str) -> Result<Option<Filter>, Failure> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let filter = Filter::parse(text, None);
    let filter = filter.map_err(|error| Failure::new(USAGE, plain(&error.to_string())))?;
    Ok(Some(filter))
}

/// What covers the flow; or an exit code, and why nothing does.
fn fitted(
    arguments: &Fit,
    filter: Option<&Filter>,
    named: Named<'_>,
) -> Result<Fitted, (u8, String)> {
    let mut reporter = Reporter::patient(false);
    let mut read = 0;
    let packets = named.packets().inspect(|_| {
        read += 1;
        reporter.tell(read, read, "packets");
    });
    let selected = select(packets, filter, arguments.message);
    reporter.end();
    let selected = selected.map_err(|error| match &error {
        SelectError::Several(flows) => (USAGE, listed(flows)),
        SelectError::Nothing(..) | SelectError::NotRtp(_) => (USAGE, error.to_string()),
        SelectError::Unreadable(_) | SelectError::NoTime(_) => (ERROR, error.to_string()),
    })?;
    let fitted = pairs::fit(&selected, arguments.message, arguments.burst);
    fitted.map_err(|error| match error {
        PairsError::Burst(..) => (USAGE, error.to_string()),
        PairsError::Fit(_) | PairsError::NoTime => (ERROR, error.to_string()),
    })
}

/// Which flows there are, so that one can be named.
fn listed(flows: &[Seen]) -> String {
    let count = match flows.len() {
        0 => return NO_FLOW.to_owned(),
        1 => "one flow, and others that are of none".to_owned(),
        count => format!("{count} flows"),
    };
    let mut text = format!("it has packets of {count}; say which are meant, by a filter such as:");
    for Seen {
        filter,
        packets,
        bytes,
    } in flows.iter().take(MOST_LISTED)
    {
        text += &format!("\n  {filter}   # {packets} packets, {bytes} bytes");
    }
    if let Some(more @ 1..) = flows.len().checked_sub(MOST_LISTED) {
        text += &format!("\n  and {more} more");
    }
    text
}
