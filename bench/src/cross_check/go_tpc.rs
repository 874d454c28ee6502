//! Runs go-tpc 1.0.12: its order entry, and its check of the specification's consistency conditions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::tool::{
    Ran, {self},
};
use peregrine_harness::error::{HarnessError, Result};

/// The number of conditions of clause 3.3.2 that go-tpc checks: all but the eleventh, which holds for new tables only.
pub(super) const CONDITIONS: u32 = 11;

/// The texts by which its client library reports deadlocks and lock wait timeouts.
const CONFLICTS: [&str; 2] = ["Error 1213", "Error 1205"];

/// The program go-tpc.
#[derive(Debug)]
pub struct GoTpc {
    program: PathBuf,
}

/// The server to connect to, which go-tpc can reach only over TCP, and the size of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub port: u16,
    pub schema: &'a str,
    pub warehouses: u32,
    pub threads: u32,
    /// The file for its output.
    pub log: &'a Path,
}

/// The figures that go-tpc reports of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Report {
    /// New orders, including those that the specification rolls back.
    pub new_orders: u64,
    /// Seconds since the first new order.
    pub seconds: f64,
    /// Transactions of all kinds.
    pub transactions: u64,
    /// Transactions that the server ended because of a conflict; go-tpc does not repeat them.
    pub conflicts: u64,
    /// Other failed transactions.
    pub faults: u64,
}

/// The result of go-tpc's check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Every condition was checked and holds.
    Consistent,
    /// The condition that does not hold, or a check that is incomplete.
    Broken(String),
}

impl GoTpc {
    /// Finds the go-tpc that `verify/tools` installs under `target`, or that of this machine.
    ///
    /// # Errors
    /// When there is none; the message says what installs it.
    pub fn find(target: &Path) -> Result<Self> {
        let installed = target.join("tools/go-tpc");
        for program in [installed, PathBuf::from("go-tpc")] {
            if tool::is_there(&program) {
                return Ok(Self { program });
            }
        }
        Err(HarnessError::Usage(
            "go-tpc is not on this machine: run verify/tools, which installs it into target/tools"
                .to_owned(),
        ))
    }

    fn command(&self, place: &Place<'_>, action: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["tpcc", action, "--host", "127.0.0.1", "--user", "root"])
            .args(["--port", &place.port.to_string()])
            .args(["--db", place.schema])
            .args(["--warehouses", &place.warehouses.to_string()])
            .args(["--threads", &place.threads.to_string()]);
        command
    }

    /// Creates go-tpc's tables in its schema and fills them.
    pub(super) fn prepare(&self, place: &Place<'_>) -> Result<()> {
        let mut command = self.command(place, "prepare");
        let ran = tool::run(command.arg("--no-check"), place.log)?;
        match finished(&ran.text) {
            true => Ok(()),
            false => Err(not_understood(&ran.text)),
        }
    }

    /// Runs go-tpc's usual mix for a while, without keying and think times.
    pub(super) fn run(&self, place: &Place<'_>, time: Duration) -> Result<(Report, Ran)> {
        let mut command = self.command(place, "run");
        command
            .args(["--time", &format!("{}ms", time.as_millis())])
            .args(["--interval", "1h", "--ignore-error"]);
        let ran = tool::run(&mut command, place.log)?;
        let report = read(&ran.text).ok_or_else(|| not_understood(&ran.text))?;
        Ok((report, ran))
    }

    /// Lets go-tpc check the tables of the schema.
    pub(super) fn check(&self, place: &Place<'_>) -> Result<Found> {
        let ran = tool::run(&mut self.command(place, "check"), place.log)?;
        Ok(checked(&ran.text, place.warehouses))
    }
}

fn not_understood(text: &str) -> HarnessError {
    HarnessError::Server(format!(
        "what go-tpc says is not understood: {}",
        text.trim()
    ))
}

fn finished(text: &str) -> bool {
    text.lines().any(|line| line == "Finished")
}

