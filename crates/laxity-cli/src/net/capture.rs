//! `laxity net capture`: packets into a file, as they come.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use laxity::net::capture::{Captured, Recording, recorder};
use laxity::net::clients::NoPacket;
use laxity::net::exchange::{Outcome, Reason};
use laxity::net::registry::Fallback;
use laxity::net::{Interface, InterfaceName, Losses};
use laxity::{Span, now};
use laxity_lab::evidence::open_stream;
use laxity_lab::plain;
use laxity_lab::runner::Progress as _;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock as _, PcapNgWriter};
use pcap_file::{DataLink, PcapError};

use super::pipes::Out;
use super::{
    DOWN, Lasts, Looking, failed_looks, failure, is_down, lost_below, named, number_of, opened,
    span, warn,
};
use crate::exit::{ERROR, Failure, MET, failed};
use crate::files;
use crate::outputs;
use crate::progress::Reporter;

/// What `capture` takes.
#[derive(Args, Debug)]
pub(crate) struct Capture {
    /// The interface.
    interface: String,
    /// Only packets that this matches: words of pcap's language, such as `udp port 53`, without `not` (docs/net.md lists them); without one, all.
    filter: Vec<String>,
    /// The file of pcapng; `-` is standard output.
    #[arg(long, short, value_name = "FILE")]
    write: PathBuf,
    /// For so long; without it, until stopped.
    #[arg(long = "for", value_name = "SPAN", value_parser = span)]
    lasts: Option<Span>,
    /// So many packets, and no more.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    looking: Looking,
    /// No progress and no count at the end: only the file, errors, what was lost, and the exit code.
    #[arg(long, short)]
    quiet: bool,
}

/// So many packets may wait to be written, of an interface through which 64 KiB come at a time, and of others.
const WAIT: [usize; 2] = [512, 4_096];
/// What an Ethernet header and a tag take.
const HEADERS: usize = 18;
/// The longest packet that a kernel leaves to be cut, with its headers.
const LONGEST: usize = (64 << 10) + 64;

pub(super) fn run(arguments: &Capture) -> Result<u8, Failure> {
    outputs::check(None, &[("--write", &arguments.write)])?;
    let name = named(&arguments.interface)?;
    let filter = arguments.filter.join(" ");
    let is_long = matches!(name, InterfaceName::Packet(_) | InterfaceName::Tap(_));
    let mut options = arguments.looking.options();
    if is_long {
        // A peer on this machine leaves packets to be cut: they come as they are.
        options.settings.segments = true;
        options.settings.posted = 64;
        options.limits.posted = 64;
    }
    warn(&name);
    let mut lasts = Lasts::begin();
    let interface = opened(&name, options)?;
    let (packets, bytes) = match is_long {
        true => (WAIT[0], LONGEST),
        false => (WAIT[1], interface.facts().mtu + HEADERS),
    };
    if interface.facts().is_shared_with_kernel {
        let left = interface.leave_rest(Fallback::Kernel);
        left.map_err(|error| failure(&error))?;
    }
    let (tap, mut recording) = recorder(packets, bytes);
    let tapped = interface.tap(&filter, tap);
    tapped.map_err(|error| failure(&error))?;
    lasts.count(arguments.lasts);
    let mut target = Target::open(&arguments.write, &interface, (&filter, bytes), &lasts)?;
    let (written, cut) = target.write_all(&mut recording, &lasts, arguments)?;
    conclude(&interface, &recording, written, arguments)?;
    cut.map_or(Ok(MET), |cut| Err(Failure::new(ERROR, cut)))
}

fn conclude(
    interface: &Interface,
    recording: &Recording,
    written: Written,
    arguments: &Capture,
) -> Result<(), Failure> {
    let missed = recording.missed();
    // Of one that is gone nothing is known any more.
    let below = interface.counters().ok().map(|counters| counters.losses);
    let told = told(
        (!arguments.quiet).then_some(written),
        &arguments.write,
        missed,
        below,
    );
    if let Some(told) = told {
        files::say(&format!("laxity: {told}"));
    }
    if is_down(interface) == Some(true) {
        files::say(&format!("laxity: {DOWN}"));
    }
    if let Some(failed) = failed_looks(interface.failures()) {
        files::say(&format!("laxity: {}", plain(&failed)));
    }
    let ended = interface.ended();
    ended.map_or(Ok(()), |ended| Err(Failure::new(ERROR, ended.to_string())))
}

/// What was written to this file, and what is not in it; `None` where the first is not to be told, and nothing is known to be lost.
fn told(
    written: Option<Written>,
    file: &Path,
    missed: u64,
    below: Option<Losses>,
) -> Option<String> {
    let is_lost = missed > 0 || below.is_some_and(|below| below != Losses::default());
    if written.is_none() && !is_lost {
        return None;
    }
    let file = match files::is_stream(file) {
        true => "standard output".into(),
        false => plain(&file.display().to_string()).into_owned(),
    };
    let written = written.map(|Written { packets, lasted }| {
        let packets = number_of(packets, "packet");
        format!("{packets} in {lasted}, written to {file}; ")
    });
    let below = below.map(|losses| format!("; lost below: {}", lost_below(&losses)));
    Some(format!(
        "{}{missed} missed, since too many waited{}",
        written.unwrap_or_default(),
        below.unwrap_or_default()
    ))
}

