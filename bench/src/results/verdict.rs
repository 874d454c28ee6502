//! Results judged by [`Thresholds`]: the cells that are below, and whether everything required holds.

use std::collections::BTreeMap;
use std::fmt;

use super::comparison::{Comparison, Group};
use super::file;
use super::record::{Line, Run};
use super::thresholds::Thresholds;
use peregrine_harness::arithmetic;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result};

/// The outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    thresholds: Thresholds,
    /// Cells that are not as fast as required.
    pub below: Vec<Compared>,
    /// Cells or comparisons without a figure, and why.
    pub missing: Vec<String>,
    /// Comparisons made.
    pub compared: usize,
    /// The number of the baseline's cells in the mean, and the mean.
    mean: (usize, Option<f64>),
    /// The comparison with the lowest ratio to its threshold.
    minimum: Option<Compared>,
    /// For each engine, background transactions in a second of its measured cells.
    beside: BTreeMap<Engine, f64>,
}

/// A cell and the figures that it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The cell.
    pub group: Group,
    /// The engine that is judged.
    pub engine: Engine,
    /// The engine or number of threads that it is compared with.
    pub with: With,
    /// The required ratio.
    pub threshold: f64,
    /// The ratio of the best runs.
    pub ratio: f64,
    /// The figures of all runs, in ascending order.
    pub runs: Vec<f64>,
    /// The figures of the other side, in ascending order.
    pub others: Vec<f64>,
}

/// The other side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// Another engine's cell.
    Engine(Engine),
    /// The engine's own cell at fewer threads.
    Threads(u32),
}

impl Compared {
    /// The ratio relative to the threshold: 1 is just enough.
    #[must_use]
    pub fn of_threshold(&self) -> f64 {
        self.ratio / self.threshold
    }

    /// Returns whether the distance of the figures from the threshold is no more than runs of the same cell differ:
    /// then chance may have decided.
    #[must_use]
    pub fn is_tie(&self) -> bool {
        let others: Vec<f64> = self
            .others
            .iter()
            .map(|other| other * self.threshold)
            .collect();
        arithmetic::tie(&self.runs, &others) == Some(true)
    }
}

impl Verdict {
    /// Judges results by thresholds.
    ///
    /// The results' header defines the required cells: every cell of its workloads, at every number of threads, with
    /// every protocol, and with all its runs.
    ///
    /// # Errors
    /// When the results have no header.
    pub fn of(lines: &[Line], thresholds: &Thresholds) -> Result<Self> {
        let header = file::header(lines)
            .ok_or_else(|| HarnessError::Usage("the results have no header".to_owned()))?;
        let settings = &header.settings;
        let mut judging = Judging {
            thresholds,
            comparison: Comparison::new(lines),
            runs: settings.runs,
            found: Self {
                thresholds: thresholds.clone(),
                below: Vec::new(),
                missing: Vec::new(),
                compared: 0,
                mean: (0, None),
                minimum: None,
                beside: beside(lines),
            },
            ratios: Vec::new(),
        };
        for query in thresholds.minimum.keys() {
            let mut cells = settings.workloads.iter().flat_map(|planned| &planned.cells);
            if !cells.any(|cell| cell == query) {
                judging
                    .found
                    .missing
                    .push(format!("{query}: not among what was measured"));
            }
        }
        for planned in &settings.workloads {
            let mut threads = settings.ladder(planned).to_vec();
            threads.sort_unstable();
            for cell in &planned.cells {
                for protocol in &settings.protocols {
                    let ladder: Vec<Group> = threads
                        .iter()
                        .map(|threads| Group {
                            workload: planned.name.clone(),
                            protocol: *protocol,
                            query: cell.clone(),
                            threads: *threads,
                        })
                        .collect();
                    judging.ladder(&ladder, header.machine.cores);
                }
            }
        }
        let mean = arithmetic::geometric_mean(&judging.ratios);
        judging.found.mean = (judging.ratios.len(), mean);
        Ok(judging.found)
    }

