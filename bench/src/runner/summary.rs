//! The comparison as a table for the terminal.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Attribute, Cell, CellAlignment, Color, Row, Table};

use crate::results::comparison::{Comparison, Group, Summary};
use crate::results::figure::shown;
use crate::results::record::{Header, Line, Load, Planned, RunSettings};
use crate::results::{file, loads};
use peregrine_harness::arithmetic;
use peregrine_harness::engines::{Engine, Protocol};

/// Returns the engine that others are compared with: `InnoDB` if it is measured, else the first.
#[must_use]
pub fn baseline(engines: &[Engine]) -> Engine {
    if engines.contains(&Engine::InnoDb) {
        Engine::InnoDb
    } else {
        engines.first().copied().unwrap_or(Engine::InnoDb)
    }
}

/// Returns the tables and sentences after a run; the best engine of each cell is bold and starred.
#[must_use]
pub fn render(lines: &[Line]) -> String {
    let Some(header) = file::header(lines) else {
        return String::new();
    };
    let settings = &header.settings;
    let comparison = Comparison::new(lines);
    let baseline = baseline(&settings.engines);
    let mut text = String::new();
    for planned in &settings.workloads {
        if settings.workloads.len() > 1 {
            text.push_str(&format!("\n{}\n", planned.name));
        }
        for protocol in settings
            .protocols
            .iter()
            .filter(|_| !planned.cells.is_empty())
        {
            if settings.protocols.len() > 1 {
                text.push_str(&format!("\n{} protocol\n", protocol.name()));
            }
            text.push_str(&ratios(settings, planned, &comparison, baseline, *protocol).to_string());
            text.push('\n');
        }
        text.push_str(&loads(lines, settings, &planned.name, baseline));
        text.push('\n');
    }
    for engine in settings
        .engines
        .iter()
        .filter(|engine| **engine != baseline && !comparison.groups().is_empty())
    {
        text.push_str(&sentence(
            *engine,
            baseline,
            comparison.summary(*engine, baseline),
        ));
        text.push('\n');
    }
    text.push_str(&own_settings(header));
    text.push_str(&embedded_stores(lines, settings));
    text.push_str(&plan_notes(lines));
    text.push_str(&behind(lines));
    let faulty = comparison.faulty();
    if faulty.is_empty() {
        text.push_str("every answer was right\n");
    } else {
        text.push_str(&format!(
            "{} runs had wrong answers or errors and don't count, first: {}\n",
            faulty.len(),
            faulty[0]
                .problem
                .as_deref()
                .unwrap_or("no query was answered")
        ));
    }
    text
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED.with_rounded_corners());
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn ratios(
    settings: &RunSettings,
    planned: &Planned,
    comparison: &Comparison,
    baseline: Engine,
    protocol: Protocol,
) -> Table {
    let mut table = new_table();
    let mut head = Row::new();
    head.add_cell(Cell::new("query"));
    head.add_cell(right("threads".to_owned()));
    let runs = planned
        .cells
        .iter()
        .flat_map(|cell| comparison.units(&planned.name, cell));
    let mut units: Vec<String> = runs.collect();
    units.dedup();
    let unit = match units.as_slice() {
        [only] => only.as_str(),
        _ => "per second",
    };
    head.add_cell(right(format!("{} {unit}", baseline.title())));
    for engine in settings
        .engines
        .iter()
        .filter(|engine| **engine != baseline)
    {
        let shown = if planned.once { unit } else { "×" };
        head.add_cell(right(format!("{} {shown}", engine.title())));
    }
    table.set_header(head);
    for query in &planned.cells {
        for (place, threads) in settings.ladder(planned).iter().enumerate() {
            let group = Group {
                workload: planned.name.clone(),
                protocol,
                query: query.clone(),
                threads: *threads,
            };
            let best = arithmetic::maximum(
                settings
                    .engines
                    .iter()
                    .filter_map(|engine| comparison.figure(&group, *engine)),
            );
            let mut row = Row::new();
            row.add_cell(Cell::new(if place == 0 { query } else { "" }));
            row.add_cell(right(threads.to_string()));
            let mut add = |engine: Engine| {
                let figure = comparison.figure(&group, engine);
                let measured = !comparison.runs(&group, engine).is_empty();
                let shown = match figure {
                    None if !measured => "·".to_owned(),
                    None => "void".to_owned(),
                    Some(figure) if engine == baseline || planned.once => shown(figure, unit),
                    Some(_) => comparison
                        .ratio(&group, engine, baseline)
                        .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}")),
                };
                let is_best = figure.is_some() && figure == best;
                let cell = right(if is_best {
                    format!("{shown}*")
                } else {
                    format!("{shown} ")
                });
                row.add_cell(if is_best {
                    cell.add_attribute(Attribute::Bold)
                } else if figure.is_none() && measured {
                    cell.fg(Color::Red)
                } else {
                    cell
                });
            };
            add(baseline);
            for engine in settings
                .engines
                .iter()
                .filter(|engine| **engine != baseline)
            {
                add(*engine);
            }
            table.add_row(row);
        }
    }
    table
}

