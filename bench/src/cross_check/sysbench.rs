//! Runs sysbench 1.0 with the script in `contrib/sysbench`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::tool::{
    Ran, {self},
};
use peregrine_harness::engines::Protocol;
use peregrine_harness::error::{HarnessError, PathContext, Result};

/// The script of the queries.
const SCRIPT: &str = include_str!("../../../contrib/sysbench/normal.lua");

/// The program sysbench, for a table `normal`.
#[derive(Debug)]
pub struct Sysbench {
    program: PathBuf,
}

/// A request for one turn of sysbench.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub query: &'a str,
    pub rows: u32,
    pub protocol: Protocol,
    pub threads: u32,
    pub time: Duration,
    pub seed: u64,
    pub socket: &'a Path,
    pub schema: &'a str,
    /// The directory for the script and the output.
    pub dir: &'a Path,
}

/// The figures that sysbench reports of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Report {
    pub queries: u64,
    pub seconds: f64,
    /// Errors after which sysbench went on, and reconnections.
    pub faults: u64,
}

impl Sysbench {
    /// Finds the sysbench of this machine.
    ///
    /// # Errors
    /// When there is none; the message names its package.
    pub fn find() -> Result<Self> {
        let program = PathBuf::from("sysbench");
        if tool::is_there(&program) {
            return Ok(Self { program });
        }
        Err(HarnessError::Usage(
            "sysbench is not on this machine: install it (Debian: apt-get install sysbench)"
                .to_owned(),
        ))
    }

    /// Runs one query for a while.
    pub(super) fn ask(&self, asked: &Asked<'_>) -> Result<(Report, Ran)> {
        let script = asked.dir.join("normal.lua");
        std::fs::write(&script, SCRIPT).at("cannot write", &script)?;
        let mut command = Command::new(&self.program);
        command
            .arg(&script)
            .arg(format!("--query={}", asked.query))
            .arg(format!("--rows={}", asked.rows))
            .arg(format!("--protocol={}", asked.protocol.name()))
            .arg(format!("--threads={}", asked.threads))
            .arg(format!("--time={}", asked.time.as_secs().max(1)))
            .arg(format!("--rand-seed={}", asked.seed % (1 << 31)))
            .arg("--db-driver=mysql")
            .arg("--mysql-user=root")
            .arg(format!("--mysql-socket={}", asked.socket.display()))
            .arg(format!("--mysql-db={}", asked.schema))
            .arg("run");
        let ran = tool::run(&mut command, &asked.dir.join("sysbench.log"))?;
        let report = read(&ran.text).ok_or_else(|| {
            HarnessError::Server(format!(
                "the report of sysbench is not understood: {}",
                ran.text.trim()
            ))
        })?;
        Ok((report, ran))
    }
}

/// Reads sysbench's report.
fn read(text: &str) -> Option<Report> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
        line?.split_whitespace().next()
    };
    let count = |name: &str| value(name)?.parse::<u64>().ok();
    Some(Report {
        queries: count("queries:")?,
        seconds: value("total time:")?.strip_suffix('s')?.parse().ok()?,
        faults: count("ignored errors:")? + count("reconnects:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{builtin, Options, Workload};

    /// The output of sysbench 1.0.20.
    const REPORT: &str = include_str!("captured/sysbench.txt");

    #[test]
    fn a_report_is_read() {
        let report = read(REPORT).expect("a report");
        let wanted = Report {
            queries: 22_710,
            seconds: 1.0041,
            faults: 0,
        };
        assert_eq!(report, wanted);
        let faulty = REPORT
            .replace(
                "ignored errors:                      0",
                "ignored errors:                      7",
            )
            .replace(
                "reconnects:                          0",
                "reconnects:                          2",
            );
        assert_eq!(read(&faulty).map(|report| report.faults), Some(9));
    }

    #[test]
    fn what_is_no_report_is_none() {
        let cut = REPORT.split("General").next().unwrap_or_default();
        for text in ["", "FATAL: `thread_init' function failed", cut] {
            assert_eq!(read(text), None);
        }
    }

    #[test]
    fn the_script_asks_what_the_workload_asks() {
        let (text, source) = builtin::find("normal").expect("shipped");
        let workload = Workload::read(&text, &source, &Options::default()).expect("right");
        // The script's constants, joined as Lua joins them.
        let script = SCRIPT
            .replace("\" .. in_country", "FROM normal WHERE country_id = ?\"")
            .replace(
                "\" .. in_states",
                "FROM normal WHERE country_id = ? AND state_id BETWEEN ? AND ?\"",
            )
            .replace("\" .. \"", "");
        for cell in workload.cells() {
            let place = format!("   {cell} = {{\"");
            let (_, rest) = script.split_once(&place).expect(cell);
            let asks = rest.split('"').next();
            assert_eq!(asks, Some(workload.described(cell).as_str()), "{cell}");
        }
    }
}
