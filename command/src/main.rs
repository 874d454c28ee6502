//! The `peregrine` command.
#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod server;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Action, Arguments};

fn main() -> ExitCode {
    let result = match Arguments::parse().action {
        Action::Server(action) => server::run(&action),
        Action::Bench(action) => bench::run(&action),
    };
    result.unwrap_or_else(|error| {
        eprintln!("peregrine: {error}");
        ExitCode::FAILURE
    })
}
