//! The command line that repeats a run: every result contains it.

use std::collections::BTreeMap;

use super::planned::read;
use crate::results::record::{Planned, RunSettings};
use crate::runner::Profile;

/// Returns the command line that runs `settings` again.
#[must_use]
pub fn command(settings: &RunSettings) -> String {
    let list = |names: Vec<String>| names.join(",");
    let engines = settings.engines.iter().map(|e| e.name().to_owned());
    let server = match &settings.server {
        Some(server) => format!(" --url '{}'", server.url),
        None => format!(
            " --cache {} --placement {}",
            settings.cache_bytes,
            settings.placement.name()
        ),
    };
    let mut command = format!(
        "peregrine bench run{server} --workload {} --profile {} --engines {} --threads {} --seed {} \
         --charset {} --protocol {}",
        list(settings.workloads.iter().map(|w| w.source.clone()).collect()),
        settings.profile,
        list(engines.collect()),
        list(settings.threads.iter().map(u32::to_string).collect()),
        settings.seed,
        settings.charset,
        match settings.protocols[..] {
            [only] => only.name(),
            _ => "both",
        }
    );
    let timing = (settings.warm_up_s, settings.run_s, settings.runs);
    let usual = Profile::parse(&settings.profile).map(|p| (p.warm_up_s, p.run_s, p.runs));
    if usual.ok() != Some(timing) {
        command.push_str(&format!(
            " --warm-up {} --run-time {} --runs {}",
            timing.0, timing.1, timing.2
        ));
    }
    if let Some(percent) = settings.steady_percent {
        command.push_str(&format!(" --steady {percent}"));
    }
    if let Some(rate) = settings.rate {
        command.push_str(&format!(" --rate {rate}"));
    }
    if let Some(bytes) = settings.memory_limit_bytes {
        command.push_str(&format!(" --memory-limit {bytes}"));
    }
    let mut set = BTreeMap::new();
    let mut queries = Vec::new();
    for planned in &settings.workloads {
        // Leaves out values that the workload's file sets itself.
        let usual = Planned {
            parameters: BTreeMap::new(),
            ..planned.clone()
        };
        let Ok(usual) = read(&usual, settings) else {
            continue;
        };
        let other = planned.parameters.iter();
        set.extend(other.filter(|(name, value)| usual.parameters.get(*name) != Some(*value)));
        if usual.cells().len() > planned.cells.len() {
            queries.extend(planned.cells.iter().cloned());
        }
    }
    for (name, value) in set {
        command.push_str(&format!(" --set {name}={value}"));
    }
    if !queries.is_empty() {
        command.push_str(&format!(" --queries {}", list(queries)));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::Elsewhere;
    use crate::results::sample;

    #[test]
    fn the_command_names_every_setting_that_makes_runs_comparable() {
        let command = command(&RunSettings {
            steady_percent: Some(2.5),
            rate: Some(1500.0),
            memory_limit_bytes: Some(1 << 29),
            ..sample::settings()
        });
        for part in [
            "--profile quick",
            "--engines innodb,peregrine",
            "--queries READ_PK_POINT,READ_FTS",
            "--threads 1,4",
            "--workload normal",
            "--set rows=1000",
            "--seed 1",
            "--cache 134217728",
            "--charset latin1",
            "--protocol text",
            "--warm-up 0.01 --run-time 0.02 --runs 3",
            "--steady 2.5 --rate 1500 --memory-limit 536870912",
        ] {
            assert!(command.contains(part), "{part}: {command}");
        }
    }

    #[test]
    fn of_another_server_it_names_the_url_and_not_what_only_a_private_one_takes() {
        let mut settings = sample::settings();
        settings.server = Some(Elsewhere {
            url: "mysql://a@b:3306/".to_owned(),
            transactional: Vec::new(),
        });
        let command = command(&settings);
        assert!(command.contains("--url 'mysql://a@b:3306/'"), "{command}");
        assert!(!command.contains("--cache"), "{command}");
    }
}
