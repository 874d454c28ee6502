//! Facts about a process, read from `/proc`.
//!
//! A process is identified by its id *and* its start time, because the system reuses ids. A signal must never go to
//! another process with a stale id.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

/// One process, for as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The process id.
    pub pid: i32,
    /// Its start, in clock ticks since the machine's start.
    pub started: u64,
}

impl Process {
    /// Returns the living process with this id, if there is one.
    #[must_use]
    pub fn with_id(pid: i32) -> Option<Self> {
        let (state, started) = read_stat(pid)?;
        (state != 'Z' && state != 'X').then_some(Self { pid, started })
    }

    /// This process.
    #[must_use]
    pub fn current() -> Option<Self> {
        Self::with_id(i32::try_from(std::process::id()).ok()?)
    }

    /// Returns whether it is still alive; a zombie is not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Self::with_id(self.pid) == Some(*self)
    }

    /// Sends a signal, unless the process has ended.
    pub fn signal(&self, signal: Signal) {
        if let (true, Some(pid)) = (self.is_alive(), Pid::from_raw(self.pid)) {
            // The process may end between the check and the signal; then there is nothing to do.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits until the process has ended; returns false when `limit` passes first.
    #[must_use]
    pub fn wait_until_gone(&self, limit: Duration) -> bool {
        let begun = Instant::now();
        while self.is_alive() {
            if begun.elapsed() > limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// Its peak resident memory, in bytes (`VmHWM`).
    #[must_use]
    pub fn peak_resident_bytes(&self) -> Option<u64> {
        let text = std::fs::read_to_string(self.proc_file("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    }

    /// Processor time used so far, in clock ticks (user and system).
    #[must_use]
    pub fn cpu_ticks(&self) -> Option<u64> {
        let fields = stat_fields(self.pid)?;
        let user: u64 = fields.get(11)?.parse().ok()?;
        let system: u64 = fields.get(12)?.parse().ok()?;
        Some(user + system)
    }

    /// Processor time used so far, in seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> Option<f64> {
        let ticks = u32::try_from(self.cpu_ticks()?).ok()?;
        let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
        Some(f64::from(ticks) / f64::from(per_second))
    }

    /// Bytes that it has written to the disk so far.
    #[must_use]
    pub fn written_bytes(&self) -> Option<u64> {
        let text = std::fs::read_to_string(self.proc_file("io")).ok()?;
        let mut lines = text.lines();
        let written = lines.find_map(|line| line.strip_prefix("write_bytes:"))?;
        written.trim().parse().ok()
    }

    fn proc_file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }
}

/// Returns the fields of `/proc/PID/stat` after the program's name, which may contain spaces and brackets.
///
/// The first field is the state.
fn stat_fields(pid: i32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(')')?;
    Some(after_name.split_whitespace().map(str::to_owned).collect())
}

fn read_stat(pid: i32) -> Option<(char, u64)> {
    let fields = stat_fields(pid)?;
    let state = fields.first()?.chars().next()?;
    let started = fields.get(19)?.parse().ok()?;
    Some((state, started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_uses_memory() {
        let own = Process::current().expect("this process");
        assert!(own.is_alive());
        assert!(own.peak_resident_bytes().expect("VmHWM") > 100_000);
        assert!(own.cpu_ticks().is_some());
        assert!(own.written_bytes().is_some());
    }

    #[test]
    fn a_reused_id_is_not_the_same_process() {
        let mut own = Process::current().expect("this process");
        own.started += 1;
        assert!(!own.is_alive());
        // This would kill the test if it reached the process.
        own.signal(Signal::KILL);
    }

    #[test]
    fn an_ended_child_is_gone_even_before_it_is_reaped() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let pid = i32::try_from(child.id()).expect("a process id");
        if let Some(process) = Process::with_id(pid) {
            assert!(process.wait_until_gone(Duration::from_secs(60)));
        }
        assert_eq!(Process::with_id(pid), None);
        child.wait().expect("its status");
    }
}
