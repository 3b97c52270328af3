//! What the guards see.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use laxity_model::executor::Claim;
use laxity_model::program::together::{
    Act, Member, Occupant, Others, Region, Sentinel, Standing, Vigil, Watchdog,
};
use laxity_model::{Instant, Service, Span};

use crate::together::machine::Shared;

const LIMIT: Service = Service::from_micros(100);

fn us(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// A process that has the baton.
fn holder(region: &Arc<Shared>) -> Member<Arc<Shared>> {
    region.gives(0);
    let mut member = Member::sit(Arc::clone(region), 0, 1).unwrap();
    assert_eq!(member.wait(us(0)), Act::Took);
    member
}

/// Looks as often as it wants to until this instant; the seat that it would take away, and when. The thread of the first seat has all of the processor.
fn watch(region: &Arc<Shared>, end: Instant, begins: impl Fn(Instant)) -> Option<(u16, Instant)> {
    let mut watchdog: Watchdog<_, 4> = Watchdog::new(Arc::clone(region), LIMIT);
    let mut now = us(0);
    while now < end {
        begins(now);
        let service = |seat, _| match seat {
            0 => Occupant::Present(Some(Service::from_nanos(now.as_nanos()))),
            _ => Occupant::Unknown,
        };
        match watchdog.look(now, service) {
            Vigil::Sleep { word, until } => {
                assert_eq!(region.guards()[1].load(SeqCst), word, "it would not sleep");
                assert!(until > now);
                now = until;
            }
            Vigil::Remove(seat) => return Some((seat, now)),
            other => panic!("{other:?}"),
        }
    }
    None
}

#[test]
fn who_does_not_look_loses_its_seat_within_twice_the_limit() {
    let region = Arc::new(Shared::default());
    let mut member = holder(&region);
    let looks = |now| member.begins(now);
    let looks = std::cell::RefCell::new(looks);
    assert_eq!(
        watch(&region, us(10_000), |now| looks.borrow_mut()(now)),
        None
    );
    let (seat, at) = watch(&region, us(10_000), |_| ()).unwrap();
    assert!((seat, at) <= (0, us(213)), "{at:?}");
    region.remove(seat, at);
    assert_eq!(region.standing(seat), Some(Standing::Removed));
    assert_eq!(member.wait(at), Act::Removed);
}

/// Who rests with the baton and is stopped there does not attend to his own release; whoever else is due then has the baton from the sentinel.
#[test]
fn the_baton_is_taken_from_who_does_not_wake_where_it_rests() {
    let region = Arc::new(Shared::default());
    let mut holder = holder(&region);
    region.gives(1);
    let mut other = Member::sit(Arc::clone(&region), 1, 2).unwrap();
    let claim = |release| Claim {
        rank_ns: 1_000_000,
        release: us(release),
    };
    other.publish(us(0), &mut [claim(1_000)].into_iter());
    assert!(matches!(other.wait(us(0)), Act::Sleep { .. }));
    holder.publish(us(0), &mut [claim(900)].into_iter());
    let rests = holder.wait(us(0));
    assert!(matches!(rests, Act::Sleep { until, .. } if until == us(900)));

    let grace = Span::from_micros(50);
    let mut sentinel = Sentinel::new(Arc::clone(&region), grace);
    let seen = sentinel.look(us(0));
    assert!(matches!(seen, Vigil::Sleep { until, .. } if until == us(950)));
    let seen = sentinel.look(us(949));
    assert!(matches!(seen, Vigil::Sleep { until, .. } if until == us(950)));
    assert_eq!(
        sentinel.look(us(950)),
        Vigil::Wake(0),
        "it may be on its way"
    );
    assert_eq!(sentinel.look(us(1_000)), Vigil::Wake(1));
    assert_eq!(region.standing(0), Some(Standing::Withdrawn));
    assert_eq!(other.wait(us(1_000)), Act::Go);
    assert!(!holder.holds());
}

/// A seat is held to less than others are, and looked at as often as that needs.
#[test]
fn who_was_admitted_with_less_loses_its_seat_sooner() {
    let region = Arc::new(Shared::default());
    let _member = holder(&region);
    region.gives(1);
    let mut watchdog: Watchdog<_, 4> = Watchdog::new(Arc::clone(&region), LIMIT);
    watchdog.hold(0, Service::from_micros(20));
    watchdog.hold(1, Service::from_micros(10));
    // There is no such seat.
    watchdog.hold(4, Service::ZERO);
    let mut now = us(0);
    let removed = loop {
        let service = |seat, _| match seat {
            0 => Occupant::Present(Some(Service::from_nanos(now.as_nanos()))),
            1 => Occupant::Present(None),
            _ => Occupant::Unknown,
        };
        match watchdog.look(now, service) {
            Vigil::Sleep { until, .. } => now = until,
            Vigil::Remove(seat) => break (seat, now),
            other => panic!("{other:?}"),
        }
    };
    // The limit of the one at work, and not of one that is there.
    assert_eq!(removed, (0, Instant::from_nanos(21_250)));
}

/// Where the watchdog wakes late the machine stood still, and whoever was at work was charged that.
#[test]
fn who_was_at_work_while_the_machine_stood_still_keeps_its_seat() {
    for (late, is_removed) in [(90, true), (110, false), (20_000, false)] {
        let region = Arc::new(Shared::default());
        let _member = holder(&region);
        let mut watchdog: Watchdog<_, 4> = Watchdog::new(Arc::clone(&region), LIMIT);
        let mut look = |now: Instant, received| {
            watchdog.look(now, |seat, _| match seat {
                0 => Occupant::Present(Some(Service::from_micros(received))),
                _ => Occupant::Unknown,
            })
        };
        let Vigil::Sleep { until, .. } = look(us(0), 0) else {
            panic!("it was not at work yet");
        };
        let found = look(until + Span::from_micros(late), 50 + late);
        assert_eq!(found == Vigil::Remove(0), is_removed, "{late}: {found:?}");
        let Vigil::Sleep { until, .. } = found else {
            continue;
        };
        // That once, and whoever goes on is seen.
        assert_eq!(look(until, 156 + late), Vigil::Remove(0), "{late}");
        assert_eq!(region.stood(), Span::from_micros(late));
    }
}

/// It is late because somebody else had the processor.
#[test]
fn who_keeps_the_watchdog_itself_from_the_processor_is_charged_that() {
    let region = Arc::new(Shared::default());
    let _member = holder(&region);
    let mut watchdog: Watchdog<_, 4> = Watchdog::new(Arc::clone(&region), LIMIT);
    let mut look = |now: Instant, waited| {
        watchdog.has_waited(Span::from_micros(waited));
        watchdog.look(now, |seat, _| match seat {
            0 => Occupant::Present(Some(Service::from_nanos(now.as_nanos()))),
            _ => Occupant::Unknown,
        })
    };
    let Vigil::Sleep { until, .. } = look(us(0), 7_000) else {
        panic!("it was not at work yet");
    };
    let late = Span::from_micros(500);
    assert_eq!(look(until + late, 7_450), Vigil::Remove(0));
    assert_eq!(region.stood(), Span::ZERO);
}

#[test]
fn who_got_no_processor_is_no_runaway() {
    let region = Arc::new(Shared::default());
    let _member = holder(&region);
    let mut watchdog: Watchdog<_, 4> = Watchdog::new(Arc::clone(&region), LIMIT);
    for look in 0..100 {
        let vigil = watchdog.look(us(look * 200), |seat, _| match seat {
            0 => Occupant::Present(Some(Service::from_micros(7))),
            _ => Occupant::Unknown,
        });
        assert!(matches!(vigil, Vigil::Sleep { .. }), "{vigil:?}");
    }
}

/// Whatever is in the memory, every function returns.
#[test]
fn a_forged_region_is_survived() {
    let region = Arc::new(Region::<4, 8>::default());
    let _member = holder(&region);
    assert!(region.is_known());
    assert_eq!(region.standing(4), None);
    assert_eq!(region.word(u16::MAX).map(|word| word.load(SeqCst)), None);
    assert!(!region.call(9, us(1)));
    assert_eq!(region.vacate(9, us(1)), None);
    assert_eq!(region.remove(9, us(1)), None);
}

/// What the watchdog makes of this, where the first seat has this occupant.
fn finds(region: &Arc<Shared>, occupant: Occupant) -> Vigil {
    let mut watchdog: Watchdog<_, 4> = Watchdog::new(Arc::clone(region), LIMIT);
    watchdog.look(us(1), |seat, _| {
        if seat == 0 {
            occupant
        } else {
            Occupant::Unknown
        }
    })
}

#[test]
fn one_at_work_without_a_thread_loses_its_seat() {
    let region = Arc::new(Shared::default());
    let mut member = holder(&region);
    assert_eq!(finds(&region, Occupant::Gone), Vigil::Remove(0));
    // Nobody is taken for gone who waits.
    member.publish(us(1), &mut std::iter::empty());
    assert!(matches!(member.wait(us(1)), Act::Sleep { .. }));
    assert!(matches!(
        finds(&region, Occupant::Gone),
        Vigil::Sleep { .. }
    ));
}

#[test]
fn a_seat_that_no_guard_took_away_is_given_back() {
    let region = Arc::new(Shared::default());
    let mut member = holder(&region);
    member.publish(us(1), &mut std::iter::empty());
    assert!(matches!(member.wait(us(1)), Act::Sleep { .. }));
    // As one does that has the memory.
    region.remove(0, us(1));
    assert_eq!(finds(&region, Occupant::Present(None)), Vigil::Wake(0));
    assert!(matches!(member.wait(us(1)), Act::Took | Act::Go));
    assert_eq!(region.standing(0), Some(Standing::Working));
    region.remove(0, us(1));
    assert!(matches!(
        finds(&region, Occupant::Removed),
        Vigil::Sleep { .. }
    ));
    assert_eq!(finds(&region, Occupant::Present(None)), Vigil::Wake(0));
    // And one that was stays so.
    assert_eq!(finds(&region, Occupant::Removed), Vigil::Remove(0));
}
