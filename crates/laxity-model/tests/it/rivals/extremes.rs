//! Numbers near the end of 64 bits: an answer or an error, never a panic, and never without end.
//!
//! The result of each call is dropped on purpose: that it comes back is what is tested. That it is right is tested everywhere else.

use core::num::NonZeroU16;

use laxity_model::analysis::devices::{
    Device, cheapest, least_reservation, least_reservations, serves, two_line_model,
};
use laxity_model::analysis::multiprocessor::{
    Bandwidth, DeadlineRequest, Fit, KernelLimits, Order, edf_guarantee, global_edf, kernel_admits,
    partition, rate_monotonic_guarantee, tardiness,
};
use laxity_model::analysis::supply::{
    BoundedDelay, Dedicated, ExplicitDeadline, KernelDeadline, Residual, SupplyBound, TableSupply,
};
use laxity_model::analysis::{
    Fraction, Preemption, Response, Task, edf, fixed_priority, utilization,
};
use laxity_model::policy::slots::{Slot, SlotTable};
use laxity_model::{Reservation, Service, Span};
use proptest::prelude::*;

use crate::rivals::{config, task};

/// Numbers that are small, near a power of two, or near the end.
fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..20,
        (0_u32..64, 0_u64..3).prop_map(|(bits, less)| (1_u64 << bits).saturating_sub(less)),
        (0_u64..20).prop_map(|less| u64::MAX - less),
        any::<u64>(),
    ]
}

fn any_task() -> impl Strategy<Value = Task> {
    let numbers = (
        extreme(),
        extreme(),
        extreme(),
        prop_oneof![Just(0), extreme()],
    );
    (numbers, 0..4, (extreme(), extreme())).prop_map(|((c, t, d, j), kind, (longest, last))| {
        let (cost, longest) = (c.max(1), longest.clamp(1, c.max(1)));
        let last = last.clamp(1, longest);
        let (longest, last) = (Service::from_nanos(longest), Service::from_nanos(last));
        let preemption = match kind {
            0 => Preemption::Anywhere,
            1 => Preemption::Floating { longest },
            2 => Preemption::Fixed { longest, last },
            _ => Preemption::Never,
        };
        task(cost, t.max(1))
            .with_deadline(Span::from_nanos(d.max(1)))
            .map(|task| task.with_jitter(Span::from_nanos(j)))
            .and_then(|task| task.with_preemption(preemption))
            .expect("a task")
    })
}

/// Sets that do not overload a processor by much: costs cut to a share of the period.
fn modest(tasks: &[Task]) -> Vec<Task> {
    let share = tasks.len() as u64;
    let cut = |of: &Task| {
        let cost = (of.period().as_nanos() / share).clamp(1, of.cost().as_nanos());
        task(cost, of.period().as_nanos())
            .with_deadline(of.deadline())
            .map(|task| task.with_jitter(of.jitter()))
            .expect("a task")
    };
    tasks.iter().map(cut).collect()
}

fn any_reservation() -> impl Strategy<Value = Reservation> {
    (extreme(), extreme()).prop_filter_map("no reservation", |(service, period)| {
        let (service, period) = (service.min(period), period);
        Reservation::new(Service::from_nanos(service), Span::from_nanos(period)).ok()
    })
}

/// A supply of each kind from the same numbers.
fn supplies(reservation: Reservation, number: u64, table: &[u64]) -> Vec<Box<dyn SupplyBound>> {
    let span = Span::from_nanos(number);
    let mut all: Vec<Box<dyn SupplyBound>> = vec![
        Box::new(Dedicated),
        Box::new(ExplicitDeadline::continuous(reservation)),
        Box::new(ExplicitDeadline::periodic(reservation)),
    ];
    let service = reservation.service().as_nanos();
    let deadline = number.clamp(service, reservation.period().as_nanos().max(service));
    let explicit = ExplicitDeadline::new(reservation, Span::from_nanos(deadline));
    all.extend(
        explicit
            .ok()
            .map(|supply| Box::new(supply) as Box<dyn SupplyBound>),
    );
    let rate = Fraction::new(number.min(service), service.max(1));
    let bounded = rate.and_then(|rate| BoundedDelay::new(rate, span).ok());
    all.extend(bounded.map(|supply| Box::new(supply) as Box<dyn SupplyBound>));
    for kernel in [
        KernelDeadline::among_others(reservation, span),
        KernelDeadline::alone(reservation, span),
    ] {
        all.extend(
            kernel
                .ok()
                .map(|supply| Box::new(supply) as Box<dyn SupplyBound>),
        );
    }
    all.extend(table_supply(table).map(|supply| Box::new(supply) as Box<dyn SupplyBound>));
    all
}

