//! The settings of the measurements: those that all results of the report share, and those that differ.

use std::collections::BTreeMap;

use serde::Serialize;

use super::series::Series;
use super::Source;
use crate::results::file;
use crate::results::record::{Header, Line, Load, RunSettings};

/// A directory's settings.
#[derive(Debug, Serialize)]
pub struct SourceAbout {
    name: String,
    command: String,
    facts: Vec<(String, String)>,
    variables: BTreeMap<String, String>,
}

/// A setting that is not the same for all series.
#[derive(Debug, Serialize)]
pub struct Unlike {
    /// The setting's name.
    pub name: String,
    /// For each series: its value, and whether the value differs from the baseline's.
    pub cells: Vec<(String, bool)>,
}

/// Returns the names and values of settings; the report compares sources by them.
pub fn facts(header: &Header) -> Vec<(String, String)> {
    let settings = &header.settings;
    let joined = |names: Vec<String>| names.join(", ");
    let facts = vec![
        (
            "server",
            match header.server_version.as_str() {
                "" => "none".to_owned(),
                version => version.to_owned(),
            },
        ),
        ("benchmark", header.suite_version.clone()),
        (
            "processor",
            format!("{}, {} usable", header.machine.cpu, header.machine.cores),
        ),
        (
            "memory",
            format!("{} MB", megabytes(header.machine.memory_bytes)),
        ),
        (
            "system",
            format!(
                "{}, kernel {}",
                header.machine.system, header.machine.kernel
            ),
        ),
        ("file system", header.machine.file_system.clone()),
        ("profile", settings.profile.clone()),
        ("seed", settings.seed.to_string()),
        ("cache", settings.caches()),
        ("character set", settings.charset.clone()),
        ("placement", settings.placement.name().to_owned()),
        (
            "protocols",
            joined(
                settings
                    .protocols
                    .iter()
                    .map(|p| p.name().to_owned())
                    .collect(),
            ),
        ),
        (
            "method",
            format!(
                "warm-up {}, {} runs of {} s, best counts, all are shown",
                warm_up(settings),
                settings.runs,
                settings.run_s
            ),
        ),
        (
            "loop",
            settings.rate.map_or_else(
                || "closed: each client asks when it has its answer".to_owned(),
                |rate| {
                    format!("open: {rate} transactions a second are due, latencies count from when each was")
                },
            ),
        ),
        (
            "limit on the server's memory",
            settings
                .memory_limit_bytes
                .map_or_else(|| "none".to_owned(), |bytes| format!("{} MiB", bytes >> 20)),
        ),
    ];
    let mut facts: Vec<(String, String)> = facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    for planned in &settings.workloads {
        let parameters = planned.parameters.iter();
        let shown: Vec<String> = parameters
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        facts.push((format!("workload {}", planned.name), shown.join(", ")));
    }
    for engine in &settings.engines {
        if let Some(version) = header.engine_versions.get(engine.name()) {
            facts.push((engine.title().to_owned(), version.clone()));
        }
    }
    facts
}

fn warm_up(settings: &RunSettings) -> String {
    match settings.steady_percent {
        None => format!("{} s", settings.warm_up_s),
        Some(percent) => format!(
            "until three seconds differ by at most {percent} %, {} s at most",
            settings.warm_up_s
        ),
    }
}

