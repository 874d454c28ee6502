//! The behaviour of engines when sessions conflict, as the page shows it.

use serde::Serialize;

use super::Source;
use crate::behaviour::anomalies::ALL;
use crate::behaviour::findings::{Cell, Column, Findings, Verdict};
use crate::behaviour::{conflict, matrix};
use peregrine_harness::level::Level;

/// The findings of one run.
#[derive(Debug, Serialize)]
pub struct Section {
    name: String,
    about: String,
    command: String,
    columns: Vec<String>,
    levels: [&'static str; 4],
    anomalies: Vec<Row>,
    deadlocks: Vec<String>,
    conflicts: Vec<ConflictRow>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    title: &'static str,
    statements: Vec<String>,
    cells: Vec<Mark>,
}

#[derive(Debug, Serialize)]
struct Mark {
    /// A class of the page's style sheet.
    class: &'static str,
    mark: &'static str,
    /// How the engine prevented the anomaly, and every step.
    text: String,
}

#[derive(Debug, Serialize)]
struct ConflictRow {
    meeting: &'static str,
    level: &'static str,
    cells: Vec<String>,
}

/// Returns the sections of all sources that have findings about behaviour.
pub fn sections(sources: &[Source]) -> Vec<Section> {
    sources
        .iter()
        .filter_map(|source| Some(section(&source.name, source.behaviour.as_ref()?)))
        .collect()
}

fn section(name: &str, findings: &Findings) -> Section {
    Section {
        name: name.to_owned(),
        about: format!(
            "MariaDB {} · {} · {}",
            findings.server_version,
            findings.machine.cpu,
            findings.started.split('T').next().unwrap_or_default()
        ),
        command: findings.command.clone(),
        columns: findings.columns.iter().map(|c| c.title.clone()).collect(),
        levels: ["RU", "RC", "RR", "S"],
        anomalies: ALL
            .iter()
            .map(|anomaly| Row {
                name: anomaly.name,
                title: anomaly.title,
                statements: anomaly
                    .steps
                    .iter()
                    .map(|step| format!("T{} {}", step.session, step.statement))
                    .collect(),
                cells: findings
                    .columns
                    .iter()
                    .flat_map(|column| {
                        Level::ALL.map(|level| mark(column.cell(anomaly.name, level)))
                    })
                    .collect(),
            })
            .collect(),
        deadlocks: findings.columns.iter().map(matrix::deadlock_text).collect(),
        conflicts: conflict::ALL
            .iter()
            .flat_map(|meeting| Level::ALL.map(|level| (meeting, level)))
            .map(|(meeting, level)| ConflictRow {
                meeting: meeting.title,
                level: level.sql(),
                cells: findings
                    .columns
                    .iter()
                    .map(|column| conflict_text(column, meeting, level))
                    .collect(),
            })
            .collect(),
    }
}

fn conflict_text(column: &Column, meeting: &conflict::Meeting, level: Level) -> String {
    column
        .conflicts
        .iter()
        .find(|found| found.meeting == meeting.title && found.level == level)
        .map_or_else(String::new, conflict::Conflict::text)
}

fn mark(cell: Option<&Cell>) -> Mark {
    let (class, mark) = match cell.map(|cell| cell.verdict) {
        Some(Verdict::Prevented) => ("prevented", "✓"),
        Some(Verdict::Happened) => ("happened", "✗"),
        Some(Verdict::NothingCommitted) => ("unknown", "?"),
        None => ("unknown", ""),
    };
    Mark {
        class,
        mark,
        text: cell.map_or_else(String::new, |cell| {
            format!(
                "{}: {}\n{}",
                cell.level.sql(),
                cell.text(),
                cell.steps.join("\n")
            )
        }),
    }
}
