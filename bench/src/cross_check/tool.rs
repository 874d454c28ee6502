//! Runs a tool and counts its processor time.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::{waitid, Pid, WaitId, WaitIdOptions};

use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::process::Process;

/// The output of a tool, and its processor time.
#[derive(Debug)]
pub(super) struct Ran {
    /// The standard output and the standard error together.
    pub text: String,
    /// Processor time of all its threads, from its start to its end, in seconds.
    pub cpu: f64,
}

/// Returns whether a program exists, as a file or as a name in `PATH`.
pub(super) fn is_there(program: &Path) -> bool {
    if program.components().count() > 1 {
        return program.is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Runs a command to its end, with its output in the file `log`.
///
/// # Errors
/// When the command can't be run or fails, with its last lines of output; [`HarnessError::Interrupted`] when the user
/// wants to stop.
pub(super) fn run(command: &mut Command, log: &Path) -> Result<Ran> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = File::create(log).at("cannot create", log)?;
    let errors = out.try_clone().at("cannot open", log)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        .spawn()
        .at("cannot run", Path::new(&name))?;
    let pid = i32::try_from(child.id()).unwrap_or(0);
    // The kernel shows the processor time of an ended process until its parent reads the exit status.
    let cpu = Pid::from_raw(pid).and_then(|id| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(id), options).is_err_and(|error| error == Errno::INTR) {}
        Process { pid, started: 0 }.cpu_seconds()
    });
    let status = child.wait().at("cannot wait for", Path::new(&name))?;
    if interrupt::requested() {
        return Err(HarnessError::Interrupted);
    }
    let text = std::fs::read(log).at("cannot read", log)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if !status.success() {
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(5)..);
        return Err(HarnessError::Server(format!(
            "{name} ended with {status}: {}",
            last.unwrap_or_default().join(" / ")
        )));
    }
    let cpu = cpu.ok_or_else(|| HarnessError::Server(format!("what {name} took is not known")))?;
    Ok(Ran { text, cpu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_says_and_takes_is_known_when_it_has_ended() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("log");
        let mut busy = Command::new("sh");
        busy.args([
            "-c",
            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done",
        ]);
        let ran = run(&mut busy, &log).expect("run");
        assert_eq!(ran.text, "done\n");
        assert!(ran.cpu > 0.0);
    }

    #[test]
    fn a_tool_that_fails_says_why() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo no such table >&2; exit 3"]);
        let error = run(&mut failing, &dir.path().join("log")).expect_err("failed");
        let told = error.to_string();
        assert!(
            told.contains("no such table") && told.contains('3'),
            "{told}"
        );
    }

    #[test]
    fn programs_are_found_by_path_and_by_name() {
        assert!(is_there(Path::new("sh")));
        assert!(is_there(Path::new("/bin/sh")));
        assert!(!is_there(Path::new("no-such-program-of-anybody")));
        assert!(!is_there(Path::new("/no/such/program")));
    }
}
