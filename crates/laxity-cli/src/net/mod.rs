//! `laxity net`: what comes through an interface, recorded and sent again.

mod capture;
pub(crate) mod file;
mod pipes;
mod replay;
mod show;

use clap::{Args, Subcommand};
use laxity::net::{Error, Interface, InterfaceName, Losses, OpenCause, Options, shown};
use laxity::{Instant, Span, Watch, now};
use laxity_lab::plain;
use laxity_lab::scenario::units;

use crate::exit::{CANNOT_RUN, ERROR, Failure, USAGE};
use crate::files;

/// Examples of all that is done.
pub(crate) const HELP: &str = "\
An INTERFACE is named by the way to it: packet:eth0 (a packet socket), xdp:eth0 (the hook of the interface, whose packets the kernel then has no more), tap:lax0,
tun:lax0 (IP alone), or udp:LOCAL-REMOTE, which needs no rights; xdp-native:eth0 is the hook in the driver's own mode. A bare name, or auto:eth0, is a packet socket here, as that is in nobody's way: what comes stays the kernel's, and so does a login over it.

Exit codes: 0 done, also when show or capture is stopped by Ctrl-C; 1 error, also a frame that was not sent, or a replay that was stopped before its end; 4 cannot run here; 64 usage, also a filter that is wrong.

Examples:
  laxity net show                                            which ways there are here, and what each lacks
  laxity net show eth0 --for 5s                              what came, and what became of it
  laxity net capture eth0 udp port 5004 --write video.pcapng
  laxity net capture eth0 --write - | tcpdump -r -           as it comes
  laxity net replay video.pcapng tap:lax0                    at its times
  laxity net replay video.pcapng udp:127.0.0.1:4000-127.0.0.1:4001 --speed 2";

/// What is done.
#[derive(Subcommand, Debug)]
pub(crate) enum Net {
    /// Show the ways to interfaces that there are here; of an interface what comes through it, counted.
    Show(show::Show),
    /// Record packets in a file of pcapng, each with its nanosecond, whose it was, and what became of it.
    Capture(Box<capture::Capture>),
    /// Send the packets of a file of pcap or pcapng at their times.
    Replay(replay::Replay),
}

/// Shows, records or sends.
pub(crate) fn run(what: &Net) -> Result<u8, Failure> {
    match what {
        Net::Show(arguments) => show::run(arguments),
        Net::Capture(arguments) => capture::run(arguments),
        Net::Replay(arguments) => replay::run(arguments),
    }
}

/// What an interface is asked for by whoever looks at it.
#[derive(Args, Debug)]
struct Looking {
    /// Have the interface take frames that are addressed to others, too, until this ends (promiscuous mode); tap:, tun: and udp: see all frames without it.
    #[arg(long, requires = "interface")]
    promiscuous: bool,
}

impl Looking {
    fn options(&self) -> Options {
        let mut options = Options::default();
        options.settings.promiscuous = self.promiscuous;
        options
    }
}

/// So often a wait looks whether the command was stopped.
const LOOKS_EVERY: Span = Span::from_millis(50);

fn span(text: &str) -> Result<Span, String> {
    units::span(text).map_err(|error| error.to_string())
}

/// The interface that is meant. Where no way is named it is the one that takes nothing from anybody.
fn named(text: &str) -> Result<InterfaceName, Failure> {
    let name = text.parse().map_err(|error| failure(&Error::Open(error)))?;
    let InterfaceName::Auto(name) = name else {
        return Ok(name);
    };
    if text.starts_with("auto:") {
        files::say(&plain(&format!(
            "laxity: auto:{name} is packet:{name} here: xdp:{name} would take from the kernel what comes, and so end a login over it"
        )));
    }
    Ok(InterfaceName::Packet(name))
}

