//! `peregrine bench behaviour`: the behaviour of engines when sessions conflict.

use std::process::ExitCode;

use peregrine_bench::behaviour::{
    findings, matrix, Request, {self},
};
use peregrine_bench::report;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::installation::{find_plugin, target_directory};
use peregrine_harness::server::Installation;

use crate::command::arguments::BehaviourArguments;
use crate::command::run::parsed;
use peregrine_harness::command::directory::new_directory;

/// The engines with transactions, since the scripts test transactions.
const USUAL: [Engine; 3] = [Engine::InnoDb, Engine::MyRocks, Engine::Peregrine];

/// Runs the scripts and prints the matrix; exit status 1 when Peregrine broke a promise.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &BehaviourArguments) -> Result<ExitCode> {
    let target = target_directory();
    let engines = parsed(&arguments.engines, Engine::parse, &USUAL)?;
    let plugin = if engines.contains(&Engine::Peregrine) {
        Some(find_plugin(&target, arguments.mariadbd.plugin.as_deref())?)
    } else {
        None
    };
    let out = new_directory(arguments.out.as_deref(), &target.join("bench"), "behaviour")?;
    std::fs::create_dir_all(&out).at("cannot create", &out)?;
    let request = Request {
        engines,
        deadlocks: arguments.deadlocks,
        dir: out.join("behaviour-server"),
        installation: Installation::find(&target)?,
        plugin,
        server_options: arguments.mariadbd.options.clone(),
    };
    let found = match behaviour::run(&request, |line| eprintln!("playing: {line}")) {
        Err(HarnessError::Interrupted) => return Ok(ExitCode::from(interrupt::EXIT_STATUS)),
        other => other?,
    };
    found.write(&out)?;
    let page = out.join(report::FILE_NAME);
    report::write(std::slice::from_ref(&out), &page)?;
    print!("{}", matrix::render(&found));
    println!("findings: {}", out.join(findings::FILE_NAME).display());
    println!("report:   {}", page.display());
    for column in found.ours() {
        let promised = column.cells.iter().filter(|cell| cell.promised).count();
        let broken: Vec<String> = column
            .broken()
            .map(|cell| format!("{} at {}", cell.anomaly, cell.level.sql()))
            .collect();
        println!(
            "{}: {}: {} of {promised} promises of isolation kept{}; deadlock of two sessions: {}",
            if found.held() { "held" } else { "NOT HELD" },
            column.title,
            promised - broken.len(),
            if broken.is_empty() {
                String::new()
            } else {
                format!(" (not: {})", broken.join(", "))
            },
            matrix::deadlock_text(column)
        );
    }
    Ok(if found.held() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
