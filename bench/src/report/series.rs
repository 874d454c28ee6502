//! The series of the report.
//!
//! A series is one engine's figures. If the directories measured different cells, they are parts of one whole and share
//! a series. If they measured the same cells, each directory has a series of its own.

use std::collections::HashSet;

use super::Source;
use crate::results::comparison::Group;
use crate::results::record::{Line, Load, Run};
use crate::results::{file, loads, Comparison};
use crate::runner::summary::baseline;
use peregrine_harness::engines::Engine;

/// An engine's figures.
#[derive(Debug)]
pub struct Series<'s> {
    /// The series' name in the page's address.
    pub id: String,
    /// The series' name in the report.
    pub label: String,
    /// The engine.
    pub engine: Engine,
    /// The directory's number, if directories are shown apart: the page draws their lines in different styles.
    pub part: usize,
    sources: Vec<&'s Source>,
    comparisons: Vec<Comparison>,
}

impl<'s> Series<'s> {
    /// The directories with runs of this series.
    pub fn sources(&self) -> impl Iterator<Item = &'s Source> + '_ {
        self.sources.iter().copied()
    }

    /// The cells that were measured.
    pub fn groups(&self) -> Vec<Group> {
        let all = self.comparisons.iter();
        let mut groups: Vec<Group> = all.flat_map(Comparison::groups).collect();
        groups.retain(|group| !self.runs(group).is_empty());
        groups
    }

    /// The runs of a cell.
    pub fn runs(&self, group: &Group) -> &[Run] {
        let mut all = self.comparisons.iter();
        let there = all.find(|c| !c.runs(group, self.engine).is_empty());
        there.map_or(&[], |comparison| comparison.runs(group, self.engine))
    }

    /// The rates of a cell's runs, if they are valid.
    pub fn rates(&self, group: &Group) -> Option<Vec<f64>> {
        self.comparisons
            .iter()
            .find_map(|comparison| comparison.rates(group, self.engine))
    }

    /// The loading of a workload's tables.
    pub fn load(&self, workload: &str) -> Option<Load> {
        let mut sources = self.sources.iter();
        sources.find_map(|source| loads::of(&source.lines, workload, self.engine))
    }
}

/// Returns all series, and the index of the one that others are compared with at first.
pub fn all(sources: &[Source]) -> (Vec<Series<'_>>, Option<usize>) {
    let measured: Vec<&Source> = sources
        .iter()
        .filter(|source| file::header(&source.lines).is_some())
        .collect();
    let parts: Vec<Vec<&Source>> = if are_parts(&measured) {
        vec![measured]
    } else {
        measured.into_iter().map(|source| vec![source]).collect()
    };
    let mut series = Vec::new();
    let mut first = None;
    for (part, of_part) in parts.iter().enumerate() {
        let engines = engines(of_part);
        let chosen = baseline(&engines);
        for engine in engines {
            if part == 0 && engine == chosen {
                first = Some(series.len());
            }
            let name = of_part.first().map_or("", |source| source.name.as_str());
            let label = if parts.len() > 1 {
                format!("{} · {name}", engine.title())
            } else {
                engine.title().to_owned()
            };
            series.push(Series {
                id: format!("{part}-{}", engine.name()),
                label,
                engine,
                part,
                sources: of_part.clone(),
                comparisons: of_part
                    .iter()
                    .map(|source| Comparison::new(&source.lines))
                    .collect(),
            });
        }
    }
    (series, first)
}

/// The engines of some directories, each once, in the order of their first mention.
fn engines(sources: &[&Source]) -> Vec<Engine> {
    let mut engines: Vec<Engine> = Vec::new();
    for header in sources.iter().filter_map(|s| file::header(&s.lines)) {
        for engine in &header.settings.engines {
            if !engines.contains(engine) {
                engines.push(*engine);
            }
        }
    }
    engines
}

/// Returns whether no two sources have measured or loaded the same.
fn are_parts(sources: &[&Source]) -> bool {
    let mut known: HashSet<(Option<Group>, String, Engine)> = HashSet::new();
    sources.iter().all(|source| {
        let of_source: HashSet<_> = source
            .lines
            .iter()
            .filter_map(|line| match line {
                Line::Run(run) => Some((Some(Group::of(run)), run.workload.clone(), run.engine)),
                Line::Load(load) => Some((None, load.workload.clone(), load.engine)),
                _ => None,
            })
            .collect();
        let new = known.is_disjoint(&of_source);
        known.extend(of_source);
        new
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn source(name: &str, lines: Vec<Line>) -> Source {
        Source {
            name: name.to_owned(),
            lines,
            behaviour: None,
        }
    }

    fn group(run: &Run) -> Group {
        Group::of(run)
    }

    #[test]
    fn directories_that_measured_the_same_stand_apart() {
        let sources = [
            source("one", sample::lines()),
            source("two", sample::lines()),
        ];
        let (series, first) = all(&sources);
        let labels: Vec<&str> = series.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "InnoDB · one",
                "Peregrine · one",
                "InnoDB · two",
                "Peregrine · two"
            ]
        );
        assert_eq!(first, Some(0));
        assert_eq!(series[3].part, 1);
    }

    #[test]
    fn parts_of_one_whole_are_put_together() {
        let header = || Line::Header(Box::new(sample::header()));
        let runs = [
            sample::run(Engine::InnoDb, "READ_FTS", 1, 1, 10.0),
            sample::run(Engine::InnoDb, "READ_FTS", 4, 1, 30.0),
        ];
        let part = |run: &Run| vec![header(), Line::Run(Box::new(run.clone()))];
        let sources = [
            source("one", part(&runs[0])),
            source("two", part(&runs[1])),
            source("meetings", Vec::new()),
        ];
        let (series, first) = all(&sources);
        assert_eq!(series.len(), 2);
        assert_eq!((series[0].label.as_str(), first), ("InnoDB", Some(0)));
        for run in &runs {
            assert_eq!(series[0].rates(&group(run)), Some(vec![run.rate]));
            assert_eq!(series[0].runs(&group(run)).len(), 1);
            assert!(series[1].runs(&group(run)).is_empty());
        }
        assert_eq!(all(&[]).0.len(), 0);
    }
}