/// Reads the summary of a run.
fn read(text: &str) -> Option<Report> {
    let mut report = Report {
        new_orders: 0,
        seconds: 0.0,
        transactions: 0,
        conflicts: 0,
        faults: 0,
    };
    let mut failed = 0;
    for line in text.lines().filter_map(|l| l.strip_prefix("[Summary] ")) {
        let (name, figures) = line.split_once(" - ")?;
        let figure = |name: &str| {
            let mut figures = figures.split(", ");
            figures.find_map(|figure| figure.strip_prefix(name)?.strip_prefix(": "))
        };
        let count: u64 = figure("Count")?.parse().ok()?;
        let name = name.trim();
        if name.ends_with("_ERR") {
            failed += count;
            continue;
        }
        report.transactions += count;
        if name == "NEW_ORDER" {
            let per_minute: f64 = figure("TPM")?.parse().ok()?;
            report.new_orders = count;
            report.seconds = count as f64 * 60.0 / per_minute;
        }
    }
    let is_conflict = |line: &&str| CONFLICTS.iter().any(|conflict| line.contains(conflict));
    report.conflicts = text.lines().filter(is_conflict).count() as u64;
    report.faults = u64::saturating_sub(failed, report.conflicts);
    (report.new_orders > 0 && report.seconds.is_finite()).then_some(report)
}

/// Reads the output of a check; its exit status is always 0, so this function counts the checked conditions.
fn checked(text: &str, warehouses: u32) -> Found {
    if let Some(line) = text.lines().find(|line| line.contains("failed")) {
        return Found::Broken(line.to_owned());
    }
    let begun = text.lines().filter(|l| l.starts_with("begin to check "));
    let (begun, wanted) = (begun.count(), (warehouses * CONDITIONS) as usize);
    if finished(text) && begun == wanted {
        Found::Consistent
    } else {
        Found::Broken(format!("{begun} conditions of {wanted} were checked"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of go-tpc 1.0.12.
    const RUN: &str = include_str!("captured/go-tpc-run.txt");
    const CONFLICTING: &str = include_str!("captured/go-tpc-conflicts.txt");
    const CHECK: &str = include_str!("captured/go-tpc-check.txt");
    const FAILED: &str = include_str!("captured/go-tpc-check-failed.txt");

    #[test]
    fn a_run_is_read() {
        let report = read(RUN).expect("a report");
        assert_eq!(report.new_orders, 2_020);
        assert_eq!(report.transactions, 199 + 2_020 + 201 + 1_888 + 170);
        assert_eq!((report.conflicts, report.faults), (0, 0));
        assert!((report.seconds - 9.962).abs() < 0.001, "{report:?}");
    }

    #[test]
    fn conflicts_are_no_faults() {
        let report = read(CONFLICTING).expect("a report");
        assert_eq!((report.conflicts, report.faults), (6, 0));
        assert_eq!((report.new_orders, report.transactions), (93, 183));
        let other = CONFLICTING.replacen("Error 1205", "Error 1146", 1);
        let report = read(&other).expect("a report");
        assert_eq!((report.conflicts, report.faults), (5, 1));
    }

    #[test]
    fn what_is_no_report_is_none() {
        for text in ["", "Finished\n", "[Summary] NEW_ORDER - Takes(s): 1.0\n"] {
            assert_eq!(read(text), None);
        }
    }

    #[test]
    fn a_check_holds_only_when_everything_was_checked() {
        assert_eq!(checked(CHECK, 2), Found::Consistent);
        assert_eq!(
            checked(CHECK, 3),
            Found::Broken("22 conditions of 33 were checked".to_owned())
        );
        let unfinished = CHECK.replace("Finished", "");
        assert_ne!(checked(&unfinished, 2), Found::Consistent);
        assert_ne!(checked("Finished\n", 2), Found::Consistent);
    }

    #[test]
    fn a_broken_condition_is_told() {
        let Found::Broken(told) = checked(FAILED, 2) else {
            panic!("it was broken");
        };
        assert!(told.contains("warehouse 2 at condition 3.3.2.8"), "{told}");
    }
}
