//! `laxity net replay`: the packets of a file, sent at their times.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use laxity::net::buffers::{Buffer, Filled, Pool, Sending, Unavailable};
use laxity::net::client::{Client, Context, News};
use laxity::net::{AnyMemory, EarlyOptions, Interface, InterfaceName, Options, Rest};
use laxity::{Instant, Span, now, sleep_until};
use laxity_lab::capture_file::Frame;
use laxity_lab::plain;
use laxity_lab::runner::Progress as _;
use laxity_model::nif::link::LinkError;
use serde_json::json;

use super::file::Named;
use super::{DOWN, Lasts, failed_looks, failure, is_down, named, number_of, opened};
use crate::exit::{ERROR, Failure, MET};
use crate::files;
use crate::outputs::{self, Json};
use crate::progress::Reporter;

/// What `replay` takes.
#[derive(Args, Debug)]
pub(crate) struct Replay {
    /// The file of pcap or pcapng; `-` is standard input.
    file: PathBuf,
    /// The interface.
    interface: String,
    /// So many times as fast.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
    /// Each as soon as the one before it has left.
    #[arg(long, conflicts_with = "speed")]
    as_fast: bool,
    #[command(flatten)]
    json: Json,
    /// No progress and no count at the end: only errors and the exit code.
    #[arg(long, short)]
    quiet: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: Option<f64> = text.parse().ok();
    let possible = speed.filter(|speed| (0.001..=1_000_000.0).contains(speed));
    possible
        .ok_or_else(|| "a factor is a number from 0.001 to 1000000, such as 2 or 0.5".to_owned())
}

/// A frame of which it is told by more than this after its time that it has left is late.
const LATE: Span = Span::from_millis(1);
/// So many frames may be on their way.
const FRAMES: u32 = 64;
/// Frames that are on their way when all were handed over, or as many as may be, are waited for so long.
const PATIENCE: Span = Span::from_secs(2);

/// What became of frames, as their driver tells.
#[derive(Default)]
struct Sent {
    sent: AtomicU64,
    refused: AtomicU64,
    /// Why the last one was refused.
    why: Mutex<Option<LinkError>>,
    /// What waits in the kernel then may never be told of.
    was_down: AtomicBool,
    /// How many left so much later than they were due, and by how much at the most, in nanoseconds.
    late: AtomicU64,
    most_late: AtomicU64,
}

impl Sent {
    /// A frame that was due then has left.
    fn left(&self, due: Instant, at: Instant) {
        let late = at.saturating_since(due);
        self.late
            .fetch_add(u64::from(late > LATE), Ordering::Relaxed);
        self.most_late.fetch_max(late.as_nanos(), Ordering::Relaxed);
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Of how many frames it is told what became of them.
    fn told(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) + self.refused.load(Ordering::Relaxed)
    }
}

struct Told(Arc<Sent>);

