//! What was found, as it is written to `behaviour.json` and read by the report.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::anomalies::{Anomaly, ALL};
use super::conflict::Conflict;
use super::deadlock::Deadlock;
use super::level::Level;
use super::script::Transcript;
use crate::engines::Engine;
use crate::error::{PathContext, Result, SuiteError};
use crate::results::record::Machine;

/// The file's name in the output directory.
pub const FILE_NAME: &str = "behaviour.json";

/// The version of this format.
pub const FORMAT: u32 = 1;

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The format of the file, [`FORMAT`].
    pub format: u32,
    /// The version of this suite.
    pub suite_version: String,
    /// The server's `@@version`.
    pub server_version: String,
    /// When it began, in universal time.
    pub started: String,
    /// The machine.
    pub machine: Machine,
    /// The command that finds the same again.
    pub command: String,
    /// One column an engine, or an engine under another setting.
    pub columns: Vec<Column>,
}

/// What an engine does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// What it is called.
    pub title: String,
    /// The engine.
    pub engine: Engine,
    /// The anomaly scripts at every level.
    pub cells: Vec<Cell>,
    /// The deadlocks of two sessions, at REPEATABLE READ.
    pub deadlocks: Vec<Deadlock>,
    /// Two sessions at one row.
    pub conflicts: Vec<Conflict>,
}

/// Whether an anomaly happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It did not.
    Prevented,
    /// It did.
    Happened,
    /// No session's transaction was committed, so nothing was shown.
    NothingCommitted,
}

/// An anomaly script at a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The anomaly's short name.
    pub anomaly: String,
    /// The level.
    pub level: Level,
    /// Whether it happened.
    pub verdict: Verdict,
    /// Whether Peregrine promises at this level that it does not.
    pub promised: bool,
    /// Whether a statement waited.
    pub waited: bool,
    /// The errors that statements got.
    pub errors: Vec<u16>,
    /// What was done and answered, a line a step.
    pub steps: Vec<String>,
}

impl Cell {
    /// What was found, from the steps played.
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

    /// How it was prevented, or that it was not, in words.
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
    /// The cell of a script at a level.
    #[must_use]
    pub fn cell(&self, anomaly: &str, level: Level) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.anomaly == anomaly && cell.level == level)
    }

    /// The cells in which what Peregrine promises does not hold.
    pub fn broken(&self) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(|cell| cell.promised && cell.verdict != Verdict::Prevented)
    }
}

impl Findings {
    /// Peregrine's columns.
    pub fn ours(&self) -> impl Iterator<Item = &Column> {
        self.columns
            .iter()
            .filter(|column| column.engine == Engine::Peregrine)
    }

    /// Whether Peregrine keeps what its levels promise, if it took part.
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
    /// When it can't be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(FILE_NAME);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| SuiteError::Report(error.to_string()))?;
        std::fs::write(&path, text + "\n").at("cannot write", &path)
    }

    /// Reads the file in `dir`, if there is one.
    ///
    /// # Errors
    /// When it is there and can't be read or understood.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(FILE_NAME);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.at("cannot read", &path)?,
        };
        let problem = |line: usize, problem: String| SuiteError::Results {
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

/// The title of the script of this short name.
#[must_use]
pub fn title(name: &str) -> &'static str {
    ALL.iter()
        .find(|anomaly| anomaly.name == name)
        .map_or("", |anomaly| anomaly.title)
}

#[cfg(test)]
pub(crate) mod sample {
    use super::*;

    /// Findings of two columns: one that prevents everything, one that prevents nothing.
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