/// So many packets, and how long they were recorded.
#[derive(Clone, Copy)]
struct Written {
    packets: u64,
    lasted: Span,
}

/// Where the packets go: as they come, so that what was written can be read whatever ends this.
struct Target<'a> {
    writer: PcapNgWriter<BufWriter<Out<'a>>>,
    name: String,
    /// Nanoseconds from the beginning of 1970 to that of the clock.
    epoch: Duration,
}

impl<'a> Target<'a> {
    fn open(
        path: &Path,
        interface: &Interface,
        (filter, bytes): (&str, usize),
        lasts: &'a Lasts,
    ) -> Result<Self, Failure> {
        let name = plain(&path.display().to_string()).into_owned();
        let out = match files::is_stream(path) {
            true => {
                let own = std::io::stdout().as_fd().try_clone_to_owned();
                own.map(File::from).map_err(failed(&name))
            }
            false if path.metadata().is_ok_and(|there| !there.is_file()) => {
                open_stream(path).map_err(|error| Failure::new(ERROR, error.to_string()))
            }
            false => File::create(path).map_err(failed(&name)),
        };
        let out = Out::new(out?, lasts);
        let of_day = SystemTime::now().duration_since(UNIX_EPOCH);
        let of_day = of_day.map_err(failed("the time of day"))?;
        let since = Duration::from_nanos(now().as_nanos());
        let epoch = of_day.checked_sub(since);
        let epoch = epoch.ok_or_else(|| {
            Failure::new(ERROR, "the machine's time of day is before it was started")
        })?;
        let facts = interface.facts();
        let mut options = vec![
            InterfaceDescriptionOption::IfName(Cow::Owned(facts.name.clone())),
            InterfaceDescriptionOption::IfMacAddr(Cow::Owned(facts.address.to_vec())),
            InterfaceDescriptionOption::IfTsResol(9),
        ];
        if !filter.is_empty() {
            // In the words that it was given in.
            let words = [&[0], filter.as_bytes()].concat();
            options.push(InterfaceDescriptionOption::IfFilter(Cow::Owned(words)));
        }
        let description = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: bytes as u32,
            options,
        };
        let begun = PcapNgWriter::new(BufWriter::new(out)).and_then(|mut writer| {
            writer.write_block(&description.into_block())?;
            // That packets are recorded from now on can be seen.
            writer.get_mut().flush().map_err(PcapError::IoError)?;
            Ok(writer)
        });
        let writer = begun.map_err(|error| wrong(&name, &error))?;
        Ok(Self {
            writer,
            name,
            epoch,
        })
    }

    /// Until it is over: what was written, and what is not there since nobody took it.
    fn write_all(
        &mut self,
        recording: &mut Recording,
        lasts: &Lasts,
        arguments: &Capture,
    ) -> Result<(Written, Option<String>), Failure> {
        let (mut packets, mut over) = (0, None);
        let so_far = (&mut packets, &mut over);
        let result = self.write_until_over(recording, lasts, arguments, so_far);
        let lasted = over.unwrap_or_else(|| lasts.lasted());
        let written = Written { packets, lasted };
        let cut = self.out().is_cut().then(|| self.cut(recording));
        match cut {
            None => result.map(|()| (written, None)),
            cut => Ok((written, cut)),
        }
    }

    fn write_until_over(
        &mut self,
        recording: &mut Recording,
        lasts: &Lasts,
        arguments: &Capture,
        (packets, over): (&mut u64, &mut Option<Span>),
    ) -> Result<(), Failure> {
        let mut reporter = Reporter::patient(arguments.quiet);
        let all = |written: u64| arguments.count.unwrap_or(written) as usize;
        while arguments.count.is_none_or(|count| *packets < count) {
            if lasts.is_over() {
                over.get_or_insert_with(|| lasts.lasted());
                // What waits by now is written, and no more comes, however slowly that goes.
                recording.stop();
            }
            match recording.next(Some(lasts.look())) {
                Ok(captured) => {
                    // What was begun counts, as the last bytes may not be there.
                    *packets += 1;
                    self.write(&captured)?;
                    recording.done(captured);
                }
                Err(NoPacket::TimeUp) => {
                    self.flush()?;
                    reporter.tell(*packets as usize, all(*packets), "packets");
                }
                Err(NoPacket::Over) => break,
            }
        }
        reporter.end();
        self.out().end();
        self.flush()
    }

    fn out(&mut self) -> &mut Out<'a> {
        self.writer.get_mut().get_mut()
    }

    /// What is not there, though it was recorded, since nobody takes it.
    fn cut(&mut self, recording: &mut Recording) -> String {
        recording.stop();
        let left = std::iter::from_fn(|| recording.next(Some(now())).ok());
        let left = number_of(left.count() as u64, "packet");
        let bytes = self.writer.get_ref().buffer().len();
        format!(
            "{} took no more: the last {bytes} bytes of what was written are not in it, nor {left} that waited",
            self.name
        )
    }

    fn write(&mut self, captured: &Captured) -> Result<(), Failure> {
        let at = self.epoch + Duration::from_nanos(captured.at.as_nanos());
        let inbound = captured.arrived.is_some();
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: at,
            original_len: captured.length as u32,
            data: Cow::Borrowed(&captured.bytes),
            options: vec![
                EnhancedPacketOption::Comment(Cow::Owned(comment(captured))),
                EnhancedPacketOption::Flags(if inbound { 1 } else { 2 }),
            ],
        };
        let written = self.writer.write_block(&block.into_block());
        written.map(drop).map_err(|error| wrong(&self.name, &error))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.writer.get_mut().flush();
        flushed.map_err(failed(&self.name))
    }
}

