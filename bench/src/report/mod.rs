//! The report: one HTML file that loads nothing from elsewhere.
//!
//! The template renders static facts (settings, load, size, plans) into the page. The page's own script draws the
//! charts and the heat map from the runs, which are in the page as JSON. Apache `ECharts` draws the charts; it is in
//! `assets/echarts` with its licence.

mod behaviour;
pub mod changes;
mod data;
pub mod markdown;
mod series;
mod settings;
mod view;
mod workload;

use std::path::{Path, PathBuf};

use minijinja::value::{Serde, Value};
use minijinja::{context, Environment};

use crate::behaviour::Findings;
use crate::results::record::Line;
use crate::results::{file, Changes};
use peregrine_harness::error::{HarnessError, PathContext, Result};

/// The report's file name in an output directory.
pub const FILE_NAME: &str = "report.html";

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
/// In this order, since later scripts use what earlier ones declare.
const SCRIPTS: [&str; 4] = [
    include_str!("figures.js"),
    include_str!("heat.js"),
    include_str!("charts.js"),
    include_str!("page.js"),
];
const CHARTS: &str = include_str!("../../assets/echarts/echarts.common.min.js");

/// The results of one output directory.
#[derive(Debug)]
pub struct Source {
    /// The directory's name; it names the results when there are several.
    pub name: String,
    /// The lines of the results; empty when the directory has findings about behaviour only.
    pub lines: Vec<Line>,
    /// The findings about sessions that conflict, if the directory has them.
    pub behaviour: Option<Findings>,
}

