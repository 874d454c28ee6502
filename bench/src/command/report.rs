//! `peregrine bench report`: results as a page or as tables for a README, and a comparison of two results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use peregrine_bench::report::{
    changes, markdown, Source, {self},
};
use peregrine_bench::results::{csv, Changes, Comparison};
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::server::installation::target_directory;

use crate::command::arguments::ReportArguments;

/// The default name of a page with a comparison.
const COMPARED: &str = "compare.html";

/// Writes the report, and CSV files of the same beside each directory's results.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &ReportArguments) -> Result<ExitCode> {
    let as_page = match arguments.format.as_str() {
        "html" => true,
        "md" => false,
        other => {
            return Err(HarnessError::Usage(format!(
                "unknown format '{other}': html or md"
            )))
        }
    };
    let mut dirs = arguments.dirs.clone();
    dirs.extend(arguments.compare.iter().cloned());
    if dirs.is_empty() {
        dirs.push(target_directory().join("bench/latest"));
    }
    let sources: Result<Vec<Source>> = dirs.iter().map(|dir| Source::read(dir)).collect();
    let sources = sources?;
    for (dir, source) in dirs.iter().zip(&sources) {
        if !source.lines.is_empty() && dir.is_dir() {
            csv::write(dir, &source.lines)?;
        }
    }
    let changes = match (&sources[..], arguments.compare.is_empty()) {
        ([before, after], false) => Some(Changes::between(
            &Comparison::new(&before.lines),
            &Comparison::new(&after.lines),
        )),
        _ => None,
    };
    if !as_page {
        let text = match &changes {
            Some(changes) => changes::markdown(changes),
            None => markdown::render(&sources),
        };
        match &arguments.out {
            Some(out) => std::fs::write(out, text).at("cannot write", out)?,
            None => print!("{text}"),
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(changes) = &changes {
        print!("{}", changes::terminal(changes));
    }
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| usual(&dirs, changes.is_some()));
    let page = report::render(&sources, changes.as_ref())?;
    std::fs::write(&out, page).at("cannot write", &out)?;
    println!("report: {}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the page's default path.
///
/// The page of a comparison does not replace the reports of the two results.
fn usual(dirs: &[PathBuf], is_compared: bool) -> PathBuf {
    let (dir, name) = if is_compared {
        (dirs.last(), COMPARED)
    } else {
        (dirs.first(), report::FILE_NAME)
    };
    dir.map_or(Path::new("."), PathBuf::as_path).join(name)
}
