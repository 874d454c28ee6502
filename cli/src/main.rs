//! The `peregrine` command.
#![forbid(unsafe_code)]

mod arguments;
mod check;
mod dump;
mod other;
mod server;

use std::io::Write;
use std::process::ExitCode;

use arguments::{Action, Arguments};
use peregrine_harness::command::reading::read;

fn main() -> ExitCode {
    let result = match read::<Arguments>().action {
        Action::Server(action) => server::run(&action),
        Action::Bench(arguments) => other::become_command("peregrine-bench", &arguments),
        Action::Prove(arguments) => other::become_command("peregrine-prove", &arguments),
        Action::Check(arguments) => check::run(&arguments),
        Action::Dump(arguments) => dump::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        // Without standard error the message can't be shown.
        let _ = writeln!(std::io::stderr(), "peregrine: {error}");
        ExitCode::FAILURE
    })
}
