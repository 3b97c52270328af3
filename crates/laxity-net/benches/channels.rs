//! What a channel's frames cost: sealed and opened, with a checksum, parsed; and what whoever wants a session costs, whether he may have one or not.
//!
//! `cargo bench -p laxity-net --bench channels`. All contenders in turn in every round, median of 41 rounds. *Bare* is the cipher alone, over as many bytes.

use std::hint::black_box;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Instant as Wall;

use laxity_model::Instant;
use laxity_model::base::number::median;
use laxity_model::channels::signalling::Label;
use laxity_net::channels::frame::{Body, Cipher, Data, Frame, LONGEST, Left, check, checked};
use laxity_net::channels::session::{
    Budget, Came, Identity, Neighbour, Peer, Refused, SecretKey, Terms,
};
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

const ROUNDS: usize = 41;
const NOW: Instant = Instant::ZERO;
static PAYLOAD: [u8; 1400] = [7; 1400];

fn data(payload: &'static [u8]) -> Body<'static> {
    Body::Data(Data {
        channel: Label {
            index: 1,
            generation: 2,
        },
        message: 3,
        part: 0,
        parts: NonZeroU16::MIN,
        earliness: 4,
        left: Left::UNKNOWN,
        best_effort: false,
        payload,
    })
}

fn identity(digit: &str) -> Arc<Identity> {
    let key = SecretKey::from_text(&digit.repeat(64)).expect("a key");
    Arc::new(Identity::new(key))
}

fn peer(own: &Arc<Identity>, other: &Identity, cipher: Cipher) -> Peer {
    let neighbour = Neighbour {
        key: other.public(),
        number: 0,
        cipher,
    };
    // As many frames as the benchmark seals.
    let terms = Terms {
        fresh_frames: u64::MAX,
        most_frames: u64::MAX,
        ..Terms::default()
    };
    Peer::new(Arc::clone(own), neighbour, terms, 0, NOW).expect("another host")
}

fn budget() -> Budget {
    Budget::new(u32::MAX, u32::MAX).expect("a budget")
}

fn first_of(peer: &mut Peer) -> Vec<u8> {
    let mut first = Vec::new();
    peer.poll(NOW, |frame| first = frame.to_vec());
    first
}

/// Two hosts with a session.
fn pair(cipher: Cipher) -> [Peer; 2] {
    let [one, other] = [identity("1"), identity("2")];
    let mut near = peer(&one, &other, cipher);
    let mut far = peer(&other, &one, cipher);
    let mut first = first_of(&mut near);
    let mut answer = Vec::new();
    let came = far.open(NOW, &mut first, &mut budget(), |frame| {
        answer = frame.to_vec();
    });
    assert_eq!(came, Ok(Came::Answered));
    let came = near.open(NOW, &mut answer, &mut budget(), |_| ());
    assert_eq!(came, Ok(Came::Agreed));
    [near, far]
}

/// One piece of work, and how often it is done in a round.
struct Contender {
    name: String,
    each: u32,
    work: Box<dyn FnMut()>,
}

fn contender(name: impl Into<String>, each: u32, work: impl FnMut() + 'static) -> Contender {
    Contender {
        name: name.into(),
        each,
        work: Box::new(work),
    }
}

fn sealed(cipher: Cipher) -> [Contender; 3] {
    let algorithm = match cipher {
        Cipher::AesGcm => &AES_256_GCM,
        Cipher::ChaChaPoly => &CHACHA20_POLY1305,
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, &[1; 32]).expect("a key"));
    let mut bytes = PAYLOAD;
    let bare = contender(
        format!("seal, bare {cipher:?}, 1400 bytes"),
        2_000,
        move || {
            let nonce = Nonce::assume_unique_for_key([0; 12]);
            let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut bytes);
            black_box(tag.expect("sealed").as_ref());
        },
    );
    let mut frame = vec![0; LONGEST];
    let [mut near, _] = pair(cipher);
    let seal = contender(format!("seal, {cipher:?}, 1400 bytes"), 2_000, move || {
        let length = near.seal(NOW, &data(&PAYLOAD), &mut frame);
        black_box(length.expect("a session"));
    });
    let mut frame = vec![0; LONGEST];
    let [mut near, mut far] = pair(cipher);
    let mut budget = budget();
    let both = contender(
        format!("seal and open, {cipher:?}, 1400 bytes"),
        1_000,
        move || {
            let length = near
                .seal(NOW, &data(&PAYLOAD), &mut frame)
                .expect("a session");
            let came = far.open(NOW, &mut frame[..length], &mut budget, |_| ());
            assert!(matches!(came, Ok(Came::Data(_))));
        },
    );
    [bare, seal, both]
}