/// Says what is taken from the kernel by whoever looks at all that comes.
fn warn(name: &InterfaceName) {
    if let InterfaceName::Xdp(interface, _) = name {
        files::say(&plain(&format!(
            "laxity: {name} takes from the kernel what comes by the first queue of {interface}, and so a login over it, until this ends; packet:{interface} takes nothing"
        )));
    }
}

/// Opens it, and says what is lost or not promised.
fn opened(name: &InterfaceName, options: Options) -> Result<Interface, Failure> {
    let interface = Interface::open_named(name, options).map_err(|error| failure(&error))?;
    if let Some(lost) = interface.lost() {
        files::say(&format!("laxity: {}", plain(lost)));
    }
    Ok(interface)
}

/// What was lost below a driver. What could not be counted is not zero.
fn lost_below(losses: &Losses) -> String {
    let Losses {
        no_room,
        too_long,
        is_partial,
    } = losses;
    let more = if *is_partial {
        ", and perhaps more, which the system does not tell"
    } else {
        ""
    };
    format!("no room {no_room}, too long {too_long}{more}")
}

/// So many of them.
fn number_of(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Why nothing comes or leaves, and what mends that.
const DOWN: &str = "the interface, or the other end of its wire, is down (`ip link set NAME up`)";

/// Whether it is; `None` where it is none of the kernel's, or nobody knows.
fn is_down(interface: &Interface) -> Option<bool> {
    let (_, name) = interface.facts().name.split_once(':')?;
    shown(name).ok().map(|shown| !shown.is_up)
}

/// How often looks at an interface failed, and why last; `None` where none did.
fn failed_looks((count, last): (u64, Option<String>)) -> Option<String> {
    let last = last.unwrap_or_else(|| "nobody knows why".to_owned());
    (count > 0).then(|| format!("looks at the interface that failed: {count}, the last: {last}"))
}

/// With its exit code.
fn failure(error: &Error) -> Failure {
    let code = match error {
        Error::Open(refused) => match refused.cause {
            OpenCause::Name(_) => USAGE,
            OpenCause::NoRawSockets
            | OpenCause::NoPrograms(_)
            | OpenCause::NoInterfaceRights
            | OpenCause::NoTunDevice
            | OpenCause::TunDeviceClosed
            | OpenCause::NoSupport(_)
            | OpenCause::MtuTooLarge(_)
            | OpenCause::NoNative
            | OpenCause::MemoryLocked(_)
            | OpenCause::Program(_) => CANNOT_RUN,
            _ => ERROR,
        },
        Error::Filter(_) => USAGE,
        _ => ERROR,
    };
    Failure::new(code, plain(&error.to_string()).into_owned())
}

/// Until when something lasts, and whether it was stopped.
struct Lasts {
    began: Instant,
    until: Option<Instant>,
    watch: Watch,
}

impl Lasts {
    /// Before an interface is opened: who interrupts it from then on finds it listening.
    fn begin() -> Self {
        Self {
            began: now(),
            until: None,
            watch: Watch::begin(),
        }
    }

    /// From now on, when packets can be seen: opening an interface takes its time.
    fn count(&mut self, lasts: Option<Span>) {
        self.began = now();
        self.until = lasts.and_then(|lasts| self.began.checked_add(lasts));
    }

    fn lasted(&self) -> Span {
        now().saturating_since(self.began)
    }

    fn is_over(&self) -> bool {
        self.watch.caught().is_some() || self.until.is_some_and(|until| until <= now())
    }

    /// How many signals have said that it is to stop.
    fn signals(&self) -> u32 {
        self.watch.times()
    }

    /// Until when to wait before the next look.
    fn look(&self) -> Instant {
        let look = now() + LOOKS_EVERY;
        self.until.map_or(look, |until| until.min(look))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_failed_are_told_with_the_last_cause_and_none_is_nothing() {
        assert_eq!(failed_looks((0, None)), None);
        let told = failed_looks((7, Some("no buffer space".to_owned()))).unwrap();
        assert!(
            told.contains('7') && told.contains("no buffer space"),
            "{told}"
        );
    }
}
