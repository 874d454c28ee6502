//! A workload's section of the page: its static contents.

use serde::Serialize;

use super::data::Query;
use super::series::Series;
use super::settings::megabytes;
use super::Source;
use crate::results::file;
use crate::results::record::{Kind, Line, Load, Plan, PlanStep, Run};
use crate::workload::{Options, Workload, MIX};
use peregrine_harness::arithmetic;

/// A workload's section.
#[derive(Debug, Serialize)]
pub struct Section {
    name: String,
    about: String,
    /// Whether the workload has transactions that were measured.
    is_measured: bool,
    loads: Vec<LoadRow>,
    /// Whether loading itself was measured, also by INSERT and by building indexes.
    in_every_way: bool,
    kinds: Vec<KindRow>,
    plans: Vec<PlanRow>,
}

#[derive(Debug, Serialize)]
struct LoadRow {
    label: String,
    engine: &'static str,
    seconds: String,
    /// Percent of the longest time.
    seconds_part: f64,
    megabytes: String,
    megabytes_part: f64,
    told: String,
    insert: String,
    insert_part: f64,
    index: String,
    index_part: f64,
    free: String,
    log: String,
    analyze: String,
    settle: String,
    durability: String,
}

/// One kind of transaction in the best run of a mixed cell.
#[derive(Debug, Serialize)]
struct KindRow {
    label: String,
    threads: u32,
    name: String,
    rate: String,
    kind: Kind,
}

#[derive(Debug, Serialize)]
struct PlanRow {
    query: String,
    cells: Vec<PlanCell>,
}

#[derive(Debug, Serialize)]
struct PlanCell {
    label: String,
    text: String,
    differs: bool,
}

