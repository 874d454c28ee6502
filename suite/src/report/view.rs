//! What stands still in the page: headline, load and size, plans, settings, commands.

use std::collections::BTreeMap;

use serde::Serialize;

use super::data::label;
use super::Source;
use crate::arithmetic;
use crate::results::file;
use crate::results::record::{Header, Kind, Line, Load, Plan, PlanStep, Run};
use crate::results::Comparison;
use crate::runner::measuring::short;
use crate::runner::summary::baseline;
use crate::target::Engine;

/// The page's fixed contents.
#[derive(Debug, Serialize)]
pub struct View {
    title: String,
    subtitle: String,
    cards: Vec<Card>,
    /// Settings in which the sources differ.
    warnings: Vec<String>,
    loads: Vec<LoadRow>,
    plans: Vec<PlanRow>,
    sources: Vec<SourceAbout>,
    runs: Vec<RunRow>,
    kinds: Vec<KindRow>,
    several_workloads: bool,
}

/// One kind among the mixed transactions of a cell's best run.
#[derive(Debug, Serialize)]
struct KindRow {
    workload: String,
    label: String,
    threads: u32,
    name: String,
    rate: String,
    kind: Kind,
}

#[derive(Debug, Serialize)]
struct Card {
    figure: String,
    text: String,
    good: bool,
}

#[derive(Debug, Serialize)]
struct LoadRow {
    workload: String,
    label: String,
    engine: &'static str,
    seconds: String,
    /// Percent of the longest.
    seconds_part: f64,
    megabytes: String,
    megabytes_part: f64,
    told: String,
    analyze: String,
    settle: String,
    durability: String,
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

#[derive(Debug, Serialize)]
struct SourceAbout {
    name: String,
    command: String,
    facts: Vec<(String, String)>,
    variables: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct RunRow {
    label: String,
    query: String,
    protocol: &'static str,
    run: Run,
    rate: String,
    /// Conflicts by error code.
    conflicts: String,
    valid: bool,
}

impl View {
    /// Collects the contents from the results.
    pub fn new(sources: &[Source]) -> Self {
        let headers: Vec<&Header> = sources
            .iter()
            .filter_map(|s| file::header(&s.lines))
            .collect();
        let subtitle = headers.first().map_or_else(String::new, |header| {
            format!(
                "MariaDB {} · {} · {} processors · {}",
                header.server_version,
                header.machine.cpu,
                header.machine.cores,
                header.started.split('T').next().unwrap_or_default()
            )
        });
        Self {
            title: if headers.is_empty() {
                "Engines side by side: when sessions meet"
            } else {
                "Engines side by side"
            }
            .to_owned(),
            subtitle,
            cards: sources.first().map_or_else(Vec::new, |s| cards(&s.lines)),
            warnings: differences(sources),
            loads: loads(sources),
            plans: plans(sources),
            sources: sources.iter().filter_map(about).collect(),
            runs: runs(sources),
            kinds: sources
                .iter()
                .flat_map(|source| kinds(sources, source))
                .collect(),
            several_workloads: headers
                .iter()
                .any(|header| header.settings.workloads.len() > 1),
        }
    }
}

fn cards(lines: &[Line]) -> Vec<Card> {
    let Some(header) = file::header(lines) else {
        return Vec::new();
    };
    let comparison = Comparison::new(lines);
    let baseline = baseline(&header.settings.engines);
    // Ours if it took part, else whichever came last.
    let engines = &header.settings.engines;
    let shown = if engines.contains(&Engine::Peregrine) {
        Some(Engine::Peregrine)
    } else {
        engines.last().copied()
    };
    let mut cards = Vec::new();
    if let Some(engine) = shown.filter(|engine| *engine != baseline) {
        let names = format!("{} / {}", engine.title(), baseline.title());
        if let Some(summary) = comparison.summary(engine, baseline) {
            cards.push(Card {
                figure: format!("{:.2}×", summary.mean),
                text: format!("{names}, geometric mean over {} cells", summary.cells),
                good: summary.mean >= 1.0,
            });
            cards.push(Card {
                figure: format!("{:.2}×", summary.least.0),
                text: format!(
                    "least of all cells: {}, {} threads",
                    summary.least.1.query, summary.least.1.threads
                ),
                good: summary.least.0 >= 1.0,
            });
        }
        let first = header.settings.workloads.first();
        let load = |engine| load_of(lines, &first?.name, engine);
        if let (Some(ours), Some(theirs)) = (load(engine), load(baseline)) {
            if let Some(ratio) = arithmetic::ratio(ours.seconds, theirs.seconds) {
                cards.push(Card {
                    figure: format!("{ratio:.2}×"),
                    text: format!("{names}, time to load (less is better)"),
                    good: ratio <= 1.0,
                });
            }

            let ratio = arithmetic::ratio(ours.disk_bytes as f64, theirs.disk_bytes as f64);
            if let Some(ratio) = ratio {
                cards.push(Card {
                    figure: format!("{ratio:.2}×"),
                    text: format!("{names}, size on disk (less is better)"),
                    good: ratio <= 1.0,
                });
            }
        }
    }
    let wrong: u64 = lines
        .iter()
        .map(|line| match line {
            Line::Run(run) => run.wrong,
            _ => 0,
        })
        .sum();
    let answered: u64 = lines
        .iter()
        .map(|line| match line {
            Line::Run(run) => run.queries,
            _ => 0,
        })
        .sum();
    cards.push(Card {
        figure: wrong.to_string(),

        text: format!("wrong answers among {} checked", short(answered as f64)),
        good: wrong == 0,
    });
    cards
}

fn load_of<'l>(lines: &'l [Line], workload: &str, engine: Engine) -> Option<&'l Load> {
    lines.iter().rev().find_map(|line| match line {
        Line::Load(load) if load.engine == engine && load.workload == workload => Some(load),
        _ => None,
    })
}

