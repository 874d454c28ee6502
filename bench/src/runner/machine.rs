//! The machine of the benchmark.

use std::path::Path;
use std::process::Command;

use crate::results::record::Machine;

/// Describes this machine; `data` is a directory on the disk of the data.
#[must_use]
pub fn describe(data: &Path) -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let unknown = || "unknown".to_owned();
    let cpu = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| {
            line.strip_prefix("model name")
                .and_then(|rest| rest.split_once(':'))
                .map(|(_, name)| name.trim().to_owned())
        })
        .unwrap_or_else(unknown);
    let memory_bytes = read("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024);
    let system = read("/etc/os-release")
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or_else(unknown, |name| name.trim_matches('"').to_owned());
    let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
    let cores = std::thread::available_parallelism()
        .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX));
    Machine {
        cpu,
        cores,
        memory_bytes,
        kernel: if kernel.is_empty() { unknown() } else { kernel },
        system,
        file_system: file_system(data).unwrap_or_else(unknown),
    }
}

fn file_system(data: &Path) -> Option<String> {
    let output = Command::new("stat")
        .args(["--file-system", "--format=%T"])
        .arg(data)
        .output()
        .ok()?;
    let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !name.is_empty()).then_some(name)
}
