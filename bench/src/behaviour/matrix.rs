//! Shows the findings as tables for the terminal.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell as TableCell, Table};

use super::anomalies::ALL;
use super::findings::{Column, Findings, Verdict};
use super::{conflict, deadlock};
use peregrine_harness::level::Level;

/// The text under the matrix.
pub const LEGEND: &str = "Each cell has four marks, for READ UNCOMMITTED, READ COMMITTED, REPEATABLE READ and SERIALIZABLE: \
     ✓ prevented, ✗ happens, ? nothing was committed.";

/// Renders all tables.
#[must_use]
pub fn render(findings: &Findings) -> String {
    let mut text = String::new();
    text.push_str(&format!("{}\n{LEGEND}\n\n", anomalies(findings)));
    text.push_str(&format!("{}\n\n", deadlocks(findings)));
    for level in Level::ALL {
        text.push_str(&format!(
            "{}\n{}\n",
            level.sql(),
            conflicts(findings, level)
        ));
    }
    text
}

fn new_table(first: &str, findings: &Findings) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED.with_rounded_corners());
    let titles = findings.columns.iter().map(|column| column.title.clone());
    table.set_header(std::iter::once(first.to_owned()).chain(titles));
    table
}

fn anomalies(findings: &Findings) -> Table {
    let mut table = new_table("anomaly", findings);
    for anomaly in ALL {
        let cells = findings
            .columns
            .iter()
            .map(|column| marks(column, anomaly.name));
        table.add_row(
            std::iter::once(format!("{} {}", anomaly.name, anomaly.title))
                .chain(cells)
                .map(TableCell::new),
        );
    }
    table
}

/// Returns the marks of the four levels.
fn marks(column: &Column, anomaly: &str) -> String {
    let marks: Vec<&str> = Level::ALL
        .iter()
        .map(
            |level| match column.cell(anomaly, *level).map(|cell| cell.verdict) {
                Some(Verdict::Prevented) => "✓",
                Some(Verdict::Happened) => "✗",
                Some(Verdict::NothingCommitted) => "?",
                None => " ",
            },
        )
        .collect();
    marks.join(" ")
}

fn deadlocks(findings: &Findings) -> Table {
    let mut table = new_table("deadlock of two sessions", findings);
    let cells = findings.columns.iter().map(deadlock_text);
    table.add_row(
        std::iter::once("who, what, when".to_owned())
            .chain(cells)
            .map(TableCell::new),
    );
    table
}

/// Describes a column's deadlocks in words.
#[must_use]
pub fn deadlock_text(column: &Column) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for deadlock in &column.deadlocks {
        let kind = match deadlock.victim {
            0 => "nobody gets an error".to_owned(),
            victim => format!("session {victim} gets error {}", deadlock.error),
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut text = kinds.join(", or ");
    if let Some((median, most)) = deadlock::times(&column.deadlocks) {
        text.push_str(&format!(
            "; after {median:.1} ms (median of {}, longest {most:.1} ms)",
            column.deadlocks.len()
        ));
    }
    text
}

fn conflicts(findings: &Findings, level: Level) -> Table {
    let mut table = new_table("two sessions at one row", findings);
    for meeting in conflict::ALL {
        let cells = findings.columns.iter().map(|column| {
            column
                .conflicts
                .iter()
                .find(|found| found.meeting == meeting.title && found.level == level)
                .map_or_else(String::new, conflict::Conflict::text)
        });
        table.add_row(
            std::iter::once(meeting.title.to_owned())
                .chain(cells)
                .map(TableCell::new),
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::findings::sample;

    #[test]
    fn every_script_and_column_is_shown() {
        let text = render(&sample::findings());
        for anomaly in ALL {
            assert!(text.contains(anomaly.title), "{text}");
        }
        assert!(
            text.contains("✗ ✗ ✗ ✗") && text.contains("✓ ✓ ✓ ✓"),
            "{text}"
        );
        assert!(
            text.contains("session 2 gets error 1213; after 0.5 ms"),
            "{text}"
        );
    }
}