/// The sections of all workloads that were measured or loaded, in the order of their headers.
pub fn sections(sources: &[Source], queries: &[Query], series: &[Series<'_>]) -> Vec<Section> {
    let headers = sources
        .iter()
        .filter_map(|source| file::header(&source.lines));
    let mut names: Vec<&str> = Vec::new();
    for planned in headers.flat_map(|header| &header.settings.workloads) {
        if !names.contains(&planned.name.as_str()) {
            names.push(&planned.name);
        }
    }
    let groups = super::data::groups(series);
    let section = |name: &str| {
        let loads = loads(series, name);
        let is_measured = groups.iter().any(|group| group.workload == name);
        (is_measured || !loads.is_empty()).then(|| Section {
            name: name.to_owned(),
            about: about(sources, name),
            is_measured: is_measured && queries.iter().any(|query| query.workload == name),
            in_every_way: loads.iter().any(|row| !row.insert.is_empty()),
            loads,
            kinds: kinds(series, name),
            plans: plans(series, name),
        })
    };
    names.into_iter().filter_map(section).collect()
}

/// Returns the description from a workload's file.
fn about(sources: &[Source], name: &str) -> String {
    let headers = sources
        .iter()
        .filter_map(|source| file::header(&source.lines));
    let mut planned = headers.flat_map(|header| &header.settings.workloads);
    let read = planned.find(|planned| planned.name == name).map(|planned| {
        let options = Options {
            set: planned.parameters.clone(),
            ..Options::default()
        };
        Workload::read(&planned.text, &planned.source, &options)
    });
    match read {
        Some(Ok(workload)) => workload.about,
        // This version may not understand a file of another version.
        _ => String::new(),
    }
}

fn loads(series: &[Series<'_>], workload: &str) -> Vec<LoadRow> {
    let found: Vec<_> = series
        .iter()
        .filter_map(|series| Some((series, series.load(workload)?)))
        .collect();
    let longest = arithmetic::maximum(found.iter().map(|(_, load)| load.seconds));
    let largest = arithmetic::maximum(found.iter().map(|(_, load)| load.disk_bytes as f64));
    let slowest = |time: fn(&Load) -> Option<f64>| {
        arithmetic::maximum(found.iter().filter_map(|(_, load)| time(load)))
    };
    let (by_insert, by_index) = (slowest(|load| load.insert_s), slowest(|load| load.index_s));
    let percent = |value: f64, of: Option<f64>| {
        let part = of.and_then(|of| arithmetic::ratio(value * 100.0, of));
        part.unwrap_or(0.0)
    };
    found
        .iter()
        .map(|(series, load)| LoadRow {
            label: series.label.clone(),
            engine: series.engine.name(),
            seconds: format!("{:.1}", load.seconds),
            seconds_part: percent(load.seconds, longest),
            megabytes: megabytes(load.disk_bytes),
            megabytes_part: percent(load.disk_bytes as f64, largest),
            told: match (load.data_bytes, load.index_bytes) {
                // An embedded store reports neither.
                (0, 0) => String::new(),
                (data, index) => format!("{} + {}", megabytes(data), megabytes(index)),
            },
            insert: load.insert_s.map_or_else(String::new, seconds),
            insert_part: percent(load.insert_s.unwrap_or(0.0), by_insert),
            index_part: percent(load.index_s.unwrap_or(0.0), by_index),
            index: load.index_s.map_or_else(String::new, seconds),
            free: megabytes(load.free_bytes),
            log: megabytes(load.log_bytes),
            analyze: format!("{:.1}", load.analyze_s),
            settle: format!("{:.1}", load.settle_s),
            durability: load.durability.clone(),
        })
        .collect()
}

fn seconds(time: f64) -> String {
    format!("{time:.1}")
}

fn kinds(series: &[Series<'_>], workload: &str) -> Vec<KindRow> {
    let mut groups = super::data::groups(series);
    groups.retain(|group| group.workload == workload && group.query == MIX);
    let mut rows = Vec::new();
    for group in groups {
        for series in series {
            let runs = series.runs(&group).iter().filter(|run| run.is_valid());
            let Some(best) = runs.max_by(|a, b| a.rate.total_cmp(&b.rate)) else {
                continue;
            };
            rows.extend(best.kinds.iter().map(|(name, kind)| KindRow {
                label: series.label.clone(),
                threads: group.threads,
                name: name.clone(),
                rate: each_second(kind, best),
                kind: kind.clone(),
            }));
        }
    }
    rows
}

fn each_second(kind: &Kind, run: &Run) -> String {
    let rate = arithmetic::ratio(kind.count as f64, run.seconds);
    rate.map_or_else(String::new, |rate| format!("{rate:.1}"))
}

fn plans(series: &[Series<'_>], workload: &str) -> Vec<PlanRow> {
    let mut rows: Vec<PlanRow> = Vec::new();
    for series in series {
        let lines = series.sources().flat_map(|source| &source.lines);
        for line in lines {
            let Line::Plan(plan) = line else { continue };
            if plan.engine != series.engine || plan.workload != workload {
                continue;
            }
            let cell = plan_cell(&series.label, plan);
            match rows.iter_mut().find(|row| row.query == plan.query) {
                Some(row) => row.cells.push(cell),
                None => rows.push(PlanRow {
                    query: plan.query.clone(),
                    cells: vec![cell],
                }),
            }
        }
    }
    rows
}

fn plan_cell(label: &str, plan: &Plan) -> PlanCell {
    let steps: Vec<String> = plan.steps.iter().map(plan_text).collect();
    let text = match steps.join("; ") {
        empty if empty.is_empty() => "no steps of the server's: the engine runs it".to_owned(),
        text => text,
    };
    PlanCell {
        label: label.to_owned(),
        text,
        differs: plan.same_as_baseline == Some(false),
    }
}

fn plan_text(step: &PlanStep) -> String {
    let parts = [
        step.access.clone(),
        step.key.clone(),
        step.rows.as_ref().map(|rows| format!("≈{rows} rows")),
        step.extra.clone(),
    ];
    let told: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    told.join(", ")
}
