//! The disk under a schedule: calls that fail, and the check of what is on it.

use std::sync::Arc;

use peregrine::check::{check_on, Report};
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::os::Os;

use super::varied::OF_ONE_SESSION;
use crate::dice::Dice;

/// The directory of the database.
pub const DIR: &str = "/db";

/// Lets a call fail that is to come, or calls.
pub fn let_fail(os: &SimulatedOs, dice: &mut Dice) {
    let calls = [
        FaultOn::Write,
        FaultOn::Sync,
        FaultOn::Read,
        FaultOn::Any,
        FaultOn::Growth,
    ];
    let on = calls[dice.below(5) as usize];
    let kind = match dice.below(2) {
        0 => std::io::ErrorKind::Other,
        _ => std::io::ErrorKind::StorageFull,
    };
    let most = 1 << dice.below(7);
    let after = u64::from(dice.below(most));
    match dice.below(3) {
        0 => os.fail(on, after, kind),
        1 => os.fail_once(on, after, kind),
        _ => os.fail_now_and_then(on, 1 + after, kind),
    }
}

/// The structural check of a database that nobody has open.
fn check(os: &SimulatedOs) -> Result<Report, String> {
    let os: Arc<dyn Os> = Arc::new(os.clone());
    let mut report = Report::default();
    check_on(os, DIR, &mut report).map_err(|error| format!("checking: {error}"))?;
    Ok(report)
}

fn none<'a>(mut problems: impl Iterator<Item = &'a String>) -> Result<(), String> {
    problems
        .next()
        .map_or(Ok(()), |problem| Err(format!("the check found: {problem}")))
}

/// The same after a crash. A table of one session that could not be filled may have a row that lacks entries, if the
/// crash came before it was dropped: the next opening drops it, and nobody sees it.
pub fn check_crashed(os: &SimulatedOs) -> Result<(), String> {
    let report = check(os)?;
    let unseen = format!("table {OF_ONE_SESSION}");
    none(
        report
            .problems
            .iter()
            .filter(|problem| !problem.starts_with(&unseen)),
    )
}

/// The same, when a database was closed and all was purged: nothing stands there that nobody can see any more.
pub fn check_purged(os: &SimulatedOs) -> Result<(), String> {
    let report = check(os)?;
    none(report.problems.iter())?;
    for table in report.tables {
        if (table.deleted, table.unused_chunks) != (0, 0) {
            return Err(format!(
                "table {}: {} rows and entries that are marked as deleted, and {} records of large values that no row \
                 has, are left",
                table.name, table.deleted, table.unused_chunks
            ));
        }
    }
    Ok(())
}
