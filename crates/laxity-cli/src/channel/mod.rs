//! `laxity channel`: real-time channels.

mod fit;
mod key;
mod serve;

use clap::Subcommand;

use crate::exit::Failure;

/// Examples of all that is done.
pub(crate) const HELP: &str = "\
Exit codes: 0 done; 1 error, also a file that cannot be read, or a key that is there already; 4 the host lacks what its links need; 64 usage, also a filter that is wrong or matches nothing, or a file of several flows without one.

Examples:
  laxity net capture eth0 udp dst port 5004 --write camera.pcapng
  laxity channel fit camera.pcapng                                  which flows there are, or what covers the only one
  laxity channel fit camera.pcapng udp dst port 5004 --message rtp  the frames of a video
  laxity channel fit robot.pcap udp dst port 7400 --message gap=2ms
  laxity channel fit camera.pcapng --message rtp --burst 3 --json   the rate that goes with a burst
  laxity channel key                                                a new private key of this host, and the public one for network.toml
  laxity channel key --show                                         the public one again
  laxity channel serve network.toml --host robot                    the node of this host, until SIGINT or SIGTERM";

/// What is done.
#[derive(Subcommand, Debug)]
pub(crate) enum Channel {
    /// Say which least rates and bursts of messages cover a flow of a file of pcap or pcapng, and write the lines that a channel for it needs.
    Fit(fit::Fit),
    /// Make this host's private key, in a file that nobody else may read and that is never written over, and tell the public one as network.toml has it.
    Key(key::Key),
    /// Be this host's node, which applications reach by a socket, until SIGINT or SIGTERM; its links are then as they were before.
    Serve(serve::Serve),
}

/// Does it.
pub(crate) fn run(what: &Channel) -> Result<u8, Failure> {
    match what {
        Channel::Fit(arguments) => fit::run(arguments),
        Channel::Key(arguments) => key::run(arguments),
        Channel::Serve(arguments) => serve::run(arguments),
    }
}
