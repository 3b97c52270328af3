//! What the guards see.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use laxity_model::program::together::{
    Act, Member, Occupant, Others, Region, Standing, Vigil, Watchdog,
};
use laxity_model::{Instant, Service};

use crate::machine::Shared;

const LIMIT: Service = Service::from_micros(100);

fn us(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// A process that has the baton.
fn holder(region: &Arc<Shared>) -> Member<Arc<Shared>> {
    let seat = region.give().unwrap();
    let mut member = Member::sit(Arc::clone(region), seat, 1).unwrap();
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
