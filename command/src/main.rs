//! The `peregrine` command.
#![forbid(unsafe_code)]

mod arguments;
mod server;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let result = match arguments::Arguments::parse().action {
        arguments::Action::Server(action) => server::run(&action),
    };
    result.unwrap_or_else(|error| {
        eprintln!("peregrine: {error}");
        ExitCode::FAILURE
    })
}