    /// Returns whether everything holds: no cell is below or missing, and at least one was compared.
    #[must_use]
    pub fn held(&self) -> bool {
        let mean = self.thresholds.geometric_mean.is_none_or(|minimum| {
            let (_, mean) = self.mean;
            mean.is_some_and(|mean| mean >= minimum)
        });
        let something = self.compared > 0 || self.thresholds.geometric_mean.is_some();
        self.below.is_empty() && self.missing.is_empty() && mean && something
    }
}

struct Judging<'a> {
    thresholds: &'a Thresholds,
    comparison: Comparison,
    /// The number of runs that every cell must have.
    runs: u32,
    found: Verdict,
    /// The ratios to the baseline.
    ratios: Vec<f64>,
}

impl Judging<'_> {
    /// Judges a query at each number of threads, in ascending order.
    fn ladder(&mut self, groups: &[Group], cores: u32) {
        let own = self.thresholds.engine;
        let mut fewer: Option<(u32, Vec<f64>)> = None;
        for group in groups {
            let Some(runs) = self.figures(group, own) else {
                continue;
            };
            self.with_baseline(group, &runs);
            self.with_best(group, &runs);
            if !self.thresholds.rising || group.threads > cores {
                continue;
            }
            if let Some((threads, others)) = fewer.take() {
                self.compare(group, With::Threads(threads), 1.0, &runs, &others);
            }
            fewer = Some((group.threads, runs));
        }
    }

    fn with_baseline(&mut self, group: &Group, runs: &[f64]) {
        let threshold = self.thresholds.minimum.get(&group.query).copied();
        if threshold.is_none() && self.thresholds.geometric_mean.is_none() {
            return;
        }
        let Some(others) = self.figures(group, self.thresholds.baseline) else {
            return;
        };
        self.ratios.extend(ratio(runs, &others));
        if let Some(threshold) = threshold {
            self.compare(
                group,
                With::Engine(self.thresholds.baseline),
                threshold,
                runs,
                &others,
            );
        }
    }

    fn with_best(&mut self, group: &Group, runs: &[f64]) {
        let mut best: Option<(Engine, Vec<f64>)> = None;
        for engine in &self.thresholds.best_of {
            let Some(figures) = self.figures(group, *engine) else {
                continue;
            };
            let faster = best
                .as_ref()
                .is_none_or(|(_, so_far)| figures.last() > so_far.last());
            if faster {
                best = Some((*engine, figures));
            }
        }
        if let Some((engine, others)) = best {
            self.compare(group, With::Engine(engine), 1.0, runs, &others);
        }
    }

    fn compare(&mut self, group: &Group, with: With, threshold: f64, runs: &[f64], others: &[f64]) {
        let Some(ratio) = ratio(runs, others) else {
            let place = place(group);
            let missing = &mut self.found.missing;
            return missing.push(format!("{place}: nothing to compare it with"));
        };
        let compared = Compared {
            group: group.clone(),
            engine: self.thresholds.engine,
            with,
            threshold,
            ratio,
            runs: runs.to_vec(),
            others: others.to_vec(),
        };
        self.found.compared += 1;
        let minimum = self.found.minimum.as_ref();
        if minimum.is_none_or(|minimum| compared.of_threshold() < minimum.of_threshold()) {
            self.found.minimum = Some(compared.clone());
        }
        if compared.ratio < threshold {
            self.found.below.push(compared);
        }
    }

    /// Returns the figures of a cell's runs, in ascending order; records an invalid cell as missing and returns `None`.
    fn figures(&mut self, group: &Group, engine: Engine) -> Option<Vec<f64>> {
        let runs = self.comparison.runs(group, engine);
        let wrong = runs.iter().find(|run| !run.is_valid());
        let why = match wrong {
            Some(run) => Some(format!("void, {}", faults(run))),
            None if runs.is_empty() => Some("not measured".to_owned()),
            None if runs.len() < self.runs as usize => {
                Some(format!("{} of {} runs", runs.len(), self.runs))
            }
            None => None,
        };
        if let Some(why) = why {
            let told = format!("{} on {}: {why}", place(group), engine.title());
            if !self.found.missing.contains(&told) {
                self.found.missing.push(told);
            }
            return None;
        }
        let mut figures: Vec<f64> = runs.iter().map(|run| run.rate).collect();
        figures.sort_by(f64::total_cmp);
        Some(figures)
    }
}

