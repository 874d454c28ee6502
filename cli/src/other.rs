//! The commands beside this one, which need libraries that the tools for files do without.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use peregrine_harness::error::{HarnessError, PathContext, Result};

use crate::arguments::OtherArguments;

/// Becomes the command of this name, which is in the same directory as this one.
///
/// # Errors
/// When it is not there, or can't be started.
pub fn become_command(name: &str, arguments: &OtherArguments) -> Result<ExitCode> {
    let this = std::env::current_exe().at("find", std::path::Path::new("this program"))?;
    let program = this.with_file_name(name);
    if !program.exists() {
        return Err(HarnessError::Usage(format!(
            "{name} is not beside {}: build it with `make library`",
            this.display()
        )));
    }
    let error = Command::new(&program).args(&arguments.arguments).exec();
    Err(error).at("start", &program)
}
