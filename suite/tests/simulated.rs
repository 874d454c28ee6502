//! Short slices of the proofs on a simulated disk: what `peregrine bench power-loss` does at length.

use peregrine_suite::simulated::power_loss;
use peregrine_suite::simulated::workload::{Plan, FAMILIES};

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
    };
    let outcome = power_loss::run(&request, |_| ()).expect("every workload runs");
    assert!(outcome.held(), "{outcome}\n{:#?}", outcome.failures);
    assert!(outcome.total() > 500, "{outcome}");
    assert_eq!(outcome.images.len(), 6, "every kind of loss: {outcome}");
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