impl Source {
    /// Reads the results in a directory.
    ///
    /// # Errors
    /// When the directory has no results, or they can't be parsed.
    pub fn read(dir: &Path) -> Result<Self> {
        let absolute = std::fs::canonicalize(dir).at("cannot find", dir)?;
        let name = absolute.file_name().map_or_else(
            || absolute.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let behaviour = Findings::read(&absolute)?;
        let lines = if behaviour.is_some() && !absolute.join(file::FILE_NAME).exists() {
            Vec::new()
        } else {
            file::read(&absolute)?
        };
        Ok(Self {
            name,
            lines,
            behaviour,
        })
    }
}

/// Reads the results in `dirs`, renders them as one page and writes it to `out`.
///
/// # Errors
/// When a directory has no results, or the page can't be written.
pub fn write(dirs: &[PathBuf], out: &Path) -> Result<()> {
    let sources: Result<Vec<Source>> = dirs.iter().map(|dir| Source::read(dir)).collect();
    let page = render(&sources?, None)?;
    std::fs::write(out, page).at("cannot write", out)
}

/// Renders results as a page, with the changes between the first two if `changes` is given.
///
/// # Errors
/// When there are no results, or the template fails.
pub fn render(sources: &[Source], changes: Option<&Changes>) -> Result<String> {
    if sources.is_empty() {
        return Err(HarnessError::Usage(
            "a report needs at least one directory with results".to_owned(),
        ));
    }
    let failed = |error: minijinja::Error| HarnessError::Report(error.to_string());
    let mut environment = Environment::new();
    environment
        .add_template("page.html", PAGE)
        .map_err(failed)?;
    let template = environment.get_template("page.html").map_err(failed)?;
    let changes = changes.zip(sources.first()).zip(sources.get(1));
    let changes =
        changes.map(|((changes, one), two)| changes::View::new(changes, &one.name, &two.name));
    let (series, baseline) = series::all(sources);
    let queries = data::queries(sources);
    template
        .render(context! {
            behaviour => Value::from(Serde(behaviour::sections(sources))),
            changes => Value::from(Serde(changes)),
            view => Value::from(Serde(view::View::new(sources, &queries, &series, baseline))),
            data => Value::from_safe_string(data::embedded(&queries, &series, baseline)?),
            style => Value::from_safe_string(STYLE.to_owned()),
            script => Value::from_safe_string(script()),
            charts => Value::from_safe_string(CHARTS.to_owned()),
        })
        .map_err(failed)
}

/// The page's own script.
///
/// It is wrapped in a function, so that its names don't clash with the browser's.
fn script() -> String {
    format!("(() => {{\n{}}})();", SCRIPTS.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{sample, Comparison};

    fn source(name: &str) -> Source {
        Source {
            name: name.to_owned(),
            lines: sample::lines(),
            behaviour: None,
        }
    }

    #[test]
    fn the_page_needs_nothing_but_itself() {
        let page = render(&[source("one")], None).expect("rendered");
        assert!(page.len() < 3_000_000, "{}", page.len());
        // Without the chart library: its code has such strings, but loads nothing by itself.
        let ours = page.replace(CHARTS, "");
        for needs in ["src=", "<link", "@import", "url(", "http:", "https:"] {
            assert!(!ours.contains(needs), "{needs}");
        }
        for tag in ["script", "style", "html", "body"] {
            assert_eq!(
                page.matches(&format!("<{tag}")).count(),
                page.matches(&format!("</{tag}>")).count(),
                "{tag}"
            );
        }
        assert!(page.contains("peregrine bench run"));
    }

    #[test]
    fn what_stands_in_results_is_never_taken_for_markup() {
        let mut hostile = source("<script>alert(1)</script>");
        if let Some(Line::Header(header)) = hostile.lines.first_mut() {
            header.machine.cpu = "</script><script>alert(2)</script>".to_owned();
        }
        if let Some(Line::Run(run)) = hostile.lines.get_mut(2) {
            run.problem = Some("</script><img src=x onerror=alert(3)>".to_owned());
        }
        let page = render(&[hostile, source("other")], None).expect("rendered");
        for attack in ["<script>alert", "</script><img"] {
            assert!(!page.contains(attack), "{attack}");
        }
    }

    #[test]
    fn unlike_settings_are_pointed_out() {
        let mut other = source("other");
        if let Some(Line::Header(header)) = other.lines.first_mut() {
            header.settings.cache_bytes *= 2;
        }
        let page = render(&[source("one"), other], None).expect("rendered");
        assert!(page.contains("cache: "), "the difference is named");
        assert!(!render(&[source("one"), source("two")], None)
            .expect("rendered")
            .contains("differ in"));
    }

    #[test]
    fn a_server_of_its_own_settings_is_named() {
        let mut elsewhere = source("one");
        if let Some(Line::Header(header)) = elsewhere.lines.first_mut() {
            header.settings.cache_bytes = 0;
            header.settings.server = Some(crate::results::record::Elsewhere {
                url: "mysql://me@db:3306/".to_owned(),
                transactional: Vec::new(),
            });
        }
        let page = render(&[elsewhere], None).expect("rendered");
        assert!(
            page.contains("caches as they are on mysql:"),
            "the server is named"
        );
        assert!(!page.contains("0 MiB"));
    }

    #[test]
    fn behaviour_stands_beside_figures_or_alone() {
        let mut both = source("one");
        both.behaviour = Some(crate::behaviour::findings::sample::findings());
        let alone = Source {
            name: "two".to_owned(),
            lines: Vec::new(),
            behaviour: both.behaviour.clone(),
        };
        for (sources, charts) in [(vec![both], true), (vec![alone], false)] {
            let page = render(&sources, None).expect("rendered");
            assert!(page.contains("observed transaction vanishes"));
            assert!(page.contains("T1 commit"));
            assert_eq!(page.contains("Loading and size"), charts);
            assert_eq!(page.contains("<script>"), charts);
        }
        assert!(!render(&[source("three")], None)
            .expect("rendered")
            .contains("When sessions meet"));
    }

    #[test]
    fn what_changed_between_two_stands_in_the_page() {
        let mut after = source("after");
        for line in &mut after.lines {
            if let Line::Run(run) = line {
                run.rate *= 3.0;
            }
        }
        let of = |source: &Source| Comparison::new(&source.lines);
        let before = source("before");
        let changes = Changes::between(&of(&before), &of(&after));
        let sources = [before, after];
        let page = render(&sources, Some(&changes)).expect("rendered");
        assert!(page.contains("What changed from before to after"));
        assert!(page.contains(">3.00<"));
        let page = render(&sources, None).expect("rendered");
        assert!(!page.contains("What changed"));
    }

    #[test]
    fn a_workload_that_was_only_loaded_has_its_section() {
        let mut loaded = source("one");
        loaded.lines.retain(|line| !matches!(line, Line::Run(_)));
        for line in &mut loaded.lines {
            if let Line::Load(load) = line {
                load.insert_s = Some(7.25);
            }
        }
        let page = render(&[loaded], None).expect("rendered");
        assert!(page.contains("by INSERT s"));
        assert!(page.contains("Time to build all secondary indexes"));
        assert!(page.contains(">7.2<"), "the time of INSERT");
        assert!(!page.contains("data-workload=\"normal\""));
        assert!(!render(&[source("two")], None)
            .expect("rendered")
            .contains("by INSERT s"));
    }

    #[test]
    fn no_results_are_an_error() {
        assert!(render(&[], None).is_err());
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("report.html");
        assert!(write(&[dir.path().to_path_buf()], &out).is_err());
        assert!(!out.exists());
    }
}
