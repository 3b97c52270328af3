//! What the kernel admits, by its own arithmetic.

use super::*;

proptest! {
    #![proptest_config(config())]

    /// The kernel's sum, written as the kernel writes it.
    #[test]
    fn the_kernel_admits_by_its_own_arithmetic(
        numbers in prop::collection::vec((1_024_u64..3_000_000, 100_000_u64..5_000_000), 0..12),
        count in 1_u16..5,
        server in any::<bool>(),
        runtime_us in prop::option::of(0_u64..=1_000_000),
    ) {
        let requests: Vec<DeadlineRequest> = numbers.iter().map(|(runtime, period)| DeadlineRequest {
            runtime: Service::from_nanos((*runtime).min(*period)),
            deadline: Span::from_nanos(*period),
            period: Span::ZERO,
        }).collect();
        let limits = if server { KernelLimits::WITH_FAIR_SERVER } else { KernelLimits::WITHOUT_FAIR_SERVER };
        let limits = KernelLimits { rt_runtime: runtime_us.map(Service::from_micros), ..limits };
        let to_ratio = |period: u64, runtime: u64| (runtime << 20) / period;
        let bandwidth = runtime_us.map(|us| to_ratio(1_000_000_000, us * 1_000));
        let capacity = u64::from(count) << 10;
        let mut total = if server { u64::from(count) * to_ratio(1_000_000_000, 50_000_000) } else { 0 };
        let mut expected = Ok(0);
        for (index, request) in requests.iter().enumerate() {
            let new = to_ratio(request.deadline.as_nanos(), request.runtime.as_nanos());
            if bandwidth.is_some_and(|bandwidth| bandwidth == 0 || (bandwidth * capacity) >> 10 < total + new) {
                expected = Err(index);
                break;
            }
            total += new;
            expected = expected.map(|sum| sum + new);
        }
        let found = kernel_admits(&requests, processors(count), &limits);
        prop_assert_eq!(found.map(Bandwidth::units).map_err(|(index, _)| index), expected);
    }

    /// The nearest runtime and period are taken, and a tick more or less is not.
    #[test]
    fn the_kernels_nearest_are_exact(
        period in 100_000_u64..4_000_000_000,
        runtime in 1_024_u64..4_000_000_000,
        granted in 0_u64..2_000_000,
        count in 1_u16..3,
    ) {
        let limits = KernelLimits::WITH_FAIR_SERVER;
        let granted = Bandwidth::from_units(granted);
        let takes = |runtime, period| {
            let (runtime, period) = (Service::from_nanos(runtime), Span::from_nanos(period));
            let request = DeadlineRequest { runtime, deadline: period, period };
            limits.check(processors(count), granted, request).is_ok()
        };
        match limits.longest_runtime(processors(count), granted, Span::from_nanos(period)) {
            Some(longest) => {
                prop_assert!(takes(longest.as_nanos(), period));
                prop_assert!(!takes(longest.as_nanos() + 1, period));
            }
            None => prop_assert!(!takes(1_024, period)),
        }
        match limits.shortest_period(processors(count), granted, Service::from_nanos(runtime)) {
            Some(shortest) => {
                prop_assert!(takes(runtime, shortest.as_nanos()));
                prop_assert!(!takes(runtime, shortest.as_nanos() - 1));
            }
            None => prop_assert!(!takes(runtime, 1 << 32 >> 1)),
        }
    }
}

fn request(runtime_us: u64, deadline_us: u64, period_us: u64) -> DeadlineRequest {
    DeadlineRequest {
        runtime: Service::from_micros(runtime_us),
        deadline: Span::from_micros(deadline_us),
        period: Span::from_micros(period_us),
    }
}

/// By two processors with a server for the fair class.
fn admits(requests: &[DeadlineRequest]) -> Result<Bandwidth, (usize, KernelRefusal)> {
    kernel_admits(requests, processors(2), &KernelLimits::WITH_FAIR_SERVER)
}

/// On processors of 0.95, less 0.05 for the fair class: 1.80 of two, as measured; the errors that the kernel gives.
#[test]
fn the_kernels_limits() {
    let two = processors(2);
    let limits = KernelLimits::WITH_FAIR_SERVER;
    assert!(admits(&[request(9_000, 10_000, 10_000); 2]).is_ok());
    let (index, refusal) = admits(&[request(9_001, 10_000, 10_000); 2]).unwrap_err();
    assert_eq!(index, 1);
    assert!(matches!(refusal, KernelRefusal::Bandwidth { .. }));
    // Before there was a fair server.
    let old = KernelLimits::WITHOUT_FAIR_SERVER;
    assert!(kernel_admits(&[request(9_499, 10_000, 10_000); 2], two, &old).is_ok());
    // No limit.
    let unlimited = KernelLimits {
        rt_runtime: None,
        ..limits
    };
    assert!(kernel_admits(&[request(10_000, 10_000, 10_000); 5], two, &unlimited).is_ok());
    let none = KernelLimits {
        rt_runtime: Some(Service::ZERO),
        ..limits
    };
    assert_eq!(
        kernel_admits(&[request(10, 1_000, 1_000)], two, &none),
        Err((0, KernelRefusal::Disabled))
    );
}

/// What the kernel does not take, whatever is free: each with the error it gives.
#[test]
fn the_kernels_ranges() {
    let refusal = |[runtime, deadline, period]: [u64; 3]| {
        let request = request(runtime, deadline, period);
        admits(&[request]).unwrap_err().1
    };
    let too_short = refusal([1, 1_000, 1_000]);
    assert!(matches!(too_short, KernelRefusal::Runtime { .. }));
    for out_of_order in [[20, 10, 1_000], [20, 2_000, 1_000], [20, 0, 0]] {
        let refusal = refusal(out_of_order);
        assert!(matches!(refusal, KernelRefusal::Order { .. }));
    }
    for out_of_range in [[20, 50, 99], [20, 50, 5_000_000]] {
        let refusal = refusal(out_of_range);
        assert!(matches!(refusal, KernelRefusal::Period { .. }));
    }
    assert!(admits(&[request(20, 50, 1 << 22)]).is_ok());
    // Without a period the deadline is one; with it, only the period counts.
    assert_eq!(
        admits(&[request(100, 1_000, 0)]),
        admits(&[request(100, 1_000, 1_000)])
    );
    assert_eq!(
        admits(&[request(100, 500, 1_000)]),
        admits(&[request(100, 1_000, 1_000)])
    );
}