/// What a table with slots and pauses of these lengths gives.
fn table_supply(lengths: &[u64]) -> Option<TableSupply> {
    let (mut slots, mut at) = (Vec::new(), Span::ZERO);
    for pair in lengths.chunks(2) {
        let length = Span::from_nanos(pair[0].max(1));
        slots.push(Slot {
            start: at,
            length,
            owner: 0,
        });
        let pause = Span::from_nanos(pair.get(1).copied().unwrap_or(0));
        at = at.checked_add(length)?.checked_add(pause)?;
    }
    TableSupply::new(&SlotTable::new(at, slots)?, 0).ok()
}

/// Every test of a set on a supply.
fn ask(tasks: &[Task], supply: &dyn SupplyBound) {
    let supply = &supply;
    let _ = fixed_priority::response_times(tasks, supply);
    let _ = fixed_priority::response_time(tasks, tasks.len() - 1, supply);
    let blocking = tasks[0].cost();
    let _ = fixed_priority::response_time_among(&tasks[0], tasks, blocking, supply);
    let _ = fixed_priority::test(tasks, supply);
    let _ = fixed_priority::longest_regions(tasks, supply);
    let _ = fixed_priority::best_order(tasks, supply);
    let _ = fixed_priority::fifo(tasks, supply);
    let _ = edf::response_times(tasks, supply);
    let _ = edf::test(tasks, supply);
    let _ = edf::longest_regions(tasks, supply);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let half = u64::MAX / 2;
    let wide = [task(half, u64::MAX), task(half, u64::MAX)];
    assert!(fixed_priority::response_times(&wide, &Dedicated).is_err());
    let supply = ExplicitDeadline::continuous(
        Reservation::new(Service::from_nanos(1), Span::from_nanos(1 << 40)).expect("it fits"),
    );
    assert!(supply.window_for(Service::from_nanos(1 << 40)).is_err());
    let responses = fixed_priority::response_times(&[task(1 << 30, u64::MAX)], &supply);
    assert!(
        !matches!(responses.as_deref(), Ok([Response::Bounded(_)])),
        "{responses:?}"
    );
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_tests_on_one_processor_answer(
        tasks in prop::collection::vec(any_task(), 1..5),
        reservation in any_reservation(),
        number in extreme(),
        table in prop::collection::vec(extreme(), 1..6),
    ) {
        for supply in supplies(reservation, number, &table) {
            ask(&tasks, supply.as_ref());
            ask(&modest(&tasks), supply.as_ref());
            for ticks in [0, 1, number, u64::MAX] {
                let _ = supply.least_service(Span::from_nanos(ticks));
                let _ = supply.window_for(Service::from_nanos(ticks));
            }
            let _ = (supply.rate().ppm(), supply.delay());
        }
        for tasks in [&tasks, &modest(&tasks)] {
            if let Ok(left) = Residual::new(ExplicitDeadline::continuous(reservation), tasks.clone()) {
                ask(&[task(1, number.max(1))], &left);
                let _ = left.least_service(Span::from_nanos(number));
            }
        }
    }

    #[test]
    fn the_orders_and_bounds_answer(
        tasks in prop::collection::vec(any_task(), 1..5),
        number in extreme(),
    ) {
        for tasks in [&tasks, &modest(&tasks)] {
            let _ = fixed_priority::best_order_with_final_regions(tasks, &Dedicated);
            let _ = (fixed_priority::rate_monotonic(tasks), fixed_priority::deadline_monotonic(tasks));
            let _ = (utilization::liu_layland(tasks), utilization::hyperbolic(tasks));
            let _ = (utilization::blocking_per_task(tasks), utilization::blocking_summed(tasks));
            let _ = (utilization::hyperbolic_with_blocking(tasks), utilization::rmdp(tasks));
            let _ = utilization::earliest_deadline_first(tasks);
            let _ = tasks.iter().map(utilization::implicit).count();
        }
        let _ = utilization::liu_layland_bound(usize::try_from(number).unwrap_or(usize::MAX));
    }

    #[test]
    fn the_tests_on_several_processors_answer(
        tasks in prop::collection::vec(any_task(), 1..5),
        processors in prop_oneof![1_u16..5, Just(u16::MAX)],
        numbers in (extreme(), extreme(), extreme(), extreme()),
    ) {
        let processors = NonZeroU16::new(processors).expect("some");
        for tasks in [&tasks, &modest(&tasks)] {
            let _ = (global_edf(tasks, processors), tardiness(tasks, processors));
            for fit in [Fit::First, Fit::Best, Fit::Worst] {
                for order in [Order::Given, Order::Decreasing] {
                    let _ = partition(tasks, processors, fit, order, utilization::earliest_deadline_first);
                    let _ = rate_monotonic_guarantee(fit, order, processors, tasks.len());
                    let largest = Fraction::new(numbers.0, numbers.1.max(1)).expect("not zero");
                    let _ = edf_guarantee(fit, order, processors, largest);
                }
            }
        }
        let request = DeadlineRequest {
            runtime: Service::from_nanos(numbers.0),
            deadline: Span::from_nanos(numbers.1),
            period: Span::from_nanos(numbers.2),
        };
        let limits = KernelLimits {
            rt_runtime: Some(Service::from_nanos(numbers.3)),
            rt_period: Span::from_nanos(numbers.2),
            shortest_period: Span::from_nanos(numbers.1.min(numbers.2)),
            longest_period: Span::from_nanos(numbers.2),
            servers: Bandwidth::from_units(numbers.0),
        };
        let granted = Bandwidth::from_units(numbers.3);
        let _ = limits.check(processors, granted, request);
        let _ = limits.longest_runtime(processors, granted, request.period);
        let _ = limits.shortest_period(processors, granted, request.runtime);
        let _ = kernel_admits(&[request, request], processors, &limits);
        let _ = granted.ppm();
    }

    #[test]
    fn the_tests_for_devices_answer(
        numbers in (extreme(), extreme(), extreme(), extreme(), extreme()),
        reservation in any_reservation(),
        (period, granularity) in (extreme(), extreme()),
        table in prop::collection::vec(extreme(), 1..6),
    ) {
        let (work, every, block, ring, lead) = numbers;
        let (work, every) = (Service::from_nanos(work), Span::from_nanos(every));
        let devices = [
            Device::capture(work, every, block, ring),
            Device::playback(work, every, block, lead),
            Device::duplex(work, every, block, ring, lead),
            Device::duplex(work, every, block, ring, lead).map(|d| d.called_every(Span::from_nanos(granularity))),
        ];
        for device in devices.iter().flatten() {
            for supply in supplies(reservation, period, &table) {
                let _ = serves(device, supply.as_ref());
            }
            let _ = two_line_model(device, reservation);
            let (period, granularity) = (Span::from_nanos(period), Span::from_nanos(granularity));
            let supply = |reservation| Some(ExplicitDeadline::continuous(reservation));
            let _ = least_reservation(device, period, granularity, supply);
            let _ = least_reservations(device, &[period, every], granularity, supply);
            let _ = (device.share(), device.input_limit(), device.output_limit());
        }
        let _ = cheapest([reservation, reservation]);
    }
}
