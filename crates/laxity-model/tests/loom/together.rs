//! What processes share that take turns, under every interleaving of their threads that the memory model allows: no request is lost, and one has the baton.

use laxity_model::executor::Claim;
use laxity_model::program::together::{Act, Member, Others, Region, Sentinel, Vigil};
use laxity_model::{Instant, Span};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::SeqCst};
use loom::thread;

type Shared = Region<2, 1>;

const NOW: Instant = Instant::from_micros(1);
const LATER: Instant = Instant::from_micros(3);

fn member(region: &Arc<Shared>, seat: u16) -> Member<Arc<Shared>> {
    region.gives(seat);
    Member::sit(Arc::clone(region), seat, 1).unwrap()
}

/// Two processes: the first works, the second has nothing to do and waits.
fn two() -> (Arc<Shared>, [Member<Arc<Shared>>; 2]) {
    let region = Arc::new(Shared::default());
    let mut all = [0, 1].map(|seat| member(&region, seat));
    for member in &mut all {
        member.publish(NOW, &mut std::iter::empty());
    }
    assert_eq!(all[0].wait(NOW), Act::Took);
    all[0].hear();
    assert!(matches!(all[1].wait(NOW), Act::Sleep { .. }));
    // The first has looked since the second came.
    all[0].hear();
    (region, all)
}

#[test]
fn a_call_finds_that_the_baton_rests_or_is_seen_by_who_comes_to_rest() {
    loom::model(|| {
        let (region, [mut first, second]) = two();
        let caller = Arc::clone(&region);
        let called = thread::spawn(move || caller.call(1, NOW));
        let act = first.wait(NOW);
        let is_woken = called.join().unwrap();
        // The thread of the second is woken by its caller, by the first, or the first looks again.
        assert!(
            is_woken || !matches!(act, Act::Sleep { .. }),
            "the call is lost: {act:?}"
        );
        if act == Act::Wake(1) {
            assert_eq!(region.turn().seat(), Some(1));
        }
        drop(second);
    });
}

#[test]
fn who_hands_the_baton_on_while_it_is_called_gets_it_again() {
    loom::model(|| {
        let (region, [mut first, mut second]) = two();
        let ready = Claim {
            rank_ns: 9,
            release: NOW,
        };
        second.publish(NOW, &mut [ready].into_iter());
        let caller = Arc::clone(&region);
        let called = thread::spawn(move || caller.call(0, NOW));
        let act = first.wait(NOW);
        if act == Act::Wake(1) {
            let next = thread::spawn(move || {
                assert_eq!(second.wait(NOW), Act::Go);
                second.hear();
                second
            });
            let second = next.join().unwrap();
            let is_woken = called.join().unwrap();
            let mut second = second;
            let sees = second.look(NOW, ready).goes_first || second.is_called();
            // As urgent as what runs is not before it: it is looked for where that is over.
            let will_see = !second.is_turn(NOW, &mut std::iter::empty());
            assert!(is_woken || sees || will_see, "the call is lost");
            second.publish(NOW, &mut std::iter::empty());
            assert_eq!(second.wait(NOW), Act::Wake(0));
        } else {
            called.join().unwrap();
            assert_eq!(act, Act::Go);
        }
    });
}

#[test]
fn of_two_that_take_the_baton_one_has_it() {
    loom::model(|| {
        let (region, [mut first, mut second]) = two();
        assert!(matches!(first.wait(NOW), Act::Sleep { .. }));
        let caller = Arc::clone(&region);
        let called = thread::spawn(move || caller.call(1, NOW));
        let act = first.wait(NOW);
        let is_woken = called.join().unwrap();
        let has = [
            first.holds(),
            matches!(second.wait(NOW), Act::Go) && second.holds(),
        ];
        let holds = [first.holds(), second.holds()];
        assert!(
            holds.iter().filter(|holds| **holds).count() <= 1,
            "{holds:?}"
        );
        assert!(is_woken || act == Act::Go, "{has:?}");
    });
}

#[test]
fn the_sentinel_is_woken_or_sees_that_work_begins() {
    loom::model(|| {
        let (region, [mut first, second]) = two();
        assert!(matches!(first.wait(NOW), Act::Sleep { .. }));
        let caller = Arc::clone(&region);
        let called = thread::spawn(move || caller.call(1, NOW) && caller.begun()[0]);
        let mut sentinel = Sentinel::new(Arc::clone(&region), Span::from_micros(9));
        let vigil = sentinel.look(NOW);
        let is_woken = called.join().unwrap();
        let sleeps = matches!(vigil, Vigil::Sleep { .. });
        assert!(!sleeps || is_woken, "it sleeps while somebody works");
        drop(second);
    });
}