/// The time and size of loading; where loading itself is measured, a table for each.
fn loads(lines: &[Line], settings: &RunSettings, workload: &str, baseline: Engine) -> String {
    let all: Vec<Load> = settings
        .engines
        .iter()
        .filter_map(|engine| loads::of(lines, workload, *engine))
        .collect();
    let base = all.iter().find(|load| load.engine == baseline);
    let seconds = |time: fn(&Load) -> Option<f64>| {
        move |load: &Load| compared(time(load), base.and_then(time), 1)
    };
    let load_data = seconds(|load| Some(load.seconds));
    let room = |load: &Load| {
        let size = |load: &Load| load.disk_bytes as f64 / 1e6;
        compared(Some(size(load)), base.map(size), 0)
    };
    let mut table = new_table();
    if all.iter().all(|load| load.insert_s.is_none()) {
        table.set_header(["engine", "load s", "×", "size MB", "×", "durability"]);
        for load in &all {
            let mut row = vec![Cell::new(load.engine.title())];
            row.extend(load_data(load));
            row.extend(room(load));
            row.push(Cell::new(&load.durability));
            table.add_row(row);
        }
        return table.to_string();
    }
    table.set_header([
        "engine",
        "load s",
        "×",
        "insert s",
        "×",
        "indexes s",
        "×",
        "durability",
    ]);
    let mut sizes = new_table();
    sizes.set_header([
        "engine",
        "size MB",
        "×",
        "data MB",
        "indexes MB",
        "free MB",
        "log MB",
    ]);
    for load in &all {
        let mut row = vec![Cell::new(load.engine.title())];
        row.extend(load_data(load));
        row.extend(seconds(|load| load.insert_s)(load));
        row.extend(seconds(|load| load.index_s)(load));
        row.push(Cell::new(&load.durability));
        table.add_row(row);
        let mut row = vec![Cell::new(load.engine.title())];
        row.extend(room(load));
        for bytes in [
            load.data_bytes,
            load.index_bytes,
            load.free_bytes,
            load.log_bytes,
        ] {
            row.push(right(format!("{:.0}", bytes as f64 / 1e6)));
        }
        sizes.add_row(row);
    }
    format!("{table}\n{sizes}")
}

/// A figure with this many decimals, and its ratio to the baseline's.
fn compared(figure: Option<f64>, baseline: Option<f64>, decimals: usize) -> [Cell; 2] {
    let shown = |figure: Option<f64>, decimals: usize| {
        right(figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.decimals$}")))
    };
    let both = figure.zip(baseline);
    let ratio = both.and_then(|(figure, baseline)| arithmetic::ratio(figure, baseline));
    [shown(figure, decimals), shown(ratio, 2)]
}