/// Returns every setting that is not the same for all series.
///
/// Among them are the promise of a commit, the cache size, and how the engine is called. Others are the settings in
/// which directories differ, and the server's variables.
pub fn unlike(series: &[Series<'_>], baseline: Option<usize>) -> Vec<Unlike> {
    let all: Vec<BTreeMap<String, String>> = series.iter().map(of_series).collect();
    let mut names: Vec<&String> = Vec::new();
    for name in all.iter().flat_map(BTreeMap::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut rows = Vec::new();
    for name in names {
        let values: Vec<Option<&String>> = all.iter().map(|settings| settings.get(name)).collect();
        // A setting that a series lacks, such as a workload of its own, does not count as different.
        let mut there = values.iter().flatten();
        let Some(first) = there.next() else { continue };
        if there.all(|value| value == first) {
            continue;
        }
        let expected = baseline.and_then(|at| *values.get(at)?).unwrap_or(first);
        rows.push(Unlike {
            name: name.clone(),
            cells: values
                .iter()
                .map(|value| match value {
                    None => (String::new(), false),
                    Some(value) => ((*value).clone(), *value != expected),
                })
                .collect(),
        });
    }
    rows
}

/// Returns a series' settings by name.
///
/// The names are chosen so that the most important ones sort first.
fn of_series(series: &Series<'_>) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut set = |name: &str, value: &str| {
        settings.entry(name.to_owned()).or_insert(value.to_owned());
    };
    for source in series.sources() {
        for line in &source.lines {
            let (durability, cache) = match line {
                Line::Run(run) if run.engine == series.engine => (&run.durability, run.cache_bytes),
                Line::Load(load) if load.engine == series.engine => {
                    (&load.durability, load.cache_bytes)
                }
                _ => continue,
            };
            set("a commit", durability);
            let cache = match cache {
                0 => "none of its own, or not known".to_owned(),
                bytes => format!("{} MiB", bytes >> 20),
            };
            set("cache", &cache);
            if let Line::Load(Load {
                used: Some(used), ..
            }) = line
            {
                set("asked", &format!("in this process, by calls: {used}"));
            } else if !series.engine.is_embedded() {
                set("asked", "on a server, by statements");
            }
        }
        let Some(header) = file::header(&source.lines) else {
            continue;
        };
        let engine = |name: &str| {
            let mut engines = header.settings.engines.iter();
            engines.any(|engine| engine.title() == name)
        };
        for (name, value) in facts(header) {
            // The cache is set above. An engine's version is compared only with the same engine's.
            if name != "cache" && !engine(&name) {
                set(&name, &value);
            }
        }
        if let Some(version) = header.engine_versions.get(series.engine.name()) {
            set(&format!("version of {}", series.engine.title()), version);
        }
        for (name, value) in &header.variables {
            if name != "version" {
                set(&format!("variable {name}"), value);
            }
        }
    }
    settings
}

/// Returns the settings of each directory that has figures.
pub fn sources(sources: &[Source]) -> Vec<SourceAbout> {
    sources.iter().filter_map(about).collect()
}

fn about(source: &Source) -> Option<SourceAbout> {
    let header = file::header(&source.lines)?;
    let peak = source.lines.iter().filter_map(|line| match line {
        Line::Run(run) => run.server_peak_rss_bytes,
        Line::Load(load) => load.server_peak_rss_bytes,
        _ => None,
    });
    let mut facts = facts(header);
    facts.push(("begun".to_owned(), header.started.clone()));
    if let Some(peak) = peak.max() {
        facts.push((
            "server's peak memory".to_owned(),
            format!("{} MB, all engines together", megabytes(peak)),
        ));
    }
    for line in &source.lines {
        if let Line::Finish(finish) = line {
            facts.push(("took".to_owned(), format!("{:.0} s", finish.seconds)));
        }
    }
    Some(SourceAbout {
        name: source.name.clone(),
        command: header.command.clone(),
        facts,
        variables: header.variables.clone(),
    })
}

/// Bytes in millions; a small number to a tenth.
pub fn megabytes(bytes: u64) -> String {
    match bytes as f64 / 1e6 {
        few if few < 9.95 => format!("{few:.1}"),
        many => format!("{many:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::series;
    use crate::results::sample;
    use peregrine_harness::engines::{Embedded, Engine};

    fn source(name: &str, change: impl FnOnce(&mut Header)) -> Source {
        let mut lines = sample::lines();
        if let Some(Line::Header(header)) = lines.first_mut() {
            change(header);
        }
        Source {
            name: name.to_owned(),
            lines,
            behaviour: None,
        }
    }

    fn names(rows: &[Unlike]) -> Vec<&str> {
        rows.iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn only_what_differs_is_told_and_only_what_is_unlike_the_baseline_marked() {
        let same = [source("one", |_| ()), source("two", |_| ())];
        let (series, baseline) = series::all(&same);
        assert!(unlike(&series, baseline).is_empty());

        let mut other = source("other", |header| header.settings.seed = 7);
        for line in &mut other.lines {
            if let Line::Run(run) = line {
                run.cache_bytes *= 2;
            }
        }
        let sources = [source("one", |_| ()), other];
        let (series, baseline) = series::all(&sources);
        let rows = unlike(&series, baseline);
        assert_eq!(names(&rows), ["cache", "seed"]);
        let marked: Vec<bool> = rows[1].cells.iter().map(|cell| cell.1).collect();
        assert_eq!(marked, [false, false, true, true]);
        assert_eq!(rows[1].cells[3].0, "7");
    }

    #[test]
    fn how_embedded_stores_are_used_stands_beside_servers() {
        let lmdb = Engine::Embedded(Embedded::Lmdb);
        let mut mixed = source("one", |header| header.settings.engines.push(lmdb));
        let load = mixed.lines.iter().find_map(|line| match line {
            Line::Load(load) => Some(load.clone()),
            _ => None,
        });
        mixed.lines.push(Line::Load(Load {
            engine: lmdb,
            cache_bytes: 0,
            used: Some("as its book says".to_owned()),
            ..load.expect("a load")
        }));
        let sources = [mixed];
        let (series, baseline) = series::all(&sources);
        let rows = unlike(&series, baseline);
        assert_eq!(names(&rows), ["asked", "cache"]);
        for row in rows {
            let [.., server, store] = &row.cells[..] else {
                panic!("two and more");
            };
            assert!(!server.1 && store.1, "{row:?}");
            assert!(store.0.contains("as its book says") || store.0.contains("none of its own"));
        }
    }

    #[test]
    fn an_engines_version_is_compared_with_that_of_the_same_engine_only() {
        let versions = |of: &[(&str, &str)]| -> BTreeMap<String, String> {
            let of = of.iter();
            of.map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
                .collect()
        };
        let before = source("before", |header| {
            header.engine_versions = versions(&[("innodb", "10"), ("peregrine", "0.1")]);
        });
        let after = source("after", |header| {
            header.engine_versions = versions(&[("innodb", "10"), ("peregrine", "0.2")]);
        });
        let sources = [before, after];
        let (series, baseline) = series::all(&sources);
        let rows = unlike(&series, baseline);
        assert_eq!(names(&rows), ["version of Peregrine"]);
        let marked: Vec<bool> = rows[0].cells.iter().map(|cell| cell.1).collect();
        assert_eq!(marked, [false, false, false, true]);
    }
}
