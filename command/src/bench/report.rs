//! `peregrine bench report`: results as one page.

use std::process::ExitCode;

use peregrine_suite::error::Result;
use peregrine_suite::report;
use peregrine_suite::server::installation::target_directory;

use crate::arguments::ReportArguments;

/// Writes the page and says where it lies.
///
/// # Errors
/// What the suite says; the caller prints it.
pub fn run(arguments: &ReportArguments) -> Result<ExitCode> {
    let mut dirs = arguments.dirs.clone();
    if dirs.is_empty() {
        dirs.push(target_directory().join("bench/latest"));
    }
    let out = match (&arguments.out, dirs.first()) {
        (Some(out), _) => out.clone(),
        (None, Some(first)) => first.join(report::FILE_NAME),
        (None, None) => report::FILE_NAME.into(),
    };
    report::write(&dirs, &out)?;
    println!("report: {}", out.display());
    Ok(ExitCode::SUCCESS)
}
