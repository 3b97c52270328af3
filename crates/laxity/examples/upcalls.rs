//! Two media streams of different periods, and a housekeeper that takes what time is left, in one real-time thread: what they share needs no lock.
//!
//! Takes the right to be FIFO; without it, says why and what to do, and with `fair` as its argument runs as an ordinary thread.

use std::num::NonZeroU32;

use laxity::upcalls::{Call, Error, Options, Rank, Spec, Upcalls};
use laxity::{Service, Span, now};

/// What all handlers have, one after the other.
#[derive(Default)]
struct Totals {
    packets: u64,
    frames: u64,
}

/// A stream of so many packets each period, with a look after every `quantum` of them.
fn stream(name: &str, period: Span, batch: u32, quantum: u32) -> Spec {
    let mut spec = Spec::each(period, Service::from_micros(20));
    spec.name = name.to_owned();
    spec.timing.batch = NonZeroU32::new(batch).unwrap_or(NonZeroU32::MIN);
    spec.timing.quantum = NonZeroU32::new(quantum).unwrap_or(NonZeroU32::MIN);
    spec
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("fair") => options.rank = Rank::Fair,
        Some(other) => {
            return Err(format!("`{other}` is none of its arguments: upcalls [fair]").into());
        }
    }
    let upcalls = Upcalls::sharing(options, Totals::default)?;
    let until_frames = |frames: u64| {
        let mut own = 0;
        move |call: &mut Call<'_, Totals>| {
            call.shared.packets += u64::from(call.now());
            if call.done() + call.now() == 16 {
                (own, call.shared.frames) = (own + 1, call.shared.frames + 1);
            }
            if own == frames {
                call.suspend();
            }
        }
    };
    let video = stream("video", Span::from_millis(20), 16, 4);
    let audio = stream("audio", Span::from_millis(5), 1, 1);
    let video = upcalls.create(video, until_frames(10))?;
    let audio = upcalls.create(audio, |call| call.shared.packets += 1)?;

    // A third that would need more than there is: who would be late is named, and what would fit.
    let mut greedy = stream("greedy", Span::from_millis(2), 1, 1);
    greedy.service = Service::from_millis(3);
    match upcalls.create(greedy, |_| ()) {
        Err(Error::NotAdmitted(why)) => println!("refused: {why}"),
        other => println!("more was admitted than there is: {}", other.is_ok()),
    }

    audio.run()?;
    video.run()?;
    // The video suspends itself after ten frames.
    upcalls.sleep_until(&[&video], now() + Span::from_secs(5))?;
    audio.suspend()?;
    for (name, state, counts) in upcalls.list() {
        println!(
            "{name}: {state:?}, {} calls, {} packets",
            counts.calls, counts.units
        );
    }
    println!("{}", upcalls.grade());
    Ok(())
}
