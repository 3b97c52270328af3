//! `laxity channel serve`: a host's node, which applications reach by a socket.

use std::path::PathBuf;

use clap::Args;
use laxity::channels::{Client, Error, Node, Server};
use laxity_lab::plan::network::{self, Live};
use laxity_lab::runner::On as Host;
use laxity_lab::scenario::channels::Network;
use laxity_lab::scenario::{parse_network, units};
use laxity_lab::{key_file, plain};

use super::key::default_path;
use crate::exit::{CANNOT_RUN, ERROR, Failure, MET, USAGE, failed};
use crate::upcalls::told_to_end;
use crate::{files, machine, scenario};

/// What `serve` takes.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// The description of the network, which all its hosts have; `-` is standard input.
    network: PathBuf,
    /// Which of its hosts this is.
    #[arg(long, value_name = "NAME")]
    host: String,
    /// The file of this host's private key; without it, laxity/channel.key in $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Where applications reach it; without it, what $LAXITY_CHANNELS says, or laxity/channels.sock: of root in /run, of others in $XDG_RUNTIME_DIR.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// What its processor takes, as `laxity calibrate` wrote it; `none`: assume it. Without it, what was measured here.
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
}

pub(super) fn run(arguments: &Serve) -> Result<u8, Failure> {
    let (name, text) = files::read(&arguments.network)?;
    let network = parse_network(&text, &name).map_err(|errors| scenario::wrong(&name, &errors))?;
    let host = host(&network, &arguments.host, &name)?;
    let key = arguments.key.clone().map_or_else(default_path, Ok)?;
    let secret = key_file::read(&key);
    let secret = secret.map_err(|error| Failure::new(ERROR, error.to_string()))?;
    let known = machine::known(arguments.machine.as_deref(), Host::Linux)?;
    let live = network::live(&network, host, secret, &known);
    let live = live.map_err(|error| Failure::new(ERROR, format!("{name}: {error}")))?;
    let path = arguments.socket.clone().or_else(Client::socket_of_node);
    let path = path.ok_or_else(|| {
        let message =
            "XDG_RUNTIME_DIR does not say where the socket is to be: name a file by --socket";
        Failure::new(USAGE, message)
    })?;
    // Before anything is changed: it is to be put back whenever one comes.
    let (told, _tell) = told_to_end().map_err(failed("signals"))?;
    let Live { setup, book, links } = live;
    let node = Node::start(setup).map_err(|error| failure(&error))?;
    let mut server = Server::open(node, book, &path).map_err(|error| failure(&error))?;
    let shown = path.display().to_string();
    let mut text = begun(&network, host, &links, server.node());
    text += &format!("Applications reach it at {}.\n", plain(&shown));
    files::print(&text)?;
    server.serve(&told).map_err(failed("the socket"))?;
    Ok(MET)
}

fn host(network: &Network, host: &str, file: &str) -> Result<usize, Failure> {
    let found = network.hosts.iter().position(|one| one.name == host);
    found.ok_or_else(|| {
        let names = network.hosts.iter().map(|one| one.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        let message = format!(
            "{file} has no host `{}`: its hosts are {names}",
            plain(host)
        );
        Failure::new(USAGE, message)
    })
}

fn failure(error: &Error) -> Failure {
    let code = match error {
        Error::NoWay(..) | Error::Open(_) | Error::Link(..) | Error::NoFrames(..) => CANNOT_RUN,
        _ => ERROR,
    };
    Failure::new(code, plain(&error.to_string()).into_owned())
}

/// Who it is, its links, and what it lacks.
fn begun(network: &Network, host: usize, links: &[usize], node: &Node) -> String {
    let of = &network.hosts[host];
    let setup = node.setup();
    let mut text = format!("{} (host {}, key {})\n", of.name, setup.host, of.key);
    for (place, to) in links.iter().zip(&setup.neighbours) {
        let link = &network.links[*place];
        let other = link.between.iter().find(|end| **end != host);
        let other = other.map_or("", |other| &network.hosts[*other].name);
        let rate = units::format_rate(link.rate);
        let (name, local, at) = (&link.name, to.local, to.at);
        text += &format!("  link {name} to {other}: {rate}, {local} to {at}\n");
    }
    text += &format!("  {}\n", graded(&node.grade()));
    for lack in node.lacks() {
        text += &format!("  lacks: {}\n", plain(lack));
    }
    if let Err(why) = node.memory() {
        text += &format!("  {}; {}\n", plain(&why.what), plain(&why.remedy));
    }
    text
}

fn graded(grade: &laxity::Grade) -> String {
    match grade.reason() {
        None => grade.to_string(),
        Some(reason) => format!("{grade}: {}", plain(reason)),
    }
}
