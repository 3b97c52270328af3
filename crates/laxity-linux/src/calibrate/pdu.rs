//! What the work on a PDU takes, by its size: what an upcall is mapped by.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use laxity_model::Service;
use laxity_model::analysis::devices::with_margin;
use laxity_model::program::upcalls::qos::{Cost, Unmappable};

use crate::os::clock;

/// Stretches of each size of a PDU.
const STRETCHES: usize = 60;
/// So long a stretch lasts at least: to read the clock is nothing beside it, and a quantum is as long.
const STRETCH: Service = Service::from_micros(50);
/// Sizes of the UDP messages of which [`Calibration::udp_message`](super::Calibration::udp_message) was measured, in bytes: those of the experiments of *Real-time Upcalls* (Gopalakrishnan, Parulkar, 1995, §7.3).
pub const MESSAGE_BYTES: [u32; 3] = [512, 2_048, 8_192];
/// Who waits so long for a message that was sent has lost it.
const PATIENCE: Duration = Duration::from_millis(500);
/// What takes less than a nanosecond is not repeated until it has lasted.
const MOST_REPEATED: u32 = 1 << 16;

/// What `work` takes, which is what a handler does with a PDU of so many bytes: measured for each of these sizes by the processor time of the calling thread, in stretches of 50 µs and more, of which the slowest of twenty
/// does not count, since interrupts and a halting machine are no work. [A quarter more](laxity_model::analysis::devices::MARGIN_PPM) than the slowest that is left is taken, and no size exceeds the cost. It takes some
/// milliseconds a size, and sees the machine as it is: measure where and when the upcalls will run.
///
/// # Errors
///
/// [`Unmappable::TooFewSizes`]: one size tells nothing of others.
pub fn pdu_cost(sizes: &[u32], mut work: impl FnMut(u32)) -> Result<Cost, Unmappable> {
    cost_of(sizes, STRETCHES, |bytes, times| {
        let before = clock::thread_service();
        for _ in 0..times {
            work(bytes);
        }
        clock::thread_service().saturating_sub(before)
    })
}

/// The same of work on so many PDUs of so many bytes that tells itself what all of them took, such as without what is made ready before; in so many stretches of each size.
///
/// # Errors
///
/// [`Unmappable::TooFewSizes`].
pub fn cost_of(
    sizes: &[u32],
    stretches: usize,
    mut takes: impl FnMut(u32, u32) -> Service,
) -> Result<Cost, Unmappable> {
    let mut measured: Vec<(u32, u32, Vec<u64>)> = Vec::new();
    for &bytes in sizes {
        let mut times = 1;
        while takes(bytes, times) < STRETCH && times < MOST_REPEATED {
            times *= 2;
        }
        measured.push((bytes, times, Vec::with_capacity(stretches)));
    }
    // All sizes meet the same moments of the machine.
    for _ in 0..stretches {
        for (bytes, times, took) in &mut measured {
            let stretch = takes(*bytes, *times).as_nanos();
            took.push(stretch.div_ceil(u64::from(*times)));
        }
    }
    let slowest = |(bytes, _, mut took): (u32, u32, Vec<u64>)| {
        took.sort_unstable();
        let kept = Service::from_nanos(took[(stretches * 19 / 20).max(1) - 1]);
        (bytes, with_margin(kept))
    };
    let samples: Vec<(u32, Service)> = measured.into_iter().map(slowest).collect();
    Cost::of_samples(&samples)
}

/// What a UDP message takes that the calling thread sends to itself over loopback and receives, both together: measured for each of these sizes, in bytes, as [`pdu_cost`] does.
///
/// # Errors
///
/// Why that cannot be measured here, in words.
pub fn message_cost(sizes: &[u32]) -> Result<Cost, String> {
    let failed = |error: io::Error| format!("no UDP message passes over loopback: {error}");
    let [client, server] = loopback().map_err(failed)?;
    let mut room = vec![0_u8; sizes.iter().max().map_or(0, |most| *most as usize)];
    let mut lost = None;
    let cost = pdu_cost(sizes, |bytes| {
        // Nothing is waited for again after the first that does not arrive.
        if lost.is_none() {
            let room = &mut room[..bytes as usize];
            lost = client.send(room).and_then(|_| server.recv(room)).err();
        }
    });
    match lost {
        Some(error) => Err(failed(error)),
        None => cost.map_err(|error| error.to_string()),
    }
}

/// Two sockets of this machine that know nobody but each other.
fn loopback() -> io::Result<[UdpSocket; 2]> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let [client, server] = [bind()?, bind()?];
    client.connect(server.local_addr()?)?;
    server.connect(client.local_addr()?)?;
    server.set_read_timeout(Some(PATIENCE))?;
    Ok([client, server])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_over_loopback_takes_something() {
        let cost = message_cost(&MESSAGE_BYTES).unwrap();
        assert!(cost.of(MESSAGE_BYTES[0]) > Service::ZERO, "{cost:?}");
    }

    #[test]
    fn no_pdu_takes_more_than_its_cost() {
        let of = |bytes: u32| Service::from_micros(5) + Service::from_nanos(u64::from(bytes) * 20);
        let work = |bytes| {
            let until = clock::thread_service() + of(bytes);
            while clock::thread_service() < until {}
        };
        let cost = pdu_cost(&[100, 700, 1_500], work).unwrap();
        for bytes in [100, 700, 1_500] {
            assert!(cost.of(bytes) >= with_margin(of(bytes)), "{cost:?}");
        }
        let one = pdu_cost(&[100, 100], |_| ());
        assert_eq!(one, Err(Unmappable::TooFewSizes));
        assert_eq!(pdu_cost(&[], |_| ()), Err(Unmappable::TooFewSizes));
    }
}
