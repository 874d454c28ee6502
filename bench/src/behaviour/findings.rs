//! The findings, as `behaviour.json` stores them and the report reads them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::anomalies::{Anomaly, ALL};
use super::conflict::Conflict;
use super::deadlock::Deadlock;
use super::script::Transcript;
use crate::results::record::Machine;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::level::Level;

/// The file's name in the output directory.
pub const FILE_NAME: &str = "behaviour.json";

/// The version of this format.
pub const FORMAT: u32 = 1;

/// All findings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The format of the file, [`FORMAT`].
    pub format: u32,
    /// The version of this program.
    pub suite_version: String,
    /// The server's `@@version`.
    pub server_version: String,
    /// When the run began, in UTC.
    pub started: String,
    /// The machine.
    pub machine: Machine,
    /// The command that repeats the run.
    pub command: String,
    /// One column for each engine, or for an engine with another setting.
    pub columns: Vec<Column>,
}

/// The findings for one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its title.
    pub title: String,
    /// The engine.
    pub engine: Engine,
    /// The results of the anomaly scripts at every level.
    pub cells: Vec<Cell>,
    /// The deadlocks of two sessions, at REPEATABLE READ.
    pub deadlocks: Vec<Deadlock>,
    /// The results of two sessions that update one row.
    pub conflicts: Vec<Conflict>,
}

/// Whether an anomaly happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The anomaly did not happen.
    Prevented,
    /// The anomaly happened.
    Happened,
    /// No session committed its transaction, so the script shows nothing.
    NothingCommitted,
}

/// The result of an anomaly script at a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The anomaly's short name.
    pub anomaly: String,
    /// The level.
    pub level: Level,
    /// Whether the anomaly happened.
    pub verdict: Verdict,
    /// Whether Peregrine promises to prevent the anomaly at this level.
    pub promised: bool,
    /// Whether a statement waited.
    pub waited: bool,
    /// The errors that statements got.
    pub errors: Vec<u16>,
    /// The steps and their answers, one line each.
    pub steps: Vec<String>,
}

impl Cell {
    /// Extracts the result from the played steps.
    #[must_use]
    pub fn of(anomaly: &Anomaly, level: Level, transcript: &Transcript) -> Self {
        let verdict = if (anomaly.happened)(transcript) {
            Verdict::Happened
        } else if (1..=anomaly.sessions).any(|session| transcript.committed(session)) {
            Verdict::Prevented
        } else {
            Verdict::NothingCommitted
        };
        Self {
            anomaly: anomaly.name.to_owned(),
            level,
            verdict,
            promised: level >= anomaly.prevented_from,
            waited: transcript.waited(),
            errors: transcript.errors(),
            steps: transcript.lines(),
        }
    }

    /// Returns in words whether and how the anomaly was prevented.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = match self.verdict {
            Verdict::Prevented => "prevented".to_owned(),
            Verdict::Happened => "happens".to_owned(),
            Verdict::NothingCommitted => "nothing committed".to_owned(),
        };
        if self.waited {
            text.push_str(", waits");
        }
        for code in &self.errors {
            text.push_str(&format!(", error {code}"));
        }
        text
    }
}

impl Column {
    /// Returns the cell of a script at a level.
    #[must_use]
    pub fn cell(&self, anomaly: &str, level: Level) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.anomaly == anomaly && cell.level == level)
    }

    /// Returns the cells in which Peregrine breaks a promise.
    pub fn broken(&self) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(|cell| cell.promised && cell.verdict != Verdict::Prevented)
    }
}

impl Findings {
    /// Returns Peregrine's columns.
    pub fn ours(&self) -> impl Iterator<Item = &Column> {
        self.columns
            .iter()
            .filter(|column| column.engine == Engine::Peregrine)
    }