fn wrong(name: &str, error: &PcapError) -> Failure {
    match error {
        // Its words are of reading, whatever failed.
        PcapError::IoError(error) => failed(name)(error),
        error => Failure::new(ERROR, format!("{name}: {error}")),
    }
}

/// Whose a packet was, and what became of it.
fn comment(captured: &Captured) -> String {
    let Some(outcome) = captured.outcome else {
        return "sent".to_owned();
    };
    let what = match outcome {
        Outcome::Swapped => "received",
        Outcome::Copied => "received, copied",
        Outcome::Peeked => "looked at",
        Outcome::Kernels => return "the kernel's".to_owned(),
        Outcome::Dropped(reason) => match reason {
            Reason::NoBuffer => "dropped: no buffer",
            Reason::TooLong => "dropped: too long for its buffer",
            Reason::Malformed => return "malformed".to_owned(),
            Reason::Nobodys => return "nobody's".to_owned(),
            Reason::Closed => "dropped: the client has ended",
            Reason::Panicked => "dropped: the client panicked",
            Reason::Refused => "dropped: the client had no room",
        },
    };
    match captured.whose {
        Some(client) => format!("client {client}: {what}"),
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use laxity::Instant;
    use laxity::net::Options;
    use laxity::net::registry::ClientId;

    use super::*;

    /// Whoever wants to hear nothing hears what is missing all the same.
    #[test]
    fn what_was_lost_below_is_told_in_any_case() {
        let file = Path::new("x.pcapng");
        let none = Losses::default();
        let some = Losses { no_room: 7, ..none };
        let partial = Losses {
            is_partial: true,
            ..none
        };
        assert_eq!(told(None, file, 0, None), None);
        assert_eq!(told(None, file, 0, Some(none)), None);
        let lost = told(None, file, 0, Some(some)).unwrap();
        assert!(lost.contains("no room 7"), "{lost}");
        let lost = told(None, file, 0, Some(partial)).unwrap();
        assert!(lost.contains("perhaps more"), "{lost}");
        let lost = told(None, file, 2, None).unwrap();
        assert!(lost.contains("2 missed"), "{lost}");
        let written = Written {
            packets: 5,
            lasted: Span::from_millis(20),
        };
        let all = told(Some(written), file, 0, Some(none)).unwrap();
        assert!(
            all.starts_with("5 packets in 20ms, written to x.pcapng; 0 missed"),
            "{all}"
        );
    }

    /// It is in nobody's counters any more.
    #[test]
    fn a_capture_whose_driver_panicked_is_an_error() {
        let name = named("udp:127.0.0.1:0-127.0.0.1:9").unwrap();
        let interface = opened(&name, Options::default()).unwrap();
        let recording = recorder(1, 1).1;
        let arguments = Capture {
            interface: String::new(),
            filter: Vec::new(),
            write: "-".into(),
            lasts: None,
            count: None,
            looking: Looking { promiscuous: false },
            quiet: true,
        };
        let written = Written {
            packets: 0,
            lasted: Span::ZERO,
        };
        let concluded = || conclude(&interface, &recording, written, &arguments);
        assert!(concluded().is_ok());
        let asked = interface.ask(|_| panic!("on purpose"));
        assert!(asked.is_err());
        let failure = concluded().unwrap_err();
        assert!(failure.message.contains("panicked"), "{failure:?}");
    }

    #[test]
    fn a_comment_says_whose_it_was_and_what_became_of_it() {
        let of = |whose: Option<u32>, outcome| {
            comment(&Captured {
                at: Instant::ZERO,
                arrived: None,
                bytes: Vec::new(),
                length: 0,
                whose: whose.map(ClientId),
                outcome,
            })
        };
        assert_eq!(of(None, None), "sent");
        assert_eq!(of(Some(3), Some(Outcome::Swapped)), "client 3: received");
        let dropped = |reason| Some(Outcome::Dropped(reason));
        assert_eq!(
            of(Some(3), dropped(Reason::NoBuffer)),
            "client 3: dropped: no buffer"
        );
        assert_eq!(of(None, dropped(Reason::Nobodys)), "nobody's");
        assert_eq!(of(None, Some(Outcome::Kernels)), "the kernel's");
    }
}