fn unsealed() -> [Contender; 3] {
    let mut frame = vec![0; LONGEST];
    let length = checked(&data(&PAYLOAD), &mut frame).expect("there is room");
    let whole = frame[..length].to_vec();
    let parsed = whole.clone();
    [
        contender("checksum written, 1400 bytes", 1_000, move || {
            black_box(checked(&data(&PAYLOAD), &mut frame).expect("there is room"));
        }),
        contender("checksum read, 1400 bytes", 1_000, move || {
            let frame = Frame::of_datagram(black_box(&whole)).expect("a frame");
            black_box(check(&frame).expect("sound"));
        }),
        contender("a data frame parsed", 50_000, move || {
            let frame = Frame::of_datagram(black_box(&parsed)).expect("a frame");
            let body = &frame.bytes()[16..frame.bytes().len() - 4];
            black_box(Body::parse(frame.header.kind, body).expect("sound"));
        }),
    ]
}

/// Who wants a session: what it costs that he is refused, and what that he is not.
fn asked() -> [Contender; 4] {
    let [near, far, third] = [identity("1"), identity("2"), identity("3")];
    let cipher = Cipher::AesGcm;
    let refused = |name: &str, each, first: Vec<u8>, mut budget: Budget, expected: Refused| {
        let mut peer = peer(&far, &near, cipher);
        contender(name, each, move || {
            let mut frame = first.clone();
            let came = peer.open(NOW, &mut frame, &mut budget, |_| panic!("an answer"));
            assert_eq!(came, Err(expected));
        })
    };
    let for_another = first_of(&mut peer(&near, &third, cipher));
    let of_another = first_of(&mut peer(&third, &far, cipher));
    let mut spent = Budget::new(1, 1).expect("a budget");
    spent.take(NOW);
    let mut hearing = peer(&far, &near, cipher);
    let first = first_of(&mut peer(&near, &far, cipher));
    let mut enough = budget();
    let mut agreed = contender("first message, heard and answered", 8, move || {
        let mut frame = first.clone();
        let came = hearing.open(NOW, &mut frame, &mut enough, |answer| {
            black_box(answer);
        });
        // After the first time it is stale, and answered all the same.
        assert!(matches!(came, Ok(Came::Answered) | Err(Refused::Stale)));
    });
    (agreed.work)();
    let wrong = Refused::Forged;
    [
        refused(
            "first message, wrong code",
            2_000,
            for_another,
            budget(),
            wrong,
        ),
        refused(
            "first message, over budget",
            2_000,
            of_another.clone(),
            spent,
            Refused::Budget,
        ),
        refused(
            "first message, of somebody else",
            8,
            of_another,
            budget(),
            wrong,
        ),
        agreed,
    ]
}

fn main() {
    let mut contenders: Vec<Contender> = Vec::new();
    for cipher in [Cipher::AesGcm, Cipher::ChaChaPoly] {
        contenders.extend(sealed(cipher));
    }
    contenders.extend(unsealed());
    contenders.extend(asked());
    let mut times: Vec<Vec<u128>> = contenders.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let began = Wall::now();
            for _ in 0..contender.each {
                (contender.work)();
            }
            times.push(began.elapsed().as_nanos());
        }
    }
    for (contender, times) in contenders.iter().zip(times) {
        let middle = median(times.into_iter()).unwrap_or(0);
        let each = middle as f64 / f64::from(contender.each);
        println!("{:40} {each:9.1} ns", contender.name);
    }
}
