//! The disk under a schedule: calls that fail, and the check of its contents.

use std::sync::Arc;

use peregrine::check::{check_on, Report};
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::os::Os;

use super::tables::OF_ONE_SESSION;
use peregrine_harness::dice::Dice;

/// The directory of the database.
pub const DIR: &str = "/db";

/// Makes one or more later calls to the operating system fail.
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

/// Checks the structure of a database that is closed.
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

/// Checks the structure after a crash.
///
/// A table of one session whose filling failed may have a row without its entries, if the crash came before the drop.
/// The next opening drops the table, and no session sees it.
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

/// Checks the structure of a closed and purged database: it must have no records that no session can see.
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
