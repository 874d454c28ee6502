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
use other::become_command;
use peregrine_harness::command::reading::read;

fn main() -> ExitCode {
    let result = match other::asked_for_help() {
        Some((action, arguments)) => become_command(&action, &arguments),
        None => match read::<Arguments>().action {
            Action::Server(action) => server::run(&action),
            Action::Bench(other) => become_command("bench", &other.arguments),
            Action::Prove(other) => become_command("prove", &other.arguments),
            Action::Check(arguments) => check::run(&arguments),
            Action::Dump(arguments) => dump::run(&arguments),
        },
    };
    result.unwrap_or_else(|error| {
        // Without standard error the message can't be shown.
        let _ = writeln!(std::io::stderr(), "peregrine: {error}");
        ExitCode::FAILURE
    })
}
