//! The proofs on a simulated disk catch each fault of durability that a test build can have.
//!
//! Run by `make catch-planted`. A process has one fault at a time, so this is one test.
#![cfg(feature = "broken")]

use std::time::{Duration, Instant};

use peregrine::{plant, PlantedFault};
use peregrine_harness::error::Result;
use peregrine_prove::simulated::work::{Outcome, Workloads};
use peregrine_prove::simulated::{damage, io_errors, power_loss};

/// The number of workloads of one attempt.
const WORKLOADS: u64 = 24;
/// A fault that is not found within this time is missed.
const LIMIT: Duration = Duration::from_secs(240);

fn workloads(seed: u64) -> Workloads {
    Workloads {
        count: WORKLOADS,
        only: None,
        seed,
        size: 40,
        threads: 2,
        stop_when_found: true,
    }
}

/// Returns the first failure of a proof that stops there, if it found one.
fn verdict<F>(outcome: Result<Outcome<F>>) -> Option<String> {
    match outcome {
        // A workload that fails to run has found the fault, too.
        Err(error) => Some(error.to_string()),
        Ok(outcome) => outcome.totals.failures.into_iter().next(),
    }
}

fn by_power_loss(seed: u64) -> Option<String> {
    let request = power_loss::Request {
        workloads: workloads(seed),
        images: 1,
        moment: None,
    };
    verdict(power_loss::run(&request, |_| ()))
}

fn by_errors(seed: u64) -> Option<String> {
    let request = io_errors::Request {
        workloads: workloads(seed),
        stride: 1,
    };
    verdict(io_errors::run(&request, |_| ()))
}

fn by_damage(seed: u64) -> Option<String> {
    verdict(damage::run(&workloads(seed), |_| ()))
}

type Proof = (&'static str, fn(u64) -> Option<String>);

const POWER_LOSS: Proof = ("power-loss", by_power_loss);
const ERRORS: Proof = ("io-errors", by_errors);
const DAMAGE: Proof = ("damage", by_damage);

/// Returns the proof that must find a fault of durability.
fn proof_of(fault: PlantedFault) -> Proof {
    match fault {
        PlantedFault::RetryFailedSync => ERRORS,
        PlantedFault::IgnorePageChecksum => DAMAGE,
        _ => POWER_LOSS,
    }
}

#[test]
fn every_planted_fault_is_caught() {
    // The faults also make the engine panic, which counts as caught; the hook hides the messages.
    std::panic::set_hook(Box::new(|_| ()));
    let mut missed = Vec::new();
    for &fault in PlantedFault::DURABILITY {
        let (name, proof) = proof_of(fault);
        plant(Some(fault));
        let begun = Instant::now();
        let found = (1..)
            .take_while(|_| begun.elapsed() < LIMIT)
            .find_map(proof);
        plant(None);
        let took = begun.elapsed().as_secs_f64();
        match found {
            Some(found) => {
                let first = found.lines().next().unwrap_or_default().to_owned();
                println!("caught: {fault:?} by {name} in {took:.1} s: {first}");
            }
            None => {
                println!("NOT CAUGHT: {fault:?} by {name} in {took:.1} s");
                missed.push(fault);
            }
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
