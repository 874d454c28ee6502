//! Progress for the user: a bar on a terminal, plain lines elsewhere.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::load::live_counters::Glance;
use crate::results::figure::short;

/// The number of rates that the line of a run shows.
const RATES: usize = 16;
/// The time over which each rate is taken, in seconds.
const RATE_S: f64 = 0.2;

/// The progress of a run of the matrix.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    begun: Instant,
    groups: usize,
    groups_done: usize,
    planned: f64,
    planned_done: f64,
    run: Live,
}

/// The run in progress.
#[derive(Debug, Default)]
struct Live {
    what: String,
    before: Glance,
    rates: VecDeque<f64>,
}

impl Progress {
    /// Progress of the preparation, before the amount of work is known.
    #[must_use]
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            bar,
            begun: Instant::now(),
            groups: 0,
            groups_done: 0,
            planned: 0.0,
            planned_done: 0.0,
            run: Live::default(),
        }
    }

    /// Shows that a step of the preparation begins.
    pub fn preparing(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => eprintln!("{what}"),
        }
    }

    /// Begins a matrix of this many groups, planned to take this many seconds.
    pub fn matrix(&mut self, groups: usize, planned: f64) {
        self.groups = groups;
        self.groups_done = 0;
        self.planned = planned;
        self.planned_done = 0.0;
        self.begun = Instant::now();
        if let Some(bar) = &self.bar {
            bar.set_length(1_000);
            let style = ProgressStyle::with_template("{bar:30.green/dim} {percent:>3}% {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars("━╸─"));
        }
    }

    /// Shows that a run begins.
    pub fn run(&mut self, what: &str) {
        self.run = Live {
            what: what.to_owned(),
            ..Live::default()
        };
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} left · {what}", minutes(self.left())));
        }
    }

    /// Shows the counts of the run's clients.
    pub fn look(&mut self, now: Glance) {
        let Some(bar) = &self.bar else { return };
        if let Some(told) = self.run.told(now) {
            let left = minutes(self.left());
            bar.set_message(format!("{left} left · {} · {told}", self.run.what));
        }
    }

    /// Records that work planned to take this many seconds is done.
    pub fn advance(&mut self, planned: f64) {
        self.planned_done += planned;
        if let Some(bar) = &self.bar {
            let part = self.planned_done / self.planned.max(f64::MIN_POSITIVE);

            bar.set_position((part.clamp(0.0, 1.0) * 1_000.0) as u64);
        }
    }

    /// Shows that a group is done; `line` describes its result.
    pub fn group_done(&mut self, line: &str) {
        self.groups_done += 1;
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!(
                "[{}/{}, {} left] {line}",
                self.groups_done,
                self.groups,
                minutes(self.left())
            ),
        }
    }

    /// Prints a line.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Removes the bar.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Estimates the seconds left, from the ratio of the time so far to the plan.
    fn left(&self) -> f64 {
        let stretch = if self.planned_done > 0.0 {
            (self.begun.elapsed().as_secs_f64() / self.planned_done).max(1.0)
        } else {
            1.0
        };
        (self.planned - self.planned_done).max(0.0) * stretch
    }
}

impl Live {
    /// Returns the recent rates as a sparkline, with the last rate and the mean latency; `None` when it is too soon for
    /// another.
    fn told(&mut self, now: Glance) -> Option<String> {
        let time = now.elapsed.saturating_sub(self.before.elapsed);
        if time.as_secs_f64() < RATE_S {
            return None;
        }
        let rate = now.rate_since(&self.before)?;
        let latency = now.latency_since(&self.before);
        self.before = now;
        if self.rates.len() == RATES {
            self.rates.pop_front();
        }
        self.rates.push_back(rate);
        let latency = latency.map_or_else(|| "–".to_owned(), latency_text);
        let line = sparkline(&self.rates);
        Some(format!("{line} {}/s, {latency}", short(rate)))
    }
}

/// Draws columns whose heights are relative to the highest value.
fn sparkline(values: &VecDeque<f64>) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |value: &f64| {
        let step = (value / most * 7.0).round().clamp(0.0, 7.0) as usize;
        BARS.get(step).copied().unwrap_or(' ')
    };
    values.iter().map(bar).collect()
}

fn latency_text(micros: f64) -> String {
    match micros {
        us if us < 1e3 => format!("{us:.0} µs"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

fn minutes(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_by_its_latest_rates() {
        let mut live = Live::default();
        let mut told = Vec::new();
        for (tenth, done) in [(1, 5), (2, 10), (3, 12), (4, 30), (6, 30)] {
            told.push(live.told(Glance {
                elapsed: Duration::from_millis(tenth * 100),
                done,
                micros: done * 400,
            }));
        }
        let text = |text: &str| Some(text.to_owned());
        // 10 in 0.2 s, then 20, then none: half, full and lowest bar.
        let expected = [
            None,
            text("█ 50/s, 400 µs"),
            None,
            text("▅█ 100/s, 400 µs"),
            text("▅█▁ 0.0/s, –"),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn latencies_are_told_in_fitting_units() {
        assert_eq!(latency_text(1.2), "1 µs");
        assert_eq!(latency_text(1_540.0), "1.5 ms");
        assert_eq!(latency_text(2_600_000.0), "2.6 s");
    }

    #[test]
    fn times_are_told_in_fitting_units() {
        assert_eq!(minutes(0.2), "1 s");
        assert_eq!(minutes(59.0), "59 s");
        assert_eq!(minutes(61.0), "1 min 01 s");
        assert_eq!(minutes(7_260.0), "2 h 01 min");
    }
}