fn sentence(engine: Engine, baseline: Engine, summary: Option<Summary>) -> String {
    match summary {
        None => format!("{}: no cell can be compared", engine.title()),
        Some(summary) => format!(
            "{}/{}: geometric mean {:.3} over {} cells, minimum {:.3} ({}, {} threads){}",
            engine.title(),
            baseline.title(),
            summary.mean,
            summary.cells,
            summary.minimum.0,
            summary.minimum.1.query,
            summary.minimum.1.threads,
            if summary.void == 0 {
                String::new()
            } else {
                format!(", {} cells void", summary.void)
            }
        ),
    }
}

/// Returns a sentence with the number of open-loop runs that did not keep up.
fn behind(lines: &[Line]) -> String {
    let of_run = |line: &Line| matches!(line, Line::Run(run) if run.left > 0);
    match lines.iter().filter(|line| of_run(line)).count() {
        0 => String::new(),
        runs => format!(
            "{runs} runs did not keep up with what was due: their latencies grow for as long as they run\n"
        ),
    }
}

/// Describes the settings of a server that keeps its own, since they were not made equal.
fn own_settings(header: &Header) -> String {
    let Some(server) = &header.settings.server else {
        return String::new();
    };
    let mut text = format!(
        "settings of the server at {}, which are its own:\n",
        server.url
    );
    for engine in &header.settings.engines {
        let names = [engine.cache_variable(), engine.durability_variable()];
        let known = names.into_iter().flatten().filter_map(|name| {
            let value = header.variables.get(name)?;
            Some(format!("{name} = {value}"))
        });
        let known: Vec<String> = known.collect();
        text.push_str(&format!(
            "  {}: {}\n",
            engine.title(),
            if known.is_empty() {
                "none that are known".to_owned()
            } else {
                known.join(", ")
            }
        ));
    }
    text
}

/// Describes how embedded stores were used, and how they differ from a server.
fn embedded_stores(lines: &[Line], settings: &RunSettings) -> String {
    let mut used: Vec<(Engine, &str)> = Vec::new();
    for line in lines {
        if let Line::Load(Load {
            engine,
            used: Some(how),
            ..
        }) = line
        {
            if !used.iter().any(|(known, _)| known == engine) {
                used.push((*engine, how));
            }
        }
    }
    if used.is_empty() {
        return String::new();
    }
    let protocol = settings
        .protocols
        .first()
        .map_or("text", |first| first.name());
    let mut text = format!(
        "embedded stores are asked by calls in this process, without a server or a protocol; their figures stand \
         under {protocol}:\n"
    );
    for (engine, how) in used {
        text.push_str(&format!("  {}: {how}\n", engine.title()));
    }
    text
}

