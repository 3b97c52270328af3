//! What is encoded is parsed, what is parsed would be encoded so, and nothing else is a frame.

use laxity_model::channels::signalling::message::LISTED;
use laxity_net::channels::frame::{
    Body, CHECKSUM, Carrier, DATA, Frame, HEADER, LONGEST, MOST_OVERHEAD, Malformed, NoRoom,
    SIGNAL_PAYLOAD, TAG, check, checked,
};
use proptest::prelude::*;

use super::bodies::{KINDS, example, parts};

fn encoded(body: &Body<'_>) -> Vec<u8> {
    let mut out = vec![0xaa; LONGEST];
    let length = checked(body, &mut out).expect("there is room");
    out.truncate(length);
    out
}

fn parsed(bytes: &[u8]) -> Result<Body<'_>, Malformed> {
    check(&Frame::of_datagram(bytes)?)
}

/// An example of every kind of frame.
fn examples() -> impl Iterator<Item = Vec<u8>> {
    (0..KINDS).map(|kind| {
        let parts = example(kind);
        encoded(&parts.body())
    })
}

proptest! {
    #[test]
    fn a_body_comes_out_as_it_went_in(parts in parts(), padding in 0..50_usize) {
        let body = parts.body();
        let mut bytes = encoded(&body);
        prop_assert_eq!(parsed(&bytes), Ok(body.clone()));
        if let Body::Signal(_) = body {
            prop_assert!(body.length() <= DATA + SIGNAL_PAYLOAD.get() as usize);
        }
        let length = bytes.len();
        bytes.resize(length + padding, 0x55);
        let padded = Frame::of_padded(&bytes).and_then(|frame| check(&frame));
        prop_assert_eq!(padded, Ok(body.clone()));
        if padding > 0 {
            prop_assert_eq!(parsed(&bytes), Err(Malformed::Long));
        }
        let mut little = vec![0; length - 1];
        prop_assert_eq!(checked(&body, &mut little), Err(NoRoom { needed: length }));
    }

    /// Whatever bytes a body is read from, those it would be written to.
    #[test]
    fn what_is_a_body_is_written_like_that(
        parts in parts(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 0..4),
        cut in 0..3_usize,
    ) {
        let body = parts.body();
        let mut bytes = vec![0; body.length()];
        body.write(&mut bytes);
        for (place, how, value) in changes {
            let place = place.index(bytes.len());
            match how {
                0 => bytes[place] = value,
                1 => bytes[place] = bytes[place].wrapping_add(1),
                _ => bytes.insert(place, value),
            }
        }
        bytes.truncate(bytes.len() - cut);
        if let Ok(body) = Body::parse(body.kind(), &bytes) {
            let mut again = vec![0; body.length()];
            body.write(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn any_bytes_are_looked_at(bytes in prop::collection::vec(any::<u8>(), 0..100), length in any::<u16>()) {
        let _ = parsed(&bytes);
        let mut framed = vec![1, 1];
        framed.extend(length.to_be_bytes());
        framed.extend(bytes);
        let _ = parsed(&framed);
    }
}

#[test]
fn whatever_is_damaged_is_refused() {
    for bytes in examples() {
        assert!(parsed(&bytes).is_ok());
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(parsed(&flipped).is_err(), "bit {bit} of {bytes:02x?}");
        }
        for length in 0..bytes.len() {
            assert!(
                parsed(&bytes[..length]).is_err(),
                "{length} of {bytes:02x?}"
            );
        }
    }
}

#[test]
fn no_frame_is_longer_than_any() {
    let parts = example(0);
    let Body::Data(data) = parts.body() else {
        panic!("data");
    };
    let room = LONGEST - HEADER - DATA - CHECKSUM;
    let payload = vec![1; room + 1];
    let mut out = vec![0; 2 * LONGEST];
    let of = |payload| Body::Data(laxity_net::channels::frame::Data { payload, ..data });
    assert_eq!(checked(&of(&payload[..room]), &mut out), Ok(LONGEST));
    let needed = LONGEST + 1;
    assert_eq!(checked(&of(&payload), &mut out), Err(NoRoom { needed }));
}

/// What the analysis counts beside a payload is what is there beside it.
#[test]
fn the_overhead_is_what_is_beside_the_payload() {
    let parts = example(0);
    let bytes = encoded(&parts.body());
    let Body::Data(data) = parts.body() else {
        panic!("data");
    };
    let beside = bytes.len() - data.payload.len();
    for carrier in [Carrier::UdpIpv4, Carrier::UdpIpv6, Carrier::Ethernet] {
        assert_eq!(carrier.overhead(false), beside + carrier.headers());
        assert_eq!(
            carrier.overhead(true),
            carrier.overhead(false) + TAG - CHECKSUM
        );
        assert!(carrier.overhead(true) <= MOST_OVERHEAD);
        let payload = carrier
            .largest_payload(1500, true)
            .expect("a packet of Ethernet");
        assert_eq!(payload + carrier.overhead(true), 1500 + 14);
        assert_eq!(carrier.largest_payload(30, true), None);
        let jumbo = carrier.largest_payload(usize::MAX, true).expect("room");
        assert_eq!(jumbo + HEADER + DATA + TAG, LONGEST);
    }
}

/// A list of all channels that one has room for.
#[test]
fn the_longest_signal_is_as_long_as_the_analysis_counts() {
    let mut parts = example(14);
    parts.lists.names = (0..LISTED as u32).map(|number| (1, 2, number)).collect();
    let bytes = encoded(&parts.body());
    let as_data = HEADER + DATA + SIGNAL_PAYLOAD.get() as usize + CHECKSUM;
    assert_eq!(bytes.len(), as_data);
    let lower = Carrier::UdpIpv6.headers();
    let frame = Carrier::UdpIpv6.overhead(false) + SIGNAL_PAYLOAD.get() as usize;
    assert_eq!(bytes.len() + lower, frame);
}

#[test]
fn a_list_is_in_rising_order_and_has_each_channel_once() {
    let parts = example(14);
    let body = parts.body();
    let mut bytes = vec![0; body.length()];
    body.write(&mut bytes);
    let names = bytes.len() - 24;
    let mut turned = bytes.clone();
    turned[names..].rotate_left(12);
    let mut twice = bytes.clone();
    twice.copy_within(names..names + 12, names + 12);
    for wrong in [turned, twice] {
        let refused = Body::parse(body.kind(), &wrong);
        assert_eq!(refused, Err(Malformed::Field("the order of a list")));
    }
}

/// What a field of an example that has `good` there is with `bad` in its place.
fn with(kind: u8, place: usize, good: &[u8], bad: &[u8]) -> Malformed {
    let parts = example(kind);
    let body = parts.body();
    let mut bytes = vec![0; body.length()];
    body.write(&mut bytes);
    let field = &mut bytes[place..place + good.len()];
    assert_eq!(field, good, "the field is not there");
    field.copy_from_slice(bad);
    Body::parse(body.kind(), &bytes).expect_err("it is refused")
}

/// The content of a signal begins behind 36 bytes of its own and of the message's number.
#[test]
fn what_the_model_cannot_say_is_refused() {
    let at = |place| 36 + place;
    let traffic = Malformed::Field("what a channel may send");
    let length = Malformed::Field("the length of a list");
    let name = Malformed::Field("a channel's name");
    // Behind the hold: messages, period, burst, largest, discard; behind within and propagation: hosts, delays, bytes of the name.
    let open: [(usize, &[u8], &[u8], Malformed); 13] = [
        (16, &[0, 0, 0, 1], &[0, 0, 0, 0], traffic),
        (16, &[0, 0, 0, 1], &[0, 0, 0, 3], traffic),
        (27, &[2], &[0], traffic),
        (31, &[3], &[0], traffic),
        (35, &[4], &[0], traffic),
        (
            39,
            &[1],
            &[2],
            Malformed::Field("what becomes of what is late"),
        ),
        (56, &[0, 3], &[0, 1], length),
        (56, &[0, 3], &[0, 17], length),
        (58, &[0, 2], &[0, 3], length),
        (60, &[0, 0, 0, 10], &[0, 0, 0, 0], name),
        (60, &[0, 0, 0, 10], &[0, 0, 0, 11], Malformed::Short),
        (60, &[0, 0, 0, 10], &[0, 0, 0, 9], Malformed::Long),
        (92, b"arm/joints", b"arm joints", name),
    ];
    for (place, good, bad, expected) in open {
        assert_eq!(with(7, at(place), good, bad), expected, "{place}: {bad:?}");
    }
    for bad in [0, 17] {
        assert_eq!(with(8, at(35), &[2], &[bad]), length);
    }
    // The upper half of the size that would fit.
    let size = Malformed::Field("the size that would fit");
    assert_eq!(with(16, at(59), &[0], &[1]), size);
    for zero in [at(43), at(51)] {
        let refused = with(20, zero, &[0], &[1]);
        assert_eq!(refused, Malformed::Field("what is to be zero"));
    }
}
