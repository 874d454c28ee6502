//! `peregrine bench check-workload`: errors in workload files.

use std::path::Path;
use std::process::ExitCode;

use peregrine_bench::workload::{
    Mode, Workload, {self},
};
use peregrine_harness::error::{PathContext, Result};

use crate::command::arguments::WorkloadArguments;

/// Checks the files; exit status 1 when one has an error.
///
/// # Errors
/// When a file can't be read.
pub fn run(arguments: &WorkloadArguments) -> Result<ExitCode> {
    let mut all_right = true;
    for file in &arguments.files {
        let text = std::fs::read_to_string(file).at("cannot read", file)?;
        match workload::check(&text, &file.display().to_string()) {
            Ok(workload) => println!("{}", summary(file, &workload)),
            Err(problems) => {
                all_right = false;
                eprintln!("{problems}");
            }
        }
    }
    Ok(if all_right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn summary(file: &Path, workload: &Workload) -> String {
    let tables: Vec<&str> = workload
        .tables
        .iter()
        .map(|table| table.name.as_str())
        .collect();
    let beside: Vec<&str> = workload
        .transactions
        .iter()
        .filter(|transaction| transaction.beside.is_some())
        .map(|transaction| transaction.name.as_str())
        .collect();
    let measured: Vec<&str> = workload
        .transactions
        .iter()
        .map(|transaction| transaction.name.as_str())
        .filter(|name| !beside.contains(name))
        .collect();
    format!(
        "{}: workload {} is right: tables {}; {} {}{}",
        file.display(),
        workload.name,
        tables.join(", "),
        match workload.mode {
            Mode::Each => "each by itself:",
            Mode::Mix => "mixed:",
            Mode::Once => "each by itself, once a run:",
            Mode::Load => "loaded in every way",
        },
        measured.join(", "),
        if beside.is_empty() {
            String::new()
        } else {
            format!("; beside them: {}", beside.join(", "))
        }
    )
}