fn plan_notes(lines: &[Line]) -> String {
    let other: Vec<String> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Plan(plan) if plan.same_as_baseline == Some(false) => {
                Some(format!("{} on {}", plan.query, plan.engine.title()))
            }
            _ => None,
        })
        .collect();
    if other.is_empty() {
        String::new()
    } else {
        format!(
            "plans that differ from the baseline's: {}\n",
            other.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    #[test]
    fn the_table_shows_ratios_stars_the_best_and_says_what_is_void() {
        let mut lines = vec![Line::Header(Box::new(sample::header()))];
        for run in 1..=3 {
            for (engine, qps) in [(Engine::InnoDb, 1_000.0), (Engine::Peregrine, 1_500.0)] {
                for threads in [1, 4] {
                    lines.push(Line::Run(sample::run(
                        engine,
                        "READ_PK_POINT",
                        threads,
                        run,
                        qps,
                    )));
                    let mut scan = sample::run(engine, "READ_FTS", threads, run, qps / 100.0);
                    scan.wrong = u64::from(engine == Engine::Peregrine && threads == 4);
                    lines.push(Line::Run(scan));
                }
            }
        }
        let text = render(&lines);
        assert!(text.contains("1.50*"), "{text}");
        assert!(text.contains("1.0k"), "{text}");
        assert!(text.contains("void"), "{text}");
        assert!(
            text.contains("Peregrine/InnoDB: geometric mean 1.500 over 3 cells, minimum 1.500"),
            "{text}"
        );
        assert!(text.contains("1 cells void"), "{text}");
        assert!(!text.contains("did not keep up"), "{text}");
        for line in &mut lines {
            if let Line::Run(run) = line {
                run.left = u64::from(run.threads == 4 && run.run == 1);
            }
        }
        let text = render(&lines);
        assert!(
            text.contains("4 runs did not keep up with what was due"),
            "{text}"
        );
        assert!(text.contains("3 runs had wrong answers"), "{text}");
    }

    #[test]
    fn loading_is_shown_with_the_least_of_its_times() {
        let mut lines = sample::lines();
        let text = render(&lines);
        assert!(
            text.contains("load s") && !text.contains("insert s"),
            "{text}"
        );
        let Line::Load(load) = lines[1].clone() else {
            panic!("a load")
        };
        for (engine, seconds) in [(Engine::InnoDb, 20.0), (Engine::Peregrine, 5.0)] {
            for run in 1..=2 {
                lines.push(Line::Load(Load {
                    engine,
                    run,
                    insert_s: Some(seconds * f64::from(run)),
                    index_s: None,
                    log_bytes: 77_000_000,
                    ..load.clone()
                }));
            }
        }
        let text = render(&lines);
        let found = |parts: &[&str]| {
            text.lines()
                .any(|line| parts.iter().all(|part| line.contains(part)))
        };
        assert!(found(&["Peregrine", "5.0", "0.25", "–"]), "{text}");
        assert!(found(&["InnoDB", "20.0", "1.00"]), "{text}");
        assert!(found(&["Peregrine", "77"]), "{text}");
    }

    #[test]
    fn how_embedded_stores_were_used_is_told_once_each() {
        let mut lines = sample::lines();
        assert!(!render(&lines).contains("embedded stores"));
        let Line::Load(load) = lines[1].clone() else {
            panic!("a load")
        };
        let store = Line::Load(Load {
            engine: Engine::Embedded(peregrine_harness::engines::Embedded::Lmdb),
            used: Some("every commit synced".to_owned()),
            ..load
        });
        lines.extend([store.clone(), store]);
        let text = render(&lines);
        assert!(text.contains("their figures stand under text"), "{text}");
        let told = text.matches("  LMDB: every commit synced\n").count();
        assert_eq!(told, 1, "{text}");
    }

    #[test]
    fn of_what_is_done_once_every_engine_s_time_is_shown() {
        let mut header = sample::header();
        header.settings.workloads[0].once = true;
        let mut lines = vec![Line::Header(Box::new(header))];
        for (engine, seconds) in [(Engine::InnoDb, 20.0), (Engine::Peregrine, 4.0)] {
            let mut run = sample::run(engine, "READ_FTS", 1, 1, 1.0 / seconds);
            run.unit = crate::workload::SECONDS.to_owned();
            lines.push(Line::Run(run));
        }
        let text = render(&lines);
        assert!(text.contains("InnoDB s"), "{text}");
        assert!(text.contains("20.0 ") && text.contains("4.00*"), "{text}");
        assert!(text.contains("geometric mean 5.000 over 1 cells"), "{text}");
    }

    #[test]
    fn a_server_s_own_settings_are_shown() {
        let mut header = sample::header();
        header.settings.engines = vec![Engine::InnoDb, Engine::named("memory").expect("an engine")];
        header.variables = [
            ("innodb_buffer_pool_size", "777"),
            ("innodb_flush_log_at_trx_commit", "2"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        assert!(!render(&[Line::Header(Box::new(header.clone()))]).contains("its own"));
        header.settings.server = Some(crate::results::record::Elsewhere {
            url: "mysql://me@db:3306/".to_owned(),
            transactional: vec![Engine::InnoDb],
        });
        let text = render(&[Line::Header(Box::new(header))]);
        for part in [
            "the server at mysql://me@db:3306/",
            "InnoDB: innodb_buffer_pool_size = 777, innodb_flush_log_at_trx_commit = 2",
            "memory: none that are known",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
