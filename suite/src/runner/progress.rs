//! Telling the user how far it is: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How far a run of the matrix is.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    begun: Instant,
    groups: usize,
    groups_done: usize,
    planned: f64,
    planned_done: f64,
}

impl Progress {
    /// Progress of a preparation, before it is known how much there is to do.
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
        }
    }

    /// A step of the preparation begins.
    pub fn preparing(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => eprintln!("{what}"),
        }
    }

    /// A matrix begins, the first or another: so many groups, planned to take so many seconds.
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

    /// A run begins.
    pub fn run(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} left · {what}", minutes(self.left())));
        }
    }

    /// Work planned to take so many seconds is done.
    pub fn advance(&mut self, planned: f64) {
        self.planned_done += planned;
        if let Some(bar) = &self.bar {
            let part = self.planned_done / self.planned.max(f64::MIN_POSITIVE);

            bar.set_position((part.clamp(0.0, 1.0) * 1_000.0) as u64);
        }
    }

    /// A group is done; `line` says what was found.
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

    /// Something worth a line of its own.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Seconds left, judged by how long the work so far took compared with the plan.
    fn left(&self) -> f64 {
        let stretch = if self.planned_done > 0.0 {
            (self.begun.elapsed().as_secs_f64() / self.planned_done).max(1.0)
        } else {
            1.0
        };
        (self.planned - self.planned_done).max(0.0) * stretch
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
    fn times_are_told_in_fitting_units() {
        assert_eq!(minutes(0.2), "1 s");
        assert_eq!(minutes(59.0), "59 s");
        assert_eq!(minutes(61.0), "1 min 01 s");
        assert_eq!(minutes(7_260.0), "2 h 01 min");
    }
}
