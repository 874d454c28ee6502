//! Short slices of the proofs on a simulated disk: what `peregrine bench power-loss`, `io-errors` and
//! `damage` do at length.
#![cfg(not(feature = "broken"))]

use peregrine_suite::simulated::workload::{Plan, FAMILIES};
use peregrine_suite::simulated::{damage, io_errors, power_loss};

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let request = power_loss::Request {
        images: 1,
        workloads: FAMILIES.len() as u64,
        seed: 7,
        size: 6,
        threads: 2,
        workload: None,
        moment: None,
        stop_when_found: false,
    };
    let outcome = power_loss::run(&request, |_| ()).expect("every workload runs");
    assert!(outcome.held(), "{outcome}\n{:#?}", outcome.failures);
    assert!(outcome.total() > 500, "{outcome}");
    assert_eq!(outcome.images.len(), 6, "every kind of loss: {outcome}");
}

#[test]
fn calls_that_fail_are_errors_and_nothing_is_lost() {
    let request = io_errors::Request {
        workloads: FAMILIES.len() as u64,
        seed: 7,
        size: 6,
        threads: 2,
        workload: None,
        stride: 9,
        stop_when_found: false,
    };
    let outcome = io_errors::run(&request, |_| ()).expect("every workload runs");
    assert!(outcome.held(), "{outcome}\n{:#?}", outcome.failures);
    assert!(outcome.stopped > 0 && outcome.went_on > 0, "{outcome}");
}

#[test]
fn damage_is_noticed_or_does_not_matter() {
    let request = damage::Request {
        workloads: FAMILIES.len() as u64,
        seed: 7,
        size: 10,
        threads: 2,
        stop_when_found: false,
    };
    let outcome = damage::run(&request, |_| ()).expect("every workload runs");
    assert!(outcome.held(), "{outcome}\n{:#?}", outcome.failures);
}

/// Without this a failure could not be seen again.
#[test]
fn a_workload_does_the_same_each_time() {
    for number in 0..FAMILIES.len() as u64 {
        let plan = Plan::new(3, number, 20);
        let [one, two] = [(), ()].map(|()| power_loss::play(&plan).expect("it runs"));
        assert_eq!(one.states, two.states, "{}", plan.family);
        let events = |played: &power_loss::Played| -> Vec<_> {
            let moments = played.moments.iter();
            moments.map(|m| (m.event.clone(), m.note)).collect()
        };
        let (one, two) = (events(&one), events(&two));
        let differs = one.iter().zip(&two).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{}", plan.family);
        assert_eq!(one.len(), two.len(), "{}", plan.family);
    }
}
