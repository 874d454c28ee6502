//! The fault of this process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::LazyLock;

use super::PlantedFault;

/// The environment variable that names a fault, for test programs that do not call `plant`.
const VARIABLE: &str = "PEREGRINE_PLANTED";

/// This process's fault, by its place in the list, plus one.
static PLANTED: LazyLock<AtomicUsize> = LazyLock::new(|| AtomicUsize::new(code(of_environment())));

/// The fault that the environment names; panics for an unknown name, which is a mistake in the call of the tests.
fn of_environment() -> Option<PlantedFault> {
    let name = std::env::var(VARIABLE)
        .ok()
        .filter(|name| !name.is_empty())?;
    let mut faults = PlantedFault::ALL.iter().copied().flatten();
    let found = faults.find(|fault| format!("{fault:?}") == name).copied();
    assert!(
        found.is_some(),
        "{VARIABLE}={name}: no fault of that name; the faults are {:?}",
        PlantedFault::ALL
    );
    found
}

fn code(fault: Option<PlantedFault>) -> usize {
    fault.map_or(0, |fault| fault as usize + 1)
}

/// Plants a fault, or none, in every database of this process.
pub fn plant(fault: Option<PlantedFault>) {
    PLANTED.store(code(fault), Ordering::SeqCst);
}

/// Returns whether this step is left out.
pub(crate) fn is_planted(fault: PlantedFault) -> bool {
    PLANTED.load(Ordering::SeqCst) == fault as usize + 1
}