#[test]
fn what_was_heard_and_not_done_is_seen_by_who_comes_to_rest() {
    loom::model(|| {
        let (region, [mut first, mut second]) = two();
        let claim = |rank_ns, release| Claim { rank_ns, release };
        first.publish(NOW, &mut [claim(9, LATER)].into_iter());
        second.publish(NOW, &mut [claim(50, NOW)].into_iter());
        assert_eq!(first.wait(NOW), Act::Wake(1));
        assert_eq!(second.wait(NOW), Act::Go);
        // The second has the baton, and something urgent of the first is released.
        let asked = Arc::new(AtomicBool::new(false));
        let (caller, asks) = (Arc::clone(&region), Arc::clone(&asked));
        let called = thread::spawn(move || {
            asks.store(true, SeqCst);
            caller.call(1, LATER)
        });
        second.hear();
        let control = asked.load(SeqCst).then_some(claim(1, LATER));
        second.publish(LATER, &mut control.into_iter());
        assert_eq!(second.wait(LATER), Act::Wake(0));
        assert_eq!(first.wait(LATER), Act::Go);
        first.hear();
        first.publish(LATER, &mut std::iter::empty());
        let rests = first.wait(LATER);
        let is_woken = called.join().unwrap();
        let is_served = is_woken || matches!(rests, Act::Wake(1) | Act::Go);
        assert!(is_served, "the command is lost: {rests:?}");
    });
}

#[test]
fn who_waits_when_its_baton_was_taken_is_seen_by_who_has_it() {
    loom::model(|| {
        let (region, [mut first, mut second]) = two();
        let next = |micros| Claim {
            rank_ns: 9,
            release: Instant::from_micros(micros),
        };
        second.publish(NOW, &mut [next(9)].into_iter());
        first.publish(NOW, &mut [next(5)].into_iter());
        let mut sentinel = Sentinel::new(Arc::clone(&region), Span::ZERO);
        assert_eq!(sentinel.look(NOW), Vigil::Wake(0));
        let other = thread::spawn(move || {
            if sentinel.look(NOW) != Vigil::Wake(1) {
                return None;
            }
            // The second has nothing to do yet, and rests.
            assert_eq!(second.wait(NOW), Act::Go);
            second.hear();
            Some(second.wait(NOW))
        });
        let rests = first.wait(NOW);
        let other = other.join().unwrap();
        let turn = region.turn();
        let sleeps =
            |until| move |act: &Act| matches!(act, Act::Sleep { until: at, .. } if *at == until);
        let is_first_forgotten = turn.is_at_rest()
            && turn.seat() == Some(1)
            && sleeps(Instant::MAX)(&rests)
            && other.as_ref().is_some_and(sleeps(Instant::from_micros(9)));
        assert!(!is_first_forgotten, "{rests:?}, {other:?}");
    });
}

/// How the first of two goes; tells whom that wakes.
type Leaves = fn(&Shared, &mut Member<Arc<Shared>>) -> Option<u16>;

#[test]
fn who_is_called_while_another_one_leaves_is_woken_and_has_the_baton() {
    let ways: [Leaves; 3] = [
        |_, first| first.leave(NOW),
        |region, _| region.vacate(0, NOW),
        |region, _| region.remove(0, NOW),
    ];
    for leaves in ways {
        loom::model(move || {
            let (region, [mut first, mut second]) = two();
            let caller = Arc::clone(&region);
            let called = thread::spawn(move || caller.call(1, NOW));
            let next = leaves(&region, &mut first);
            let is_woken = called.join().unwrap();
            assert!(is_woken || next == Some(1), "the call is lost");
            assert_eq!(second.wait(NOW), Act::Go);
        });
    }
}

/// It is at work where who leaves looks at the others.
#[test]
fn who_comes_to_wait_while_another_one_leaves_is_not_forgotten() {
    loom::model(|| {
        let region = Arc::new(Shared::default());
        let [mut first, mut second] = [0, 1].map(|seat| member(&region, seat));
        first.publish(NOW, &mut std::iter::empty());
        assert_eq!(first.wait(NOW), Act::Took);
        let later = Claim {
            rank_ns: 9,
            release: LATER,
        };
        second.publish(NOW, &mut [later].into_iter());
        let waits = thread::spawn(move || second.wait(NOW));
        let next = first.leave(NOW);
        let act = waits.join().unwrap();
        let is_served = next == Some(1) || matches!(act, Act::Go | Act::Took);
        assert!(is_served, "it is forgotten: {act:?}");
    });
}