fn loads(sources: &[Source]) -> Vec<LoadRow> {
    let mut found: Vec<(String, &Load)> = Vec::new();
    for source in sources {
        let Some(header) = file::header(&source.lines) else {
            continue;
        };
        for planned in &header.settings.workloads {
            for engine in &header.settings.engines {
                if let Some(load) = load_of(&source.lines, &planned.name, *engine) {
                    found.push((label(sources, source, *engine), load));
                }
            }
        }
    }
    // Bars are as long as a load is beside the others of its workload.
    let of_same = |load: &Load| {
        let workload = load.workload.clone();
        let loads = found.iter().map(|(_, load)| *load);
        loads.filter(move |other| other.workload == workload)
    };
    found
        .iter()
        .map(|(label, load)| {
            let longest = arithmetic::best(of_same(load).map(|load| load.seconds));
            let largest = arithmetic::best(of_same(load).map(|load| load.disk_bytes as f64));
            (label, *load, longest.unwrap_or(1.0), largest.unwrap_or(1.0))
        })
        .map(|(label, load, longest, largest)| LoadRow {
            workload: load.workload.clone(),
            label: label.clone(),
            engine: load.engine.name(),
            seconds: format!("{:.1}", load.seconds),
            seconds_part: arithmetic::ratio(load.seconds * 100.0, longest).unwrap_or(0.0),
            megabytes: megabytes(load.disk_bytes),
            megabytes_part: arithmetic::ratio(load.disk_bytes as f64 * 100.0, largest)
                .unwrap_or(0.0),
            told: format!(
                "{} + {}",
                megabytes(load.data_bytes),
                megabytes(load.index_bytes)
            ),
            analyze: format!("{:.1}", load.analyze_s),
            settle: format!("{:.1}", load.settle_s),
            durability: load.durability.clone(),
        })
        .collect()
}

fn megabytes(bytes: u64) -> String {
    let value = bytes as f64 / 1e6;
    format!("{value:.0}")
}

fn plans(sources: &[Source]) -> Vec<PlanRow> {
    let mut rows: Vec<PlanRow> = Vec::new();
    for source in sources {
        let all = source.lines.iter().filter_map(|line| match line {
            Line::Plan(plan) => Some(plan),
            _ => None,
        });
        for plan in all {
            let cell = plan_cell(sources, source, plan);
            let name = format!("{} {}", plan.workload, plan.query);
            match rows.iter_mut().find(|row| row.query == name) {
                Some(row) => row.cells.push(cell),
                None => rows.push(PlanRow {
                    query: name,
                    cells: vec![cell],
                }),
            }
        }
    }
    rows
}