impl Client<AnyMemory> for Told {
    fn receive(&mut self, _: Buffer<AnyMemory, Filled>, _: &mut Context<'_>) {}

    fn sent(&mut self, due: u64, outcome: Result<(), LinkError>, _: &mut Context<'_>) {
        let Err(error) = outcome else {
            self.0.left(Instant::from_nanos(due), now());
            return;
        };
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        // Who reads it just now has one like it.
        if let Ok(mut why) = self.0.why.try_lock() {
            *why = Some(error);
        }
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        if news == News::Down {
            self.0.was_down.store(true, Ordering::Relaxed);
        }
    }
}

/// What was done so far.
#[derive(Default)]
struct Done {
    /// Frames of the file.
    frames: u64,
    handed: u64,
    /// Of which the file has only a part, or which are too long for the interface.
    unsendable: u64,
    /// The signal that stopped it before the end of the file.
    interrupted: Option<&'static str>,
    /// No frame had left for too long.
    is_stuck: bool,
    /// The interface ended, and the file has more.
    is_cut: bool,
}

pub(super) fn run(arguments: &Replay) -> Result<u8, Failure> {
    outputs::check(Some(&arguments.file), arguments.json.output().as_slice())?;
    let lasts = Lasts::begin();
    let mut packets = Named::open(&arguments.file, Some(&lasts.watch))?;
    let name = named(&arguments.interface)?;
    let mut options = Options::default();
    options.limits.reach = options.settings.reach;
    if let InterfaceName::Xdp(..) = name {
        // It only sends: what comes is the kernel's.
        options.early = Some(EarlyOptions {
            flows: 1,
            buffers: 1,
            rest: Rest::Kernel,
        });
    }
    let interface = opened(&name, options)?;
    let sent = Arc::new(Sent {
        was_down: (is_down(&interface) == Some(true)).into(),
        ..Sent::default()
    });
    let sender = interface.sender(FRAMES, Told(Arc::clone(&sent)));
    let pool = sender.map_err(|error| failure(&error))?.pool;
    let began = now();
    let mut replayed = Replayed {
        interface: &interface,
        pool: &pool,
        lasts: &lasts,
        first: None,
        done: Done::default(),
    };
    let mut reporter = Reporter::patient(arguments.quiet);
    let stopped = replayed.send_all(&mut packets, arguments, &mut reporter);
    let done = replayed.done;
    // Since the last one left.
    let (mut told, mut until) = (sent.told(), now() + PATIENCE);
    while told < done.handed && now() < until && interface.ended().is_none() {
        sleep_until(now() + Span::from_millis(1));
        if sent.told() > told {
            (told, until) = (sent.told(), now() + PATIENCE);
        }
    }
    reporter.end();
    let lasted = now().saturating_since(began);
    if stopped.is_ok() || done.frames > 0 {
        tell(&done, &sent, stopped.is_err(), lasted, arguments)?;
    }
    if let Some(failed) = failed_looks(interface.failures()) {
        files::say(&format!("laxity: {}", plain(&failed)));
    }
    stopped?;
    conclude(&interface, &done, &sent)
}

fn conclude(interface: &Interface, done: &Done, sent: &Sent) -> Result<u8, Failure> {
    let ended = interface.ended().map(|ended| ended.to_string());
    let is_gone = done.is_cut.then(|| "the interface is gone".to_owned());
    if let Some(ended) = ended.or(is_gone) {
        let rest = match done.is_cut {
            true => format!("; from frame {} on the file was not sent", done.frames + 1),
            false => String::new(),
        };
        return Err(Failure::new(ERROR, format!("{ended}{rest}")));
    }
    let has_left = sent.sent.load(Ordering::Relaxed);
    let rest = match (done.interrupted, done.is_stuck) {
        (Some(signal), _) => Some(format!(
            "interrupted by {signal}: what else the file has was not sent"
        )),
        (None, true) => Some(format!(
            "from frame {} on the file was not sent",
            done.frames + 1
        )),
        (None, false) => None,
    };
    if has_left == done.frames {
        return rest.map_or(Ok(MET), |rest| Err(Failure::new(ERROR, rest)));
    }
    let refused = sent.refused.load(Ordering::Relaxed);
    let why = sent.why.lock().unwrap_or_else(PoisonError::into_inner);
    let why = match why.as_ref() {
        Some(LinkError::Down) => DOWN.to_owned(),
        why => why.map(ToString::to_string).unwrap_or_default(),
    };
    let doubt = if sent.was_down.load(Ordering::Relaxed) {
        ""
    } else {
        "?"
    };
    let causes = [
        (
            done.unsendable,
            "too long for the interface, or cut in the file".to_owned(),
        ),
        (refused, format!("refused, the last: {why}")),
        (
            done.handed.saturating_sub(has_left + refused),
            format!("not gone after {PATIENCE}; {DOWN}{doubt}"),
        ),
    ];
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    let causes = causes.map(|(count, why)| format!("{count} {why}"));
    let causes = causes.collect::<Vec<_>>().join("; ");
    let missing = number_of(done.frames - has_left.min(done.frames), "frame");
    let rest = rest.map_or_else(String::new, |rest| format!("{rest}; "));
    let message = format!("{rest}{missing} not sent: {causes}");
    Err(Failure::new(ERROR, plain(&message).into_owned()))
}

/// `failed`: the file has more, which cannot be read.
fn tell(
    done: &Done,
    sent: &Sent,
    failed: bool,
    lasted: Span,
    arguments: &Replay,
) -> Result<(), Failure> {
    let (left, refused) = (
        sent.sent.load(Ordering::Relaxed),
        sent.refused.load(Ordering::Relaxed),
    );
    let late = sent.late.load(Ordering::Relaxed);
    let most_late = Span::from_nanos(sent.most_late.load(Ordering::Relaxed));
    let most = match late {
        0 => String::new(),
        _ => format!(", {most_late} the most"),
    };
    let of = match failed || done.interrupted.is_some() || done.is_stuck {
        true => "the first ",
        false => "",
    };
    let frames = number_of(done.frames, "frame");
    let text = format!(
        "laxity: {left} of {of}{frames} sent in {lasted}; {} late by more than {LATE}{most}; {} refused, {} that cannot be sent whole",
        late, refused, done.unsendable
    );
    if !arguments.quiet {
        files::say(&text);
    }
    if arguments.json.path().is_none() {
        return Ok(());
    }
    outputs::tell(&arguments.json, String::new, || {
        let all = json!({
            "file_version": 1,
            "frames": done.frames,
            "sent": left,
            "refused": refused,
            "unsendable": done.unsendable,
            "interrupted": done.interrupted,
            "stuck": done.is_stuck,
            "late": late,
            "late_max_ns": most_late.as_nanos(),
            "lasted_ns": lasted.as_nanos(),
        });
        Ok(format!("{all:#}\n").into_bytes())
    })
}

/// Frames on their way out of a file.
struct Replayed<'a> {
    interface: &'a Interface,
    pool: &'a Pool<AnyMemory>,
    lasts: &'a Lasts,
    /// When the first frame with a time was sent, and its time.
    first: Option<(Instant, u64)>,
    done: Done,
}

