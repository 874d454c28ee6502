//! The commands beside this one, which need libraries that the tools for files do without.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use peregrine_harness::error::{HarnessError, PathContext, Result};

/// Returns the command and its arguments for `peregrine help bench …` and `peregrine help prove …`.
pub fn asked_for_help() -> Option<(String, Vec<OsString>)> {
    let mut words = std::env::args_os().skip(1);
    let help = words.next().filter(|word| word == "help")?;
    let action = words.next()?.into_string().ok()?;
    let is_other = matches!(action.as_str(), "bench" | "prove");
    is_other.then(|| (action, std::iter::once(help).chain(words).collect()))
}

/// Becomes the program `peregrine-ACTION`, which is in the same directory as this one.
///
/// # Errors
/// When it is not there, or can't be started.
pub fn become_command(action: &str, arguments: &[OsString]) -> Result<ExitCode> {
    let this = std::env::current_exe().at("cannot find", Path::new("this program"))?;
    let name = format!("peregrine-{action}");
    let program = this.with_file_name(&name);
    if !program.exists() {
        return Err(HarnessError::Usage(format!(
            "{name} is not beside {}: build it as that was built, by cargo build -p {name}",
            this.display()
        )));
    }
    let error = Command::new(&program).args(arguments).exec();
    Err(error).at("cannot start", &program)
}
