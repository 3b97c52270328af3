//! What processes and their coordinator say to each other, understood, damaged and at its longest.

use laxity_model::analysis::{Preemption, Task};
use laxity_model::executor::linked::Linked;
use laxity_model::program::coordinator::{
    Answer, Ask, Bottleneck, Garbled, Item, MOST_BYTES, Presence, Told,
};
use laxity_model::{Service, Span};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::coordinator::item;

fn any_linked() -> impl Strategy<Value = Linked> {
    let numbers = (1..u64::MAX, 1..u64::MAX, 1..u64::MAX, any::<u64>());
    (
        numbers,
        0..4_u8,
        any::<(u64, u64)>(),
        any::<bool>(),
        any::<(u32, u32, u64)>(),
    )
        .prop_map(
            |(
                (cost, period, deadline, jitter),
                kind,
                (longest, last),
                defers,
                (calls, wakes, quanta),
            )| {
                let longest = Service::from_nanos(longest % cost + 1);
                let last = Service::from_nanos(last % longest.as_nanos() + 1);
                let task = Task::new(Service::from_nanos(cost), Span::from_nanos(period)).unwrap();
                let task = task.with_deadline(Span::from_nanos(deadline)).unwrap();
                let regions = match kind {
                    0 => Preemption::Anywhere,
                    1 => Preemption::Floating { longest },
                    2 => Preemption::Fixed { longest, last },
                    _ => Preemption::Never,
                };
                let task = task.with_jitter(Span::from_nanos(jitter));
                Linked {
                    after: (kind == 1).then_some(0),
                    defers,
                    calls,
                    wakes,
                    quanta,
                    ..Linked::alone(task.with_preemption(regions).unwrap())
                }
            },
        )
}

pub(crate) fn any_items() -> impl Strategy<Value = Vec<Item>> {
    vec(("[a-zß]{0,9}", any_linked()), 0..6).prop_map(|items| {
        let item = |(name, linked)| Item { name, linked };
        items.into_iter().map(item).collect()
    })
}

fn any_ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        "[a-z]{0,9}".prop_map(|name| Ask::Join { name }),
        ("[a-z]{0,9}", any::<u16>(), any_items()).prop_map(|(name, seat, items)| Ask::Resume {
            name,
            seat,
            items
        }),
        (any_items(), any::<bool>()).prop_map(|(items, keep)| Ask::Hold { items, keep }),
        any::<u16>().prop_map(Ask::Settled),
        any::<u16>().prop_map(Ask::List),
    ]
}

fn any_answer() -> impl Strategy<Value = Answer> {
    let bottleneck = prop_oneof![
        (0..u16::MAX).prop_map(Bottleneck::Own),
        "[a-z ]{0,20}".prop_map(Bottleneck::Other),
        Just(Bottleneck::All),
    ];
    let told = (any::<[u32; 2]>(), any::<u16>(), any_items()).prop_map(
        |([process, user], seat, items)| Told {
            process,
            user,
            seat,
            name: "executor".to_owned(),
            presence: [
                Presence::Here,
                Presence::Gone,
                Presence::Awaited,
                Presence::Stopped,
            ][usize::from(seat % 4)],
            items,
        },
    );
    prop_oneof![
        any::<(u16, u8)>().prop_map(|(seat, priority)| Answer::Welcome { seat, priority }),
        vec(any::<u64>(), 0..9)
            .prop_map(|all| Answer::Held(all.into_iter().map(Span::from_nanos).collect())),
        (bottleneck, "[a-z ]{0,40}")
            .prop_map(|(bottleneck, reason)| Answer::No { bottleneck, reason }),
        "[a-z ]{0,40}".prop_map(Answer::Refused),
        "[a-z ]{0,40}".prop_map(Answer::NotYet),
        any::<(u16, u32)>().prop_map(|(seat, process)| Answer::Gone { seat, process }),
        told.prop_map(Answer::Process),
        Just(Answer::End),
    ]
}

#[test]
fn the_longest_message_is_no_longer_than_is_said() {
    let name = "ß".repeat(100);
    let items = vec![item(&name, 100, 10); 128];
    let bytes = Ask::Hold { items, keep: true }.encode();
    assert!(bytes.len() <= MOST_BYTES, "{}", bytes.len());
    let Ok(Ask::Hold { items, .. }) = Ask::decode(&bytes) else {
        panic!("it is not understood");
    };
    assert_eq!((items.len(), &*items[7].name), (128, &*"ß".repeat(32)));
    assert_eq!(Ask::decode(&[1, 2]), Err(Garbled::Version));
}

proptest! {
    #[test]
    fn what_is_said_is_understood(ask in any_ask(), answer in any_answer()) {
        prop_assert_eq!(Ask::decode(&ask.encode()), Ok(ask));
        prop_assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
    }

    /// Whatever is damaged: it is another message or none, and what is cut off is none.
    #[test]
    fn what_is_damaged_is_survived(ask in any_ask(), answer in any_answer(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let understood = [|bytes: &[u8]| Ask::decode(bytes).is_ok(), |bytes: &[u8]| Answer::decode(bytes).is_ok()];
        for (mut bytes, understood) in [ask.encode(), answer.encode()].into_iter().zip(understood) {
            let at = at.index(bytes.len());
            prop_assert!(!understood(&bytes[..at]));
            bytes.push(0);
            prop_assert!(!understood(&bytes));
            bytes[at] = byte;
            understood(&bytes);
        }
    }
}
