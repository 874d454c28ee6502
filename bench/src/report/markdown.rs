//! The figures as tables for a README.

use super::series::{
    Series, {self},
};
use super::settings::megabytes;
use super::{data, Source};
use crate::results::comparison::Group;
use crate::results::figure::shown;
use crate::results::file;
use peregrine_harness::arithmetic;

/// A table for each workload: the best run of each cell, with its ratio to the baseline in brackets.
#[must_use]
pub fn render(sources: &[Source]) -> String {
    let (series, baseline) = series::all(sources);
    let groups = data::groups(&series);
    let mut text = String::new();
    for (at, header) in sources
        .iter()
        .filter_map(|source| file::header(&source.lines))
        .enumerate()
    {
        if at > 0 {
            text.push('\n');
        }
        let settings = &header.settings;
        text.push_str(&format!(
            "MariaDB {}, {}, {} processors, {}, best of {} runs of {} s:\n`{}`\n",
            header.server_version,
            header.machine.cpu,
            header.machine.cores,
            settings.caches(),
            settings.runs,
            settings.run_s,
            header.command
        ));
    }
    let queries = data::queries(sources);
    let mut workloads: Vec<&str> = queries.iter().map(|q| q.workload.as_str()).collect();
    workloads.dedup();
    for workload in workloads {
        // In the order of the workload's file, not in alphabetical order.
        let mut rows: Vec<(&Group, &str)> = Vec::new();
        for query in queries.iter().filter(|query| query.workload == workload) {
            let of = |group: &&Group| group.workload == workload && group.query == query.name;
            rows.extend(groups.iter().filter(of).map(|g| (g, query.unit.as_str())));
        }
        if !rows.is_empty() {
            text.push_str(&table(workload, &rows, &series, baseline));
        }
    }
    text
}

fn table(
    workload: &str,
    rows: &[(&Group, &str)],
    series: &[Series<'_>],
    baseline: Option<usize>,
) -> String {
    let mut units: Vec<&str> = rows.iter().map(|(_, unit)| *unit).collect();
    units.dedup();
    let mut protocols: Vec<_> = rows.iter().map(|(group, _)| group.protocol).collect();
    protocols.sort();
    protocols.dedup();
    let against = baseline.and_then(|at| series.get(at));
    let mut text = format!(
        "\n### {workload}\n\n{}{}; ≈ is a tie, no further apart than runs of the same cell\n\n| transaction | threads |",
        units.join(", "),
        against.map_or_else(String::new, |one| format!(
            ", in brackets the ratio to {}",
            one.label
        ))
    );
    for series in series {
        text.push_str(&format!(" {} |", escaped(&series.label)));
    }
    text.push_str("\n|---|--:|");
    text.push_str(&"--:|".repeat(series.len()));
    text.push('\n');
    for (group, unit) in rows {
        let protocol = match protocols.len() {
            0 | 1 => String::new(),
            _ => format!(", {}", group.protocol.name()),
        };
        text.push_str(&format!(
            "| {}{protocol} | {} |",
            escaped(&group.query),
            group.threads
        ));
        text.push_str(&cells(group, unit, series, against));
    }
    for (name, figure) in [
        (
            "load, s",
            seconds as fn(&Series<'_>, &str) -> Option<String>,
        ),
        ("on disk, MB", size),
    ] {
        let figures: Vec<Option<String>> = series.iter().map(|one| figure(one, workload)).collect();
        if figures.iter().any(Option::is_some) {
            text.push_str(&format!("| {name} | |"));
            for figure in figures {
                text.push_str(&format!(" {} |", figure.unwrap_or_default()));
            }
            text.push('\n');
        }
    }
    text
}

fn seconds(series: &Series<'_>, workload: &str) -> Option<String> {
    Some(format!("{:.1}", series.load(workload)?.seconds))
}

fn size(series: &Series<'_>, workload: &str) -> Option<String> {
    Some(megabytes(series.load(workload)?.disk_bytes))
}

/// The figures of a group; the best is in bold.
fn cells(group: &Group, unit: &str, series: &[Series<'_>], against: Option<&Series<'_>>) -> String {
    let figure = |of: &Series<'_>| arithmetic::maximum(of.rates(group)?);
    let best = arithmetic::maximum(series.iter().filter_map(figure));
    let base = against.and_then(|of| Some((of, of.rates(group)?, figure(of)?)));
    let mut text = String::new();
    for one in series {
        let told = match figure(one) {
            None if one.runs(group).is_empty() => "·".to_owned(),
            None => "void".to_owned(),
            Some(mine) => {
                let mut told = shown(mine, unit);
                if let Some((_, others, theirs)) = base.as_ref().filter(|(of, ..)| of.id != one.id)
                {
                    let rates = one.rates(group).unwrap_or_default();
                    let sign = if arithmetic::tie(&rates, others) == Some(true) {
                        "≈ "
                    } else {
                        ""
                    };
                    if let Some(ratio) = arithmetic::ratio(mine, *theirs) {
                        told.push_str(&format!(" ({sign}{ratio:.2})"));
                    }
                }
                if Some(mine) == best {
                    told = format!("**{told}**");
                }
                told
            }
        };
        text.push_str(&format!(" {told} |"));
    }
    text.push('\n');
    text
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::Line;
    use crate::results::sample;
    use peregrine_harness::engines::Engine;

    #[test]
    fn the_table_has_ratios_ties_and_the_best_in_bold() {
        let mut lines = sample::lines();
        lines.retain(|line| !matches!(line, Line::Run(_)));
        for (query, ours) in [
            ("READ_PK_POINT", [150.0, 151.0]),
            ("READ_FTS", [104.0, 90.0]),
        ] {
            for (run, (theirs, ours)) in (1..).zip([100.0, 95.0].into_iter().zip(ours)) {
                lines.push(Line::Run(sample::run(
                    Engine::InnoDb,
                    query,
                    4,
                    run,
                    theirs,
                )));
                lines.push(Line::Run(sample::run(
                    Engine::Peregrine,
                    query,
                    4,
                    run,
                    ours,
                )));
            }
        }
        let mut wrong = sample::run(Engine::Peregrine, "READ_FTS", 1, 1, 1.0);
        wrong.wrong = 1;
        lines.push(Line::Run(wrong));
        let text = render(&[Source {
            name: "one".to_owned(),
            lines,
            behaviour: None,
        }]);
        for line in [
            "### normal",
            "queries/s, in brackets the ratio to InnoDB; ≈ is a tie, no further apart than runs of the same cell",
            "| transaction | threads | InnoDB | Peregrine |",
            "|---|--:|--:|--:|",
            "| READ_PK_POINT | 4 | 100 | **151 (1.51)** |",
            "| READ_FTS | 1 | · | void |",
            "| READ_FTS | 4 | 100 | **104 (≈ 1.04)** |",
            "| load, s | | 1.5 |  |",
            "| on disk, MB | | 1.0 |  |",
        ] {
            assert!(text.lines().any(|there| there == line), "{line}\n{text}");
        }
    }

    #[test]
    fn without_results_there_is_nothing() {
        assert_eq!(render(&[]), "");
    }
}
