//! Whether a driver takes longer than was said, in every way in which it may be looked at, and whatever halts it meets.

use laxity_model::nif::overlong::{Look, Overlong, SHORTEST, Tally, WINDOWS};
use laxity_model::request::{Strangers, Work};
use laxity_model::{Instant, Service, Span};
use proptest::prelude::*;

const US: Service = Service::from_micros(1);
/// Each call is charged so much.
const EACH: u64 = 50;
/// So much may be done without a pause.
const WORK: Work = Work {
    service: Service::from_micros(8 * EACH),
    period: Span::from_millis(1),
};

/// A driver that is called once a millisecond.
struct Driver {
    tally: Tally,
    look: Look,
    found: Option<Overlong>,
}

impl Driver {
    fn new() -> Self {
        Self {
            tally: Tally::new(WORK),
            look: Look {
                at: Instant::ZERO,
                had: Service::ZERO,
                charged: Service::ZERO,
                stood: Span::ZERO,
            },
            found: None,
        }
    }

    /// A call that takes so many microseconds, and so much of it is over when somebody looks, in parts of 8; 0: nobody does.
    fn call(&mut self, took: u64, looked: u64) {
        self.look.at += Span::from_millis(1);
        let all = US * took;
        let before = US * (took * looked / 8);
        self.look.had += before;
        if looked > 0 {
            self.found = self.found.or(self.tally.look(self.look));
        }
        self.look.had += all - before;
        self.look.charged += US * EACH;
    }

    /// A halt meets it at work, of which those who watch see so much.
    fn halts(&mut self, long: Span, seen: Span) {
        self.look.had += long.as_full_service();
        self.look.stood += seen;
    }
}

proptest! {
    /// Calls that take no longer than they are charged, each looked at or not, at any point of it; halts that are seen, and in each second and a half two that are not.
    #[test]
    fn whoever_keeps_to_what_was_said_is_never_found(
        calls in prop::collection::vec((0..=EACH, 0_u64..9), 1..3_000),
        seen in prop::collection::vec((0_usize..3_000, 1_u64..30), 0..40),
        unseen_at in 0_u64..1_000,
        unseen in 1_u64..200,
    ) {
        let mut driver = Driver::new();
        for (number, (took, looked)) in calls.into_iter().enumerate() {
            for (_, long) in seen.iter().filter(|(at, _)| *at == number) {
                driver.halts(Span::from_millis(*long), Span::from_millis(*long));
            }
            let unseen_at = [unseen_at, unseen_at + 400].map(|at| at % 1_500);
            if unseen_at.contains(&(number as u64 % 1_500)) {
                driver.halts(Span::from_millis(unseen), Span::ZERO);
            }
            driver.call(took, looked);
            prop_assert_eq!(driver.found, None, "{:?}", driver.look.at);
        }
    }

    /// One that takes a little more in each call, though less in each window than may be under way, however it is looked at, once in 30 ms at least, and however little it took for however long before.
    #[test]
    fn whoever_takes_longer_is_found_as_soon_as_it_owes_more_than_may_be_under_way(
        idle in 0_u64..2_000,
        by in 5_u64..60,
        looks in prop::collection::vec((1_u64..30, 1_u64..9), 100),
    ) {
        let mut driver = Driver::new();
        (0..idle).for_each(|at| driver.call(0, u64::from(at % 50 == 0)));
        for (pause, looked) in looks {
            (0..pause).for_each(|_| driver.call(EACH + by, 0));
            driver.call(EACH + by, looked);
        }
        let found = driver.found;
        prop_assert!(found.is_some_and(|found| found.took > found.charged), "{found:?}");
    }
}

/// 4 % of a processor was said: 100 packets a second of 400 us. It is looked at each 50 ms, as one packet is done.
fn found_of_a_long_period(each: Service) -> Option<Overlong> {
    let work = Work {
        service: US * (100 * 400),
        period: Span::from_millis(1_000),
    };
    let mut tally = Tally::new(work);
    let mut look = Driver::new().look;
    (0..200).find_map(|_| {
        look.at += Span::from_millis(50);
        look.had += each;
        look.charged += US * 400;
        tally.look(look)
    })
}

/// It takes 36 % in windows none of which is longer than what may be done without a pause.
#[test]
fn what_may_be_under_way_is_owed_once_however_long_the_period() {
    assert!(found_of_a_long_period(US * 18_000).is_some());
    assert!(found_of_a_long_period(US * 1_500).is_some());
    assert_eq!(found_of_a_long_period(US * 500), None);
}

/// Whether it is found that took so much more than it may in windows that end so many milliseconds after the first began.
fn found(ends: &[u64], more: Service) -> Option<Overlong> {
    let mut tally = Tally::new(WORK);
    let mut look = Driver::new().look;
    let most = WORK.service + Strangers::UNNOTICED;
    assert_eq!(tally.look(look), None);
    let mut found = None;
    for end in ends {
        look.at = Instant::from_millis(*end);
        look.had += most + more + US * EACH;
        look.charged += US * EACH;
        found = found.or(tally.look(look));
    }
    found
}

#[test]
fn three_windows_of_a_second_tell_and_no_fewer() {
    let nano = Service::from_nanos(1);
    let shortest = SHORTEST.as_nanos() / 1_000_000;
    let took = (WORK.service + Strangers::UNNOTICED + US * EACH + nano) * WINDOWS as u64;
    let charged = US * EACH * WINDOWS as u64;
    let all = Some(Overlong { took, charged });
    assert_eq!(found(&[100, 200, 300], nano), all);
    assert_eq!(found(&[100, 200, 300], Service::ZERO), None);
    // The first of these may be under way, and no other.
    assert!(found(&[100, 200, 300, 400], Service::ZERO).is_some());
    assert_eq!(found(&[100, 200], nano), None);
    assert_eq!(found(&[100, 600, 1_099], nano), all);
    assert_eq!(found(&[100, 600, 1_100, 1_601], nano), None);
    assert_eq!(found(&[shortest, 2 * shortest, 3 * shortest], nano), all);
    // No alarm makes three of one: what is shorter is no window yet.
    assert_eq!(
        found(
            &[shortest - 3, shortest - 2, shortest - 1],
            Service::from_millis(20)
        ),
        None
    );
}

/// One that came in the place of another, by its thread's number.
#[test]
fn who_has_had_less_than_before_is_another_one() {
    let mut driver = Driver::new();
    let look = |driver: &mut Driver, at, had| {
        driver.look.at = Instant::from_millis(at);
        driver.look.had = Service::from_millis(had);
        driver.tally.look(driver.look)
    };
    for (at, had) in [(0, 0), (50, 10), (100, 20), (150, 5), (200, 15), (250, 25)] {
        assert_eq!(look(&mut driver, at, had), None, "{at}");
    }
    assert!(look(&mut driver, 300, 35).is_some());
}