impl Replayed<'_> {
    fn is_over(&self) -> bool {
        self.lasts.is_over() || self.interface.ended().is_some()
    }

    /// Until the file is at its end, or it is stopped.
    fn send_all(
        &mut self,
        packets: &mut Named<'_>,
        arguments: &Replay,
        reporter: &mut Reporter,
    ) -> Result<(), Failure> {
        loop {
            let frame = match packets.next() {
                None => return Ok(()),
                // It was stopped while it read.
                Some(Err(_)) if self.lasts.watch.caught().is_some() => break,
                Some(frame) => frame?,
            };
            let due = match arguments.as_fast {
                true => None,
                false => self.due(&frame, arguments.speed),
            };
            self.wait(due);
            // Stopped while it waits for its time, or for a buffer, it is not sent before that, nor missing.
            if self.is_over() || !self.send(&frame, due) {
                break;
            }
            self.done.frames += 1;
            let frames = self.done.frames as usize;
            reporter.tell(frames, frames, "frames");
        }
        self.done.interrupted = self.lasts.watch.caught();
        self.done.is_cut |= self.interface.ended().is_some();
        Ok(())
    }

    /// When a frame is to be sent: as long after the first as it was, by the speed.
    fn due(&mut self, frame: &Frame, speed: f64) -> Option<Instant> {
        let at = frame.at_ns?;
        let (began, first) = *self.first.get_or_insert_with(|| (now(), at));
        // One that is told to be earlier than the first is sent at once.
        let after = at.saturating_sub(first) as f64 / speed;
        Some(
            began
                .checked_add(Span::from_nanos(after as u64))
                .unwrap_or(Instant::MAX),
        )
    }

    fn wait(&self, due: Option<Instant>) {
        let Some(due) = due else {
            return;
        };
        while now() < due && !self.is_over() {
            sleep_until(due.min(self.lasts.look()));
        }
    }

    /// Hands one over, if that is possible; `false` if it was stopped before.
    fn send(&mut self, frame: &Frame, due: Option<Instant>) -> bool {
        if !frame.is_whole() {
            self.done.unsendable += 1;
            return true;
        }
        let until = now() + PATIENCE;
        let empty = loop {
            match self.pool.wait(Some(self.lasts.look())) {
                Ok(empty) => break empty,
                Err(Unavailable::NoneFree) if self.is_over() => return false,
                Err(Unavailable::NoneFree) => {
                    self.done.is_stuck = now() >= until;
                    if self.done.is_stuck {
                        return false;
                    }
                }
                // The interface is gone: nothing more is sent.
                Err(_) => {
                    self.done.is_cut = true;
                    return false;
                }
            }
        };
        let filled = empty.fill(&frame.bytes);
        let Ok(filled) = filled else {
            self.done.unsendable += 1;
            return true;
        };
        let sending = Sending {
            tag: due.unwrap_or(Instant::MAX).as_nanos(),
            ..Sending::default()
        };
        let is_handed = filled.send(sending).is_ok();
        self.done.handed += u64::from(is_handed);
        self.done.is_cut |= !is_handed;
        is_handed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_waited_for_a_buffer_when_it_was_stopped_is_not_missing() {
        let name = named("udp:127.0.0.1:0-127.0.0.1:9").unwrap();
        let interface = Interface::open_named(&name, Options::default()).unwrap();
        let sender = interface.sender(0, Told(Arc::default())).unwrap();
        let mut lasts = Lasts::begin();
        lasts.count(Some(Span::from_millis(20)));
        let mut replayed = Replayed {
            interface: &interface,
            pool: &sender.pool,
            lasts: &lasts,
            first: None,
            done: Done::default(),
        };
        let frame = Frame {
            at_ns: None,
            bytes: vec![0; 60],
            length: 60,
        };
        assert!(!replayed.send(&frame, None));
        assert!(replayed.is_over() && replayed.done.handed == 0);
    }

    #[test]
    fn a_frame_is_late_by_when_it_left() {
        let sent = Sent::default();
        let at = Instant::from_millis;
        for (due, left) in [(10, 10), (20, 21), (30, 32), (40, 1_040)] {
            sent.left(at(due), at(left));
        }
        sent.left(Instant::MAX, at(2_000));
        let told = [&sent.sent, &sent.late, &sent.most_late];
        let told = told.map(|count| count.load(Ordering::Relaxed));
        assert_eq!(told, [5, 2, 1_000_000_000]);
    }

    #[test]
    fn a_speed_is_a_number_above_zero() {
        assert_eq!(speed("2"), Ok(2.0));
        assert_eq!(speed("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "x", "inf", "NaN", ""] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
    }
}