/// Returns the background transactions in a second, of each engine that had any.
fn beside(lines: &[Line]) -> BTreeMap<Engine, f64> {
    let mut all: BTreeMap<Engine, (u64, f64)> = BTreeMap::new();
    for line in lines {
        if let Line::Run(run) = line {
            let (done, seconds) = all.entry(run.engine).or_default();
            *done += run.beside.values().sum::<u64>();
            *seconds += run.seconds;
        }
    }
    all.retain(|_, (done, seconds)| *done > 0 && *seconds > 0.0);
    let rate = |(done, seconds): (u64, f64)| done as f64 / seconds;
    all.into_iter()
        .map(|(engine, of)| (engine, rate(of)))
        .collect()
}

fn ratio(runs: &[f64], others: &[f64]) -> Option<f64> {
    arithmetic::ratio(*runs.last()?, *others.last()?)
}

fn faults(run: &Run) -> String {
    format!(
        "{} wrong, {} failed{}",
        run.wrong,
        run.errors,
        run.problem
            .as_ref()
            .map_or(String::new(), |problem| format!(": {problem}"))
    )
}

fn place(group: &Group) -> String {
    format!(
        "{}, {} threads, {}",
        group.query,
        group.threads,
        group.protocol.name()
    )
}

/// The figures in a line, each with at least three digits.
fn listed(figures: &[f64]) -> String {
    let texts: Vec<String> = figures
        .iter()
        .map(|figure| match figure {
            figure if *figure < 100.0 => format!("{figure:.2}"),
            figure => format!("{figure:.0}"),
        })
        .collect();
    texts.join(" ")
}

impl fmt::Display for Compared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = match self.with {
            With::Engine(engine) => engine.title().to_owned(),
            With::Threads(threads) => format!("{threads} threads"),
        };
        write!(
            out,
            "{}: {:.3} times {with}, {} required; {} {}, {with} {}{}",
            place(&self.group),
            self.ratio,
            self.threshold,
            self.engine.title(),
            listed(&self.runs),
            listed(&self.others),
            if self.is_tie() {
                "; a tie, the runs are as far apart"
            } else {
                ""
            }
        )
    }
}

/// Prints a line for each cell that is below or missing, and a summary line.
impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for below in &self.below {
            writeln!(out, "below: {below}")?;
        }
        for missing in &self.missing {
            writeln!(out, "missing: {missing}")?;
        }
        let word = if self.held() { "held" } else { "NOT HELD" };
        let ties = self.below.iter().filter(|below| below.is_tie()).count();
        let thresholds = &self.thresholds;
        write!(out, "{word}: {}", thresholds.engine.title())?;
        if !thresholds.minimum.is_empty() || thresholds.geometric_mean.is_some() {
            let (cells, mean) = self.mean;
            let baseline = thresholds.baseline.title();
            match mean {
                Some(mean) => write!(
                    out,
                    ", {cells} cells beside {baseline}: geometric mean {mean:.2}"
                )?,
                None => write!(out, ", no cell beside {baseline}")?,
            }
            if let Some(wanted) = thresholds.geometric_mean {
                write!(out, " ({wanted} required)")?;
            }
        }
        if !thresholds.best_of.is_empty() {
            let names: Vec<&str> = thresholds
                .best_of
                .iter()
                .map(|engine| engine.title())
                .collect();
            write!(out, ", beside the best of {}", names.join(", "))?;
        }
        if thresholds.rising {
            write!(out, ", rising with the threads up to the processors")?;
        }
        write!(
            out,
            ": {} thresholds, {} below ({ties} of them ties), {} missing or void",
            self.compared,
            self.below.len(),
            self.missing.len()
        )?;
        if let Some(minimum) = &self.minimum {
            write!(
                out,
                "; lowest {:.2} of its threshold: {:.2} at {}",
                minimum.of_threshold(),
                minimum.ratio,
                place(&minimum.group)
            )?;
        }
        if !self.beside.is_empty() {
            let rates: Vec<String> = self
                .beside
                .iter()
                .map(|(engine, rate)| format!("{} {rate:.1}", engine.title()))
                .collect();
            write!(out, "; transactions a second beside: {}", rates.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
