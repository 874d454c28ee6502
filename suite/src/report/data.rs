//! The runs, as the page's script reads them.

use serde::Serialize;

use super::Source;
use crate::error::{Result, SuiteError};
use crate::results::file;
use crate::results::record::{Line, Run};
use crate::runner::summary::baseline;
use crate::target::Engine;
use crate::workload::{Options, Workload};

#[derive(Serialize)]
struct Data<'a> {
    queries: Vec<QueryAbout>,
    engines: Vec<EngineAbout>,
    /// The series that ratios are against at first.
    baseline: Option<String>,
    series: Vec<Series<'a>>,
}

#[derive(Serialize)]
struct QueryAbout {
    workload: String,
    name: String,
    /// The statement, or what is mixed.
    sql: String,
    unit: String,
}

#[derive(Serialize)]
struct EngineAbout {
    name: &'static str,
    title: &'static str,
}

/// One engine of one directory.
#[derive(Serialize)]
struct Series<'a> {
    id: String,
    label: String,
    engine: &'static str,
    /// The place of the directory among those of the report.
    source: usize,
    runs: Vec<&'a Run>,
}

/// The runs as JSON that can stand inside a `script` element.
///
/// # Errors
/// When they can't be written as JSON.
pub fn embedded(sources: &[Source]) -> Result<String> {
    let mut series = Vec::new();
    let mut first_baseline = None;
    for (place, source) in sources.iter().enumerate() {
        let Some(header) = file::header(&source.lines) else {
            continue;
        };
        let chosen = baseline(&header.settings.engines);
        for engine in &header.settings.engines {
            let id = format!("{place}-{}", engine.name());
            if *engine == chosen && first_baseline.is_none() {
                first_baseline = Some(id.clone());
            }
            series.push(Series {
                id,
                label: label(sources, source, *engine),
                engine: engine.name(),
                source: place,
                runs: source
                    .lines
                    .iter()
                    .filter_map(|line| match line {
                        Line::Run(run) if run.engine == *engine => Some(run.as_ref()),
                        _ => None,
                    })
                    .collect(),
            });
        }
    }
    let data = Data {
        queries: queries(sources),
        engines: Engine::ALL
            .iter()
            .map(|engine| EngineAbout {
                name: engine.name(),
                title: engine.title(),
            })
            .collect(),
        baseline: first_baseline,
        series,
    };
    let json =
        serde_json::to_string(&data).map_err(|error| SuiteError::Report(error.to_string()))?;
    // No `<` may stand in a script element, so that nothing can end it early.
    Ok(json.replace('<', "\\u003c"))
}

/// What was measured, in the order of the workloads' files.
fn queries(sources: &[Source]) -> Vec<QueryAbout> {
    let mut known: Vec<QueryAbout> = Vec::new();
    let headers = sources
        .iter()
        .filter_map(|source| file::header(&source.lines));
    for planned in headers.flat_map(|header| &header.settings.workloads) {
        let options = Options {
            set: planned.parameters.clone(),
            ..Options::default()
        };
        // A file of another version of this program may not be understood any more.
        let workload = Workload::read(&planned.text, &planned.source, &options).ok();
        for cell in &planned.cells {
            let is_known =
                |about: &QueryAbout| about.workload == planned.name && about.name == *cell;
            if known.iter().any(is_known) {
                continue;
            }
            let read = workload.as_ref();
            known.push(QueryAbout {
                workload: planned.name.clone(),
                name: cell.clone(),
                sql: read.map_or_else(String::new, |workload| workload.described(cell)),
                unit: read.map_or_else(String::new, |workload| workload.unit(cell)),
            });
        }
    }
    known
}

/// What a series is called.
pub fn label(sources: &[Source], source: &Source, engine: Engine) -> String {
    if sources.len() > 1 {
        format!("{} · {}", engine.title(), source.name)
    } else {
        engine.title().to_owned()
    }
}
