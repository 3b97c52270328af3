//! Random requests, held against the kernel's own arithmetic and against what is advised.

use super::*;

/// A reservation as it is written: `7.500ms/10ms`.
fn read(text: &str) -> Reservation {
    let nanos = |text: &str| {
        let unit = text.find(char::is_alphabetic).unwrap();
        let scale: u64 = match &text[unit..] {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            other => panic!("{other}"),
        };
        let (whole, rest) = text[..unit].split_once('.').unwrap_or((&text[..unit], "0"));
        whole.parse::<u64>().unwrap() * scale + rest.parse::<u64>().unwrap() * scale / 1_000
    };
    let (service, period) = text.split_once('/').unwrap();
    Reservation::new(
        Service::from_nanos(nanos(service)),
        Span::from_nanos(nanos(period)),
    )
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What is granted is what the kernel lets in, one after the other, without those that it refuses; a refusal lacks something, and what
    /// is written of its advice is taken.
    #[test]
    fn by_deadline_the_kernel_decides(
        // The kernel lets in more than its servers leave of a processor, too; admission does not.
        numbers in prop::collection::vec((100_u64..50_000, 1_u64..950), 1..8),
        granted in 0_u64..1_900_000,
        count in 1_u16..4,
    ) {
        let processors = NonZeroU16::new(count).unwrap();
        let granted = Bandwidth::from_units(granted);
        let mut machine = machine();
        let supply = machine.deadline.as_mut().unwrap();
        (supply.processors, supply.granted) = (processors, granted);
        let limits = supply.limits;
        let requests: Vec<Reservation> = numbers
            .iter()
            .map(|(period, permille)| every((period * permille / 1_000).max(2), *period))
            .collect();
        let whole = program(requests.iter().map(|r| reserved("r", *r, Enforcer::Deadline)).collect());
        let admission = found(whole, &machine);

        let mut booked = granted;
        for (asked, found) in requests.iter().zip(&admission.requests) {
            let answer = limits.check(processors, booked, DeadlineRequest::from(*asked));
            prop_assert_eq!(found.asked.is_ok(), answer.is_ok(), "{}: {:?}", asked, answer);
            booked = [booked, answer.unwrap_or_default()].into_iter().sum();
        }
        if granted == Bandwidth::ZERO {
            prop_assert_eq!(admission.granted(), kernel_admits(&requests.iter().map(|r| (*r).into()).collect::<Vec<_>>(), processors, &limits).is_ok());
        }
        for (_, denial) in admission.refusals() {
            if let Why::DeadlineBandwidth { needed_ppm, free_ppm } = denial.why {
                prop_assert!(needed_ppm > free_ppm, "{:?}", denial);
            }
            for (_, advised) in denial.nearest.iter().flat_map(|advice| &advice.requests) {
                prop_assert_eq!(&read(&advised.to_string()), advised);
            }
        }
    }

    /// Of any mix of requests, the advice on the first refusal of each enforcer, when followed, makes that refusal go away.
    #[test]
    fn advice_that_is_followed_is_granted(requests in prop::collection::vec((300_u64..20_000, 1_u64..900, any::<bool>()), 1..6)) {
        let whole = || program(requests.iter().enumerate().map(|(i, (period, permille, by_slots))| {
            let enforcer = if *by_slots { Enforcer::Slots } else { Enforcer::Deadline };
            reserved(&format!("r{i}"), every((period * permille / 1_000).max(60), *period), enforcer)
        }).collect());
        let admission = found(whole(), &machine());
        let by = |admission: &Admission, request: &RequestAdmission| admission.asker(request).1.enforcer;
        for enforcer in [Enforcer::Slots, Enforcer::Deadline] {
            let first = admission.refusals().find(|(request, _)| by(&admission, request) == enforcer);
            let Some((_, denial)) = first else { continue; };
            for advice in &denial.nearest {
                let followed = found(following(whole(), &advice.requests), &machine());
                let refused = |admission: &Admission| admission.refusals().filter(|(r, _)| by(admission, r) == enforcer).count();
                prop_assert!(refused(&followed) < refused(&admission), "{:?}: {:?}", denial, advice);
                if enforcer == Enforcer::Slots {
                    prop_assert_eq!(refused(&followed), 0);
                }
            }
            let missing = !matches!(denial.why, Why::Slots(Shortage::ProcessorTime { needed_ppm, available_ppm }) if needed_ppm <= available_ppm);
            prop_assert!(missing);
            prop_assert!(denial.nearest.iter().all(|advice| advice.change == Change::AllShrink || advice.requests.len() == 1));
        }
    }
}