    /// Returns whether Peregrine keeps its promises; true if no column is Peregrine's.
    ///
    /// Its levels prevent the promised anomalies. Each deadlock ends with error 1213 in session 2 and a commit in the
    /// other.
    #[must_use]
    pub fn held(&self) -> bool {
        self.ours().all(|column| {
            column.broken().next().is_none()
                && column.deadlocks.iter().all(|deadlock| {
                    deadlock.victim == 2 && deadlock.error == 1213 && deadlock.other_committed
                })
        })
    }

    /// Writes the file into `dir`.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(FILE_NAME);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| HarnessError::Report(error.to_string()))?;
        std::fs::write(&path, text + "\n").at("cannot write", &path)
    }

    /// Reads the file in `dir`, if there is one.
    ///
    /// # Errors
    /// When the file exists and can't be read or understood.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(FILE_NAME);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.at("cannot read", &path)?,
        };
        let problem = |line: usize, problem: String| HarnessError::Results {
            path: path.clone(),
            line,
            problem,
        };
        let findings: Self = serde_json::from_str(&text)
            .map_err(|error| problem(error.line(), error.to_string()))?;
        if findings.format != FORMAT {
            return Err(problem(
                1,
                format!(
                    "the format is {}, and this program reads format {FORMAT}",
                    findings.format
                ),
            ));
        }
        Ok(Some(findings))
    }
}

/// Returns the title of the script with this short name.
#[must_use]
pub fn title(name: &str) -> &'static str {
    ALL.iter()
        .find(|anomaly| anomaly.name == name)
        .map_or("", |anomaly| anomaly.title)
}

#[cfg(test)]
pub(crate) mod sample {
    use super::*;

    /// Returns findings of two columns: one prevents everything, the other prevents nothing.
    pub fn findings() -> Findings {
        let column = |title: &str, engine, verdict| Column {
            title: title.to_owned(),
            engine,
            cells: ALL
                .iter()
                .flat_map(|anomaly| {
                    Level::ALL.map(|level| Cell {
                        anomaly: anomaly.name.to_owned(),
                        level,
                        verdict,
                        promised: level >= anomaly.prevented_from,
                        waited: false,
                        errors: vec![],
                        steps: vec!["T1 commit → done".to_owned()],
                    })
                })
                .collect(),
            deadlocks: vec![Deadlock {
                victim: 2,
                error: 1213,
                ms: 0.5,
                other_committed: true,
            }],
            conflicts: vec![],
        };
        Findings {
            format: FORMAT,
            suite_version: "0".to_owned(),
            server_version: "10.11".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            machine: crate::results::sample::header().machine,
            command: "peregrine bench behaviour".to_owned(),
            columns: vec![
                column("InnoDB", Engine::InnoDb, Verdict::Happened),
                column("Peregrine", Engine::Peregrine, Verdict::Prevented),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_broken_promises_count() {
        let mut findings = sample::findings();
        assert!(findings.held());
        let ours = &mut findings.columns[1];
        let weak = ours
            .cells
            .iter_mut()
            .find(|cell| cell.anomaly == "P4" && cell.level == Level::ReadCommitted)
            .expect("there");
        weak.verdict = Verdict::Happened;
        assert!(findings.held(), "READ COMMITTED does not promise it");
        let strong = findings.columns[1]
            .cells
            .iter_mut()
            .find(|cell| cell.anomaly == "P4" && cell.level == Level::RepeatableRead)
            .expect("there");
        strong.verdict = Verdict::NothingCommitted;
        assert!(!findings.held());
        assert_eq!(findings.columns[1].broken().count(), 1);
    }

    #[test]
    fn findings_come_back_as_they_were_written() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(Findings::read(dir.path()).expect("none"), None);
        let findings = sample::findings();
        findings.write(dir.path()).expect("written");
        assert_eq!(Findings::read(dir.path()).expect("read"), Some(findings));
        std::fs::write(dir.path().join(FILE_NAME), "{").expect("written");
        assert!(Findings::read(dir.path()).is_err());
    }
}
