//! The runs, as the page's script reads them.
//!
//! This module, and not the script, decides what is best and what ties.

use serde::Serialize;

use super::series::Series;
use super::Source;
use crate::results::comparison::Group;
use crate::results::file;
use crate::results::record::{Line, Run, Second};
use crate::workload::{Options, Workload};
use peregrine_harness::arithmetic;
use peregrine_harness::error::{HarnessError, Result};

#[derive(Serialize)]
struct Data {
    queries: Vec<Query>,
    series: Vec<About>,
    /// The series that the ratios are relative to at first.
    baseline: Option<usize>,
    /// The names of a run's numbers.
    columns: [&'static str; COLUMNS.len()],
    cells: Vec<Cell>,
}

/// A transaction or mix that is measured.
#[derive(Debug, Clone, Serialize)]
pub struct Query {
    /// The workload.
    pub workload: String,
    /// The transaction, or `mix`.
    pub name: String,
    /// The statement, or the mix.
    pub sql: String,
    /// The unit of the figure.
    pub unit: String,
}

#[derive(Serialize)]
struct About {
    id: String,
    label: String,
    engine: &'static str,
    part: usize,
}

/// A query at a number of threads with a protocol.
#[derive(Serialize)]
struct Cell {
    /// The index of its query.
    query: usize,
    protocol: &'static str,
    threads: u32,
    /// For each series its runs; `null` where the cell wasn't measured.
    by: Vec<Option<Measured>>,
    /// Pairs of series whose figures differ no more than runs of the same cell do.
    ties: Vec<(usize, usize)>,
}

#[derive(Serialize)]
struct Measured {
    /// The index of the best run, whose figure counts; `null` when the cell is void.
    best: Option<usize>,
    runs: Vec<Numbers>,
    /// The best run over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<Over>,
    /// The first problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A run over time.
#[derive(Serialize, Debug, PartialEq)]
struct Over {
    /// Seconds for each point.
    step: usize,
    /// For each point: transactions a second, their mean latency and the maximum, in microseconds.
    points: Vec<(f64, u64, u64)>,
}

/// The maximum number of points of a run over time.
///
/// A longer run has longer points, so that the page stays small.
const MOST_POINTS: usize = 40;

fn over(seconds: &[Second]) -> Option<Over> {
    let step = seconds.len().div_ceil(MOST_POINTS);
    if seconds.len() < 2 || step == 0 {
        return None;
    }
    let points = seconds.chunks_exact(step).map(|chunk| {
        let done: u64 = chunk.iter().map(|second| second.done).sum();
        let micros: u64 = chunk.iter().map(|s| s.done.saturating_mul(s.mean_us)).sum();
        let rate = done as f64 / step as f64;
        (
            (rate * 10.0).round() / 10.0,
            micros.checked_div(done).unwrap_or(0),
            chunk.iter().map(|second| second.max_us).max().unwrap_or(0),
        )
    });
    Some(Over {
        step,
        points: points.collect(),
    })
}

/// The names of a run's numbers.
const COLUMNS: [&str; 15] = [
    "run",
    "rate",
    "charged",
    "p50_us",
    "p95_us",
    "p99_us",
    "max_us",
    "server_us",
    "client_us",
    "done",
    "conflicts",
    "rolled_back",
    "left",
    "errors",
    "wrong",
];

type Numbers = [Option<f64>; COLUMNS.len()];

fn numbers(run: &Run) -> Numbers {
    let number = |value: u64| Some(value as f64);
    // Processor time per transaction, in microseconds to a tenth.
    let each = |seconds: Option<f64>| {
        let each = arithmetic::ratio(seconds? * 1e7, run.queries as f64)?;
        Some(each.round() / 10.0)
    };
    [
        number(run.run.into()),
        Some(run.rate),
        run.deferred
            .map(|_| (run.charged_rate() * 1e3).round() / 1e3),
        number(run.p50_us),
        number(run.p95_us),
        number(run.p99_us),
        number(run.max_us),
        each(run.server_cpu_s),
        each(run.client_cpu_s),
        number(run.queries),
        number(run.conflicts.values().sum()),
        number(run.rolled_back),
        number(run.left),
        number(run.errors),
        number(run.wrong),
    ]
}

/// The runs as JSON, safe inside a `script` element.
///
/// # Errors
/// When JSON can't represent them.
pub fn embedded(
    queries: &[Query],
    series: &[Series<'_>],
    baseline: Option<usize>,
) -> Result<String> {
    let data = Data {
        queries: queries.to_vec(),
        series: series
            .iter()
            .map(|series| About {
                id: series.id.clone(),
                label: series.label.clone(),
                engine: series.engine.name(),
                part: series.part,
            })
            .collect(),
        baseline,
        columns: COLUMNS,
        cells: cells(queries, series),
    };
    let json =
        serde_json::to_string(&data).map_err(|error| HarnessError::Report(error.to_string()))?;
    // Without `<`, nothing in the JSON can end the script element early.
    Ok(json.replace('<', "\\u003c"))
}

/// Returns every cell that some series has, by query, protocol and threads.
fn cells(queries: &[Query], series: &[Series<'_>]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for group in groups(series) {
        let is_of = |query: &Query| query.workload == group.workload && query.name == group.query;
        let Some(query) = queries.iter().position(is_of) else {
            continue;
        };
        cells.push(Cell {
            query,
            protocol: group.protocol.name(),
            threads: group.threads,
            by: series
                .iter()
                .map(|series| measured(series, &group))
                .collect(),
            ties: ties(series, &group),
        });
    }
    cells.sort_by_key(|cell| (cell.query, cell.protocol != "text", cell.threads));
    cells
}

/// Returns every cell that was measured, in order.
pub fn groups(series: &[Series<'_>]) -> Vec<Group> {
    let mut groups: Vec<Group> = series.iter().flat_map(Series::groups).collect();
    groups.sort();
    groups.dedup();
    groups
}

fn measured(series: &Series<'_>, group: &Group) -> Option<Measured> {
    let runs = series.runs(group);
    let counts = series.rates(group).is_some();
    let best = runs
        .iter()
        .enumerate()
        .max_by(|(_, a), (_, b)| a.rate.total_cmp(&b.rate))?
        .0;
    Some(Measured {
        best: counts.then_some(best),
        runs: runs.iter().map(numbers).collect(),
        over: runs
            .get(best)
            .filter(|_| counts)
            .and_then(|run| over(&run.by_second)),
        problem: runs.iter().find_map(|run| run.problem.clone()),
    })
}

fn ties(series: &[Series<'_>], group: &Group) -> Vec<(usize, usize)> {
    let rates: Vec<Option<Vec<f64>>> = series.iter().map(|series| series.rates(group)).collect();
    let mut ties = Vec::new();
    for (one, runs) in rates.iter().enumerate() {
        for (other, others) in rates.iter().enumerate().skip(one + 1) {
            let both = runs.as_ref().zip(others.as_ref());
            if both.is_some_and(|(runs, others)| arithmetic::tie(runs, others) == Some(true)) {
                ties.push((one, other));
            }
        }
    }
    ties
}

/// Returns everything that was measured, in the order of the workloads' files.
pub fn queries(sources: &[Source]) -> Vec<Query> {
    let mut known: Vec<Query> = Vec::new();
    let headers = sources
        .iter()
        .filter_map(|source| file::header(&source.lines));
    for planned in headers.flat_map(|header| &header.settings.workloads) {
        let options = Options {
            set: planned.parameters.clone(),
            ..Options::default()
        };
        // This version may not understand a file of another version.
        let workload = Workload::read(&planned.text, &planned.source, &options).ok();
        for cell in &planned.cells {
            let is_known = |query: &Query| query.workload == planned.name && query.name == *cell;
            if known.iter().any(is_known) {
                continue;
            }
            let read = workload.as_ref();
            known.push(Query {
                workload: planned.name.clone(),
                name: cell.clone(),
                sql: read.map_or_else(String::new, |workload| workload.described(cell)),
                unit: unit(sources, &planned.name, cell),
            });
        }
    }
    // Keeps a workload's queries together when several directories have some.
    let mut order: Vec<String> = Vec::new();
    for query in &known {
        if !order.contains(&query.workload) {
            order.push(query.workload.clone());
        }
    }
    known.sort_by_key(|query| order.iter().position(|name| *name == query.workload));
    known
}

/// The unit of a cell's figures, from its runs.
fn unit(sources: &[Source], workload: &str, cell: &str) -> String {
    let mut lines = sources.iter().flat_map(|source| &source.lines);
    let unit = lines.find_map(|line| match line {
        Line::Run(run) if run.workload == workload && run.query == cell => Some(run.unit.clone()),
        _ => None,
    });
    unit.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_told_more_coarsely() {
        let second = |done, mean_us, max_us| Second {
            done,
            mean_us,
            max_us,
        };
        assert_eq!(over(&[]), None);
        assert_eq!(over(&[second(1, 2, 3)]), None);
        let short = over(&[second(10, 5, 9), second(0, 0, 0)]).expect("points");
        assert_eq!((short.step, short.points.len()), (1, 2));
        // 81 seconds: three for each point, so 27 points. Each point has 10 + 30 + 20 transactions in three seconds.
        let three = [
            second(10, 100, 400),
            second(30, 200, 900),
            second(20, 50, 60),
        ];
        let long = over(&three.repeat(27)).expect("points");
        assert_eq!((long.step, long.points.len()), (3, 27));
        // (1,000 + 6,000 + 1,000) / 60 = 133
        assert_eq!(long.points[26], (20.0, 133, 900));
    }
}