fn plan_cell(sources: &[Source], source: &Source, plan: &Plan) -> PlanCell {
    let steps: Vec<String> = plan.steps.iter().map(plan_text).collect();
    PlanCell {
        label: label(sources, source, plan.engine),
        text: steps.join("; "),
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

/// What settings are called and what they are; also what sources are compared by.
fn facts(header: &Header) -> Vec<(String, String)> {
    let settings = &header.settings;
    let joined = |names: Vec<String>| names.join(", ");
    let facts = vec![
        ("server", header.server_version.clone()),
        ("suite", header.suite_version.clone()),
        (
            "processor",
            format!("{}, {} usable", header.machine.cpu, header.machine.cores),
        ),
        (
            "memory",
            format!("{} MB", megabytes(header.machine.memory_bytes)),
        ),
        (
            "system",
            format!(
                "{}, kernel {}",
                header.machine.system, header.machine.kernel
            ),
        ),
        ("file system", header.machine.file_system.clone()),
        ("profile", settings.profile.clone()),
        ("seed", settings.seed.to_string()),
        (
            "cache",
            format!("{} MiB for each engine", settings.cache_bytes >> 20),
        ),
        ("character set", settings.charset.clone()),
        ("placement", settings.placement.name().to_owned()),
        (
            "protocols",
            joined(
                settings
                    .protocols
                    .iter()
                    .map(|p| p.name().to_owned())
                    .collect(),
            ),
        ),
        (
            "method",
            format!(
                "warm-up {} s, {} runs of {} s, best counts, all are shown",
                settings.warm_up_s, settings.runs, settings.run_s
            ),
        ),
    ];
    let mut facts: Vec<(String, String)> = facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    for planned in &settings.workloads {
        let parameters = planned.parameters.iter();
        let shown: Vec<String> = parameters
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        facts.push((format!("workload {}", planned.name), shown.join(", ")));
    }
    for engine in &settings.engines {
        if let Some(version) = header.engine_versions.get(engine.name()) {
            facts.push((engine.title().to_owned(), version.clone()));
        }
    }
    facts
}

fn differences(sources: &[Source]) -> Vec<String> {
    let headers: Vec<(&Source, &Header)> = sources
        .iter()
        .filter_map(|source| Some((source, file::header(&source.lines)?)))
        .collect();
    let Some(((first, first_header), others)) = headers.split_first() else {
        return Vec::new();
    };
    let expected: BTreeMap<String, String> = facts(first_header).into_iter().collect();
    let mut found = Vec::new();
    for (source, header) in others {
        for (name, value) in facts(header) {
            if let Some(before) = expected.get(&name).filter(|before| **before != value) {
                found.push(format!(
                    "{name}: {before} in {}, {value} in {}",
                    first.name, source.name
                ));
            }
        }
    }
    found
}

fn about(source: &Source) -> Option<SourceAbout> {
    let header = file::header(&source.lines)?;
    let peak = source.lines.iter().filter_map(|line| match line {
        Line::Run(run) => run.server_peak_rss_bytes,
        Line::Load(load) => load.server_peak_rss_bytes,
        _ => None,
    });
    let mut facts = facts(header);
    facts.push(("begun".to_owned(), header.started.clone()));
    if let Some(peak) = peak.max() {
        facts.push((
            "server's peak memory".to_owned(),
            format!("{} MB, all engines together", megabytes(peak)),
        ));
    }
    for line in &source.lines {
        if let Line::Finish(finish) = line {
            facts.push(("took".to_owned(), format!("{:.0} s", finish.seconds)));
        }
    }
    Some(SourceAbout {
        name: source.name.clone(),
        command: header.command.clone(),
        facts,
        variables: header.variables.clone(),
    })
}

fn runs(sources: &[Source]) -> Vec<RunRow> {
    let mut rows = Vec::new();
    for source in sources {
        for line in &source.lines {
            if let Line::Run(run) = line {
                rows.push(RunRow {
                    label: label(sources, source, run.engine),
                    query: format!("{} {}", run.workload, run.query),
                    protocol: run.protocol.name(),
                    rate: format!("{:.1}", run.rate),
                    conflicts: conflicts(run),
                    valid: run.is_valid(),
                    run: run.as_ref().clone(),
                });
            }
        }
    }
    rows.sort_by(|a, b| {
        let key = |row: &RunRow| (row.run.protocol, row.run.threads);
        (&a.query, key(a)).cmp(&(&b.query, key(b)))
    });
    rows
}

fn conflicts(run: &Run) -> String {
    let found = run.conflicts.iter();
    let shown: Vec<String> = found
        .map(|(code, count)| format!("{count} × {code}"))
        .collect();
    shown.join(", ")
}

fn kinds(sources: &[Source], source: &Source) -> Vec<KindRow> {
    let comparison = Comparison::new(&source.lines);
    let mut rows = Vec::new();
    for group in comparison.groups() {
        for engine in Engine::ALL {
            let runs = comparison.runs(&group, engine).iter();
            let best = runs
                .filter(|run| run.is_valid())
                .max_by(|a, b| a.rate.total_cmp(&b.rate));
            let Some(best) = best else { continue };
            for (name, kind) in &best.kinds {
                let rate = arithmetic::ratio(kind.count as f64, best.seconds);
                rows.push(KindRow {
                    workload: group.workload.clone(),
                    label: label(sources, source, engine),
                    threads: group.threads,
                    name: name.clone(),
                    rate: rate.map_or_else(String::new, |rate| format!("{rate:.1}")),
                    kind: kind.clone(),
                });
            }
        }
    }
    rows
}
