//! Short slices of the proofs on a simulated disk.
//!
//! `peregrine prove power-loss`, `io-errors` and `disk-faults` run them at length.
#![cfg(not(feature = "broken"))]

use peregrine_prove::simulated::played::{play, Played};
use peregrine_prove::simulated::work::Workloads;
use peregrine_prove::simulated::workload::{Plan, FAMILIES};
use peregrine_prove::simulated::{damage, io_errors, power_loss};

/// One workload of each family, with a length in percent.
fn one_of_each(size: u32) -> Workloads {
    Workloads {
        count: FAMILIES.len() as u64,
        only: None,
        seed: 7,
        size,
        threads: 2,
        stop_when_found: false,
    }
}

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let request = power_loss::Request {
        workloads: one_of_each(6),
        images: 1,
        moment: None,
    };
    let outcome = power_loss::run(&request, |_| ()).expect("every workload runs");
    assert!(outcome.held(), "{outcome}\n{:#?}", outcome.totals.failures);
    let images = &outcome.findings.images;
    assert!(images.values().sum::<u64>() > 500, "{outcome}");
    assert_eq!(images.len(), 6, "every kind of loss: {outcome}");
}

#[test]
fn calls_that_fail_are_errors_and_nothing_is_lost() {
    let request = io_errors::Request {
        workloads: one_of_each(6),
        stride: 9,
    };
    let outcome = io_errors::run(&request, |_| ()).expect("every workload runs");
    assert!(outcome.held(), "{outcome}\n{:#?}", outcome.totals.failures);
    let found = &outcome.findings;
    assert!(found.stopped > 0 && found.went_on > 0, "{outcome}");
    assert!(found.refused > 0, "{outcome}");
}

#[test]
fn damage_is_noticed_or_does_not_matter() {
    let outcome = damage::run(&one_of_each(10), |_| ()).expect("every workload runs");
    assert!(outcome.held(), "{outcome}\n{:#?}", outcome.totals.failures);
}

/// The length is enough for some prepared transactions.
#[test]
fn prepared_transactions_wait_for_their_decision_over_a_crash() {
    let number = FAMILIES.iter().position(|family| *family == "prepared");
    let number = number.expect("the family is there") as u64;
    let workloads = Workloads {
        only: Some(number),
        ..one_of_each(40)
    };
    let plan = Plan::new(workloads.seed, number, workloads.size);
    let states = play(&plan).expect("it runs").states;
    let waiting = states.iter().filter(|state| !state.prepared.is_empty());
    assert!(waiting.count() > 2, "{} states", states.len());
    let request = power_loss::Request {
        workloads,
        images: 1,
        moment: None,
    };
    let outcome = power_loss::run(&request, |_| ()).expect("every workload runs");
    assert!(outcome.held(), "{outcome}\n{:#?}", outcome.totals.failures);
}

/// The second round of the families holds snapshots.
#[test]
fn snapshots_stay_as_they_are_also_where_calls_fail() {
    let number = FAMILIES.iter().position(|family| *family == "interleaved");
    let number = (FAMILIES.len() + number.expect("the family is there")) as u64;
    let workloads = Workloads {
        only: Some(number),
        ..one_of_each(100)
    };
    let plan = Plan::new(workloads.seed, number, workloads.size);
    assert!(plan.holds_snapshots);
    let states = play(&plan).expect("it runs").states;
    assert!(states.len() > 10, "{} states", states.len());
    let request = io_errors::Request {
        workloads,
        stride: 7,
    };
    let outcome = io_errors::run(&request, |_| ()).expect("every workload runs");
    let totals = &outcome.totals;
    assert_eq!(totals.wrong, 0, "{outcome}\n{:#?}", totals.failures);
}

/// Without this, a failure could not be repeated.
#[test]
fn a_workload_does_the_same_each_time() {
    for number in 0..FAMILIES.len() as u64 {
        let plan = Plan::new(3, number, 20);
        let [one, two] = [(), ()].map(|()| play(&plan).expect("it runs"));
        assert_eq!(one.states, two.states, "{}", plan.family);
        let events = |played: &Played| -> Vec<_> {
            let moments = played.moments.iter();
            moments.map(|m| (m.event.clone(), m.note)).collect()
        };
        let (one, two) = (events(&one), events(&two));
        let differs = one.iter().zip(&two).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{}", plan.family);
        assert_eq!(one.len(), two.len(), "{}", plan.family);
    }
}
