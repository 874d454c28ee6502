//! `results.csv`: the runs of a results file as a table, for spreadsheets and other programs.

use std::path::Path;

use serde::Serialize;

use super::record::{Line, Run};
use peregrine_harness::error::{PathContext, Result};

/// The file's name in the output directory.
pub const FILE_NAME: &str = "results.csv";

/// One run.
///
/// The settings, loads and plans of a results file don't fit into a table.
#[derive(Debug, Serialize)]
struct Row<'r> {
    workload: &'r str,
    query: &'r str,
    engine: &'static str,
    protocol: &'static str,
    threads: u32,
    run: u32,
    rate: f64,
    charged_rate: f64,
    due_rate: Option<f64>,
    unit: &'r str,
    seconds: f64,
    queries: u64,
    statements: u64,
    p50_us: u64,
    p95_us: u64,
    p99_us: u64,
    max_us: u64,
    conflicts: u64,
    rolled_back: u64,
    left: u64,
    errors: u64,
    wrong: u64,
    deferred_s: Option<f64>,
    server_cpu_s: Option<f64>,
    client_cpu_s: Option<f64>,
    cache_bytes: u64,
    durability: &'r str,
    problem: Option<&'r str>,
}

impl<'r> Row<'r> {
    fn of(run: &'r Run) -> Self {
        Self {
            workload: &run.workload,
            query: &run.query,
            engine: run.engine.name(),
            protocol: run.protocol.name(),
            threads: run.threads,
            run: run.run,
            rate: run.rate,
            charged_rate: run.charged_rate(),
            due_rate: run.due_rate,
            unit: &run.unit,
            seconds: run.seconds,
            queries: run.queries,
            statements: run.statements,
            p50_us: run.p50_us,
            p95_us: run.p95_us,
            p99_us: run.p99_us,
            max_us: run.max_us,
            conflicts: run.conflicts.values().sum(),
            rolled_back: run.rolled_back,
            left: run.left,
            errors: run.errors,
            wrong: run.wrong,
            deferred_s: run.deferred.map(|deferred| deferred.seconds),
            server_cpu_s: run.server_cpu_s,
            client_cpu_s: run.client_cpu_s,
            cache_bytes: run.cache_bytes,
            durability: &run.durability,
            problem: run.problem.as_deref(),
        }
    }
}

/// Writes the runs among `lines` to the file in `dir`.
///
/// # Errors
/// When the file can't be written.
pub fn write(dir: &Path, lines: &[Line]) -> Result<()> {
    let path = dir.join(FILE_NAME);
    table(lines)
        .map_err(std::io::Error::other)
        .and_then(|text| std::fs::write(&path, text))
        .at("cannot write", &path)
}

fn table(lines: &[Line]) -> csv::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        if let Line::Run(run) = line {
            writer.serialize(Row::of(run))?;
        }
    }
    writer
        .into_inner()
        .map_err(|error| error.into_error().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;
    use peregrine_harness::engines::Engine;

    #[test]
    fn a_line_a_run_under_its_names() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut lines = sample::lines();
        let mut failed = sample::run(Engine::InnoDb, "READ_FTS", 4, 2, 12.5);
        failed.problem = Some("no \"answer\",\nat all".to_owned());
        failed.server_cpu_s = None;
        lines.push(Line::Run(failed));
        write(dir.path(), &lines).expect("written");
        let text = std::fs::read_to_string(dir.path().join(FILE_NAME)).expect("read");
        let first: Vec<&str> = text.lines().take(2).collect();
        assert!(first[0].starts_with(
            "workload,query,engine,protocol,threads,run,rate,charged_rate,due_rate,unit,"
        ));
        assert!(
            first[1].starts_with("normal,READ_PK_POINT,innodb,text,1,1,100.0,100.0,,queries/s,")
        );
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let records: Vec<csv::StringRecord> =
            reader.records().collect::<csv::Result<_>>().expect("read");
        assert_eq!(records.len(), 3);
        assert_eq!(records[2].get(6), Some("12.5"));
        assert_eq!(records[2].get(23), Some(""));
        assert_eq!(records[2].get(27), Some("no \"answer\",\nat all"));
    }
}
