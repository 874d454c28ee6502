//! The command `peregrine-bench`, as `peregrine bench` starts it.
#![forbid(unsafe_code)]

mod command;

use std::io::Write;
use std::process::ExitCode;

use command::Arguments;
use peregrine_harness::command::reading::read;

fn main() -> ExitCode {
    command::act(&read::<Arguments>().action).unwrap_or_else(|error| {
        // Without standard error the message can't be shown.
        let _ = writeln!(std::io::stderr(), "peregrine bench: {error}");
        ExitCode::FAILURE
    })
}
