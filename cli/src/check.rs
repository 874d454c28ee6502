//! `peregrine check`: verification of the files of a closed database.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use peregrine::check::Report;
use peregrine_harness::error::{HarnessError, PathContext, Result};

use crate::arguments::CheckArguments;

/// Verifies and prints counts and problems; exit status 1 when there are problems.
///
/// # Errors
/// When the database can't be opened, e.g. because it is in use, or when nothing can be printed.
pub fn run(arguments: &CheckArguments) -> Result<ExitCode> {
    let report = verify(&arguments.dir)?;
    let mut out = std::io::stdout().lock();
    print(&report, &mut out).at("cannot write", Path::new("standard output"))?;
    Ok(match report.is_sound() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn print(report: &Report, out: &mut dyn Write) -> std::io::Result<()> {
    for table in &report.tables {
        writeln!(out, "{}: {} rows", table.name, table.rows)?;
        for (index, entries) in &table.indexes {
            writeln!(out, "  index {index}: {entries} entries")?;
        }
        if (table.deleted, table.unused_chunks) != (0, 0) {
            writeln!(
                out,
                "  for purge to take: {} rows and entries marked as deleted, {} parts of large values of no row",
                table.deleted, table.unused_chunks
            )?;
        }
    }
    writeln!(
        out,
        "{} tables, {} pages, {} of them unused, {} log records since the last checkpoint, {} entries in flight at it",
        report.tables.len(),
        report.pages,
        report.unused_pages,
        report.log_records,
        report.in_flight
    )?;
    for note in &report.notes {
        writeln!(out, "note: {note} (the other header is whole, and counts)")?;
    }
    if report.is_sound() {
        writeln!(out, "no problem found")?;
    }
    for problem in &report.problems {
        writeln!(out, "problem: {problem}")?;
    }
    if report.more_problems > 0 {
        writeln!(out, "and {} problems more", report.more_problems)?;
    }
    out.flush()
}

/// Verifies the database in `dir`.
///
/// # Errors
/// When it can't be opened.
pub fn verify(dir: &Path) -> Result<Report> {
    let mut report = Report::default();
    peregrine::check::check(dir, &mut report)
        .map_err(|error| HarnessError::Server(format!("{}: {error}", dir.display())))?;
    Ok(report)
}
