//! The report: one HTML file that needs nothing but itself.
//!
//! Facts that stand still (settings, load, size, plans) are rendered into the page by the template;
//! charts and heat map are drawn by the page's own script from the runs, which are in the page as
//! JSON. Charts are drawn by Apache `ECharts`, which lies in `assets/echarts` with its licence.

mod behaviour;
mod data;
mod view;

use std::path::{Path, PathBuf};

use minijinja::value::{Serde, Value};
use minijinja::{context, Environment};

use crate::behaviour::Findings;
use crate::error::{PathContext, Result, SuiteError};
use crate::results::file;
use crate::results::record::Line;

/// The report's file name in an output directory.
pub const FILE_NAME: &str = "report.html";

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");
const CHARTS: &str = include_str!("../../assets/echarts/echarts.common.min.js");

/// The results of one output directory.
#[derive(Debug)]
pub struct Source {
    /// What they are called when there are several: the directory's name.
    pub name: String,
    /// Their lines; none when only behaviour was looked at.
    pub lines: Vec<Line>,
    /// What engines do when sessions meet, if that was looked at.
    pub behaviour: Option<Findings>,
}

/// Reads the results in `dirs`, renders them as one page and writes it to `out`.
///
/// # Errors
/// When a directory has no results, or the page can't be written.
pub fn write(dirs: &[PathBuf], out: &Path) -> Result<()> {
    let mut sources = Vec::new();
    for dir in dirs {
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
        sources.push(Source {
            name,
            lines,
            behaviour,
        });
    }
    let page = render(&sources)?;
    std::fs::write(out, page).at("cannot write", out)
}

/// Renders results as a page.
///
/// # Errors
/// When there are none, or the template fails.
pub fn render(sources: &[Source]) -> Result<String> {
    if sources.is_empty() {
        return Err(SuiteError::Usage(
            "a report needs at least one directory with results".to_owned(),
        ));
    }
    let failed = |error: minijinja::Error| SuiteError::Report(error.to_string());
    let mut environment = Environment::new();
    environment
        .add_template("page.html", PAGE)
        .map_err(failed)?;
    let template = environment.get_template("page.html").map_err(failed)?;
    template
        .render(context! {
            behaviour => Value::from(Serde(behaviour::sections(sources))),
            view => Value::from(Serde(view::View::new(sources))),
            data => Value::from_safe_string(data::embedded(sources)?),
            style => Value::from_safe_string(STYLE.to_owned()),
            script => Value::from_safe_string(SCRIPT.to_owned()),
            charts => Value::from_safe_string(CHARTS.to_owned()),
        })
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn source(name: &str) -> Source {
        Source {
            name: name.to_owned(),
            lines: sample::lines(),
            behaviour: None,
        }
    }

    #[test]
    fn the_page_needs_nothing_but_itself() {
        let page = render(&[source("one")]).expect("rendered");
        assert!(page.len() < 3_000_000, "{}", page.len());
        // Left out: the chart library, whose code holds such strings but fetches nothing by itself.
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
        let page = render(&[hostile, source("other")]).expect("rendered");
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
        let page = render(&[source("one"), other]).expect("rendered");
        assert!(page.contains("cache: "), "the difference is named");
        assert!(!render(&[source("one"), source("two")])
            .expect("rendered")
            .contains("differ in"));
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
            let page = render(&sources).expect("rendered");
            assert!(page.contains("observed transaction vanishes"));
            assert!(page.contains("T1 commit"));
            assert_eq!(page.contains("Loading and size"), charts);
            assert_eq!(page.contains("<script>"), charts);
        }
        assert!(!render(&[source("three")])
            .expect("rendered")
            .contains("When sessions meet"));
    }

    #[test]
    fn no_results_are_an_error() {
        assert!(render(&[]).is_err());
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("report.html");
        assert!(write(&[dir.path().to_path_buf()], &out).is_err());
        assert!(!out.exists());
    }
}
