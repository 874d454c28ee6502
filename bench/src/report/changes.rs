//! The changes between two results, as a table for the terminal, a README and the page.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{Cell, CellAlignment, Color, Table};
use serde::Serialize;

use crate::results::change::{Change, Changes, Meaning};
use crate::results::comparison::Group;
use crate::results::figure::shown;
use peregrine_harness::engines::Engine;

/// The changes as the page shows them: a row for each cell, a column for each engine.
#[derive(Debug, Serialize)]
pub struct View {
    before: String,
    after: String,
    engines: Vec<&'static str>,
    rows: Vec<Row>,
    told: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    workload: String,
    query: String,
    threads: u32,
    protocol: &'static str,
    /// For each engine its class, text and tooltip; `None` where the cell can't be compared.
    cells: Vec<Option<(&'static str, String, String)>>,
}

impl View {
    /// Builds the view of the changes between two results with these names.
    pub fn new(changes: &Changes, before: &str, after: &str) -> Self {
        let mut engines: Vec<Engine> = changes.cells.iter().map(|cell| cell.engine).collect();
        engines.sort();
        engines.dedup();
        let mut groups: Vec<&Group> = changes.cells.iter().map(|cell| &cell.group).collect();
        groups.dedup();
        let rows = groups.into_iter().map(|group| Row {
            workload: group.workload.clone(),
            query: group.query.clone(),
            threads: group.threads,
            protocol: group.protocol.name(),
            cells: engines
                .iter()
                .map(|engine| {
                    let mut cells = changes.cells.iter();
                    let of = cells.find(|cell| cell.engine == *engine && cell.group == *group)?;
                    let title = format!(
                        "{} to {}: {}",
                        shown(of.before, &of.unit),
                        shown(of.after, &of.unit),
                        of.meaning.word()
                    );
                    Some((class(of.meaning), format!("{:.2}", of.ratio), title))
                })
                .collect(),
        });
        Self {
            before: before.to_owned(),
            after: after.to_owned(),
            rows: rows.collect(),
            engines: engines.into_iter().map(Engine::title).collect(),
            told: sentences(changes),
        }
    }
}

fn class(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Slower => "slower",
        Meaning::Faster => "faster",
        Meaning::Tie => "tie",
        Meaning::Unknown => "unknown",
    }
}

/// The changes for a terminal.
///
/// Lists every cell that is faster, slower or unknown (one run only), then a sentence for each engine.
#[must_use]
pub fn terminal(changes: &Changes) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED.with_rounded_corners());
    told(changes, table)
}

/// The same changes for a README.
#[must_use]
pub fn markdown(changes: &Changes) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    told(changes, table)
}

fn told(changes: &Changes, mut table: Table) -> String {
    let differing: Vec<&Change> = changes
        .cells
        .iter()
        .filter(|cell| cell.meaning != Meaning::Tie)
        .collect();
    let mut text = String::new();
    if !differing.is_empty() {
        let mut head: Vec<Cell> = ["workload", "transaction", "engine"].map(Cell::new).into();
        head.extend(["threads", "before", "after", "ratio"].map(|name| right(name.to_owned())));
        head.push(Cell::new(""));
        table.set_header(head);
        for cell in differing {
            let word = Cell::new(cell.meaning.word());
            table.add_row(vec![
                Cell::new(&cell.group.workload),
                Cell::new(&cell.group.query),
                Cell::new(cell.engine.title()),
                right(cell.group.threads.to_string()),
                right(shown(cell.before, &cell.unit)),
                right(shown(cell.after, &cell.unit)),
                right(format!("{:.2}", cell.ratio)),
                match cell.meaning {
                    Meaning::Slower => word.fg(Color::Red),
                    Meaning::Faster => word.fg(Color::Green),
                    Meaning::Tie | Meaning::Unknown => word,
                },
            ]);
        }
        text.push_str(&format!("{table}\n\n"));
    }
    for sentence in sentences(changes) {
        text.push_str(&sentence);
        text.push('\n');
    }
    text
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Returns a sentence for each engine, and the cells that could not be compared.
fn sentences(changes: &Changes) -> Vec<String> {
    let mut told = Vec::new();
    for (engine, balance) in changes.balances() {
        let cells = balance.faster + balance.slower + balance.ties + balance.unknown;
        let mut text = format!(
            "{}: {} faster, {} slower, {} ties of {cells} cells",
            engine.title(),
            balance.faster,
            balance.slower,
            balance.ties
        );
        if balance.unknown > 0 {
            text.push_str(&format!(
                ", {} with one run only, of which nobody can tell",
                balance.unknown
            ));
        }
        if let Some(mean) = balance.mean {
            text.push_str(&format!("; geometric mean of all ratios {mean:.3}"));
        }
        told.push(text);
    }
    if told.is_empty() {
        told.push("no cell was measured in both".to_owned());
    }
    for (group, engine) in &changes.void {
        told.push(format!(
            "void in one of them: {} {}, {} threads, {}",
            group.workload,
            group.query,
            group.threads,
            engine.title()
        ));
    }
    if changes.gone + changes.new > 0 {
        told.push(format!(
            "measured in one of them only: {} cells before, {} after",
            changes.gone, changes.new
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::Line;
    use crate::results::{sample, Comparison};

    fn changes() -> Changes {
        let of = |rates: [[f64; 2]; 3]| {
            let queries = ["A", "B", "C"].into_iter().zip(rates);
            let lines: Vec<Line> = queries
                .flat_map(|(query, rates)| {
                    (1..).zip(rates).map(move |(run, rate)| (query, run, rate))
                })
                .map(|(query, run, rate)| {
                    Line::Run(sample::run(Engine::Peregrine, query, 4, run, rate))
                })
                .collect();
            Comparison::new(&lines)
        };
        let before = of([[100.0, 99.0], [100.0, 99.0], [100.0, 90.0]]);
        let after = of([[150.0, 149.0], [50.0, 49.0], [101.0, 91.0]]);
        Changes::between(&before, &after)
    }

    #[test]
    fn what_changed_is_told_and_ties_are_counted() {
        let text = terminal(&changes());
        let sentence =
            "Peregrine: 1 faster, 1 slower, 1 ties of 3 cells; geometric mean of all ratios 0.912";
        // The cube root of 1.5 × 0.5 × 1.01.
        assert!(text.contains(sentence), "{text}");
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("Peregrine "))
            .collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(rows[0].contains("faster") && rows[0].contains("1.50"));
        assert!(rows[1].contains("slower") && rows[1].contains("0.50"));
        let readme = markdown(&changes());
        assert!(readme.starts_with("| workload"), "{readme}");
        assert!(readme.contains("|---"), "{readme}");
        assert!(readme.contains(sentence), "{readme}");
    }

    #[test]
    fn the_page_has_every_cell_ties_too() {
        let view = View::new(&changes(), "one", "two");
        let classes: Vec<&str> = view
            .rows
            .iter()
            .filter_map(|row| Some(row.cells.first()?.as_ref()?.0))
            .collect();
        assert_eq!(classes, ["faster", "slower", "tie"]);
        assert_eq!(view.engines, ["Peregrine"]);
    }

    #[test]
    fn nothing_in_common_is_said() {
        let nothing = Changes::between(&Comparison::new(&[]), &Comparison::new(&[]));
        assert_eq!(terminal(&nothing), "no cell was measured in both\n");
    }
}
