//! The `peregrine` command.
#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod check;
mod dump;
mod server;

use std::io::Write;
use std::process::ExitCode;

use arguments::{Action, Arguments};

fn main() -> ExitCode {
    let result = match Arguments::read().action {
        Action::Server(action) => server::run(&action),
        Action::Bench(action) => bench::run(&action),
        Action::Check(arguments) => check::run(&arguments),
        Action::Dump(arguments) => dump::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        // Without standard error the message can't be shown.
        let _ = writeln!(std::io::stderr(), "peregrine: {error}");
        ExitCode::FAILURE
    })
}
