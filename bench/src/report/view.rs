//! The page's static contents: headline, sections, settings.

use std::collections::BTreeMap;

use serde::Serialize;

use super::data::Query;
use super::series::Series;
use super::settings::{SourceAbout, Unlike};
use super::workload::Section;
use super::{settings, workload, Source};
use crate::results::figure::short;
use crate::results::record::{Header, Line};
use crate::results::{file, loads, Comparison};
use crate::runner::summary::baseline;
use peregrine_harness::arithmetic;
use peregrine_harness::engines::Engine;

/// The page's fixed contents.
#[derive(Debug, Serialize)]
pub struct View {
    title: &'static str,
    subtitle: String,
    cards: Vec<Card>,
    /// The names of the series, which are the columns of `unlike`.
    series: Vec<String>,
    /// Settings that are not the same for all series.
    unlike: Vec<Unlike>,
    /// Settings in which directories differ: their figures can't be compared directly.
    warnings: Vec<String>,
    workloads: Vec<Section>,
    sources: Vec<SourceAbout>,
    has_figures: bool,
    /// Whether some cell has a single run: then ties can't be told.
    single_runs: bool,
}

#[derive(Debug, Serialize)]
struct Card {
    figure: String,
    text: String,
    good: bool,
}

impl View {
    /// Collects the contents from the results.
    pub fn new(
        sources: &[Source],
        queries: &[Query],
        series: &[Series<'_>],
        baseline: Option<usize>,
    ) -> Self {
        let headers: Vec<&Header> = sources
            .iter()
            .filter_map(|s| file::header(&s.lines))
            .collect();
        let subtitle = headers.first().map_or_else(String::new, |header| {
            let server = match header.server_version.as_str() {
                "" => "embedded stores".to_owned(),
                version => format!("MariaDB {version}"),
            };
            format!(
                "{server} · {} · {} processors · {}",
                header.machine.cpu,
                header.machine.cores,
                header.started.split('T').next().unwrap_or_default()
            )
        });
        let groups = super::data::groups(series);
        let workloads = workload::sections(sources, queries, series);
        Self {
            title: if headers.is_empty() {
                "Engines side by side: when sessions meet"
            } else {
                "Engines side by side"
            },
            subtitle,
            cards: cards(&headline(sources, series)),
            series: series.iter().map(|series| series.label.clone()).collect(),
            unlike: settings::unlike(series, baseline),
            warnings: warnings(sources),
            has_figures: !groups.is_empty() || !workloads.is_empty(),
            workloads,
            sources: settings::sources(sources),
            single_runs: groups.iter().any(|group| {
                let mut runs = series.iter().map(|series| series.runs(group).len());
                runs.any(|runs| runs == 1)
            }),
        }
    }
}

/// Returns the lines behind the headline: those of the first directory, or of all where they are parts of one whole.
fn headline(sources: &[Source], series: &[Series<'_>]) -> Vec<Line> {
    let apart = series.iter().any(|series| series.part > 0);
    let measured = sources.iter().filter(|source| !source.lines.is_empty());
    let count = if apart { 1 } else { usize::MAX };
    let lines = measured.take(count).flat_map(|source| &source.lines);
    lines.cloned().collect()
}

fn cards(lines: &[Line]) -> Vec<Card> {
    let Some(header) = file::header(lines) else {
        return Vec::new();
    };
    let comparison = Comparison::new(lines);
    let baseline = baseline(&header.settings.engines);
    // Peregrine if it was measured, else the last engine.
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
                figure: format!("{:.2}×", summary.minimum.0),
                text: format!(
                    "lowest of all cells: {}, {} threads",
                    summary.minimum.1.query, summary.minimum.1.threads
                ),
                good: summary.minimum.0 >= 1.0,
            });
        }
        if let Some(ratio) = loading(lines, engine, baseline) {
            cards.push(Card {
                figure: format!("{:.2}×", ratio.0),
                text: format!("{names}, time to load all workloads (less is better)"),
                good: ratio.0 <= 1.0,
            });
            cards.push(Card {
                figure: format!("{:.2}×", ratio.1),
                text: format!("{names}, size on disk (less is better)"),
                good: ratio.1 <= 1.0,
            });
        }
    }
    let runs = || {
        lines.iter().filter_map(|line| match line {
            Line::Run(run) => Some(run),
            _ => None,
        })
    };
    let wrong: u64 = runs().map(|run| run.wrong).sum();
    let answered: u64 = runs().map(|run| run.queries).sum();
    cards.push(Card {
        figure: wrong.to_string(),
        text: format!("wrong answers among {} checked", short(answered as f64)),
        good: wrong == 0,
    });
    cards
}

/// The geometric means of the ratios of load times and of sizes, over the workloads that both engines have loaded.
fn loading(lines: &[Line], engine: Engine, baseline: Engine) -> Option<(f64, f64)> {
    let header = file::header(lines)?;
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for planned in &header.settings.workloads {
        let load = |engine| loads::of(lines, &planned.name, engine);
        let (Some(ours), Some(theirs)) = (load(engine), load(baseline)) else {
            continue;
        };
        times.extend(arithmetic::ratio(ours.seconds, theirs.seconds));
        sizes.extend(arithmetic::ratio(
            ours.disk_bytes as f64,
            theirs.disk_bytes as f64,
        ));
    }
    Some((
        arithmetic::geometric_mean(&times)?,
        arithmetic::geometric_mean(&sizes)?,
    ))
}

/// Returns the settings in which directories differ, with the value of each.
fn warnings(sources: &[Source]) -> Vec<String> {
    let headers: Vec<(&Source, &Header)> = sources
        .iter()
        .filter_map(|source| Some((source, file::header(&source.lines)?)))
        .collect();
    let Some(((first, first_header), others)) = headers.split_first() else {
        return Vec::new();
    };
    let expected: BTreeMap<String, String> = settings::facts(first_header).into_iter().collect();
    let mut found = Vec::new();
    for (source, header) in others {
        for (name, value) in settings::facts(header) {
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
