//! `peregrine bench schedules`.

use clap::Args;

use super::values::seconds;

/// How many schedules are played.
#[derive(Debug, Args)]
pub struct SchedulesArguments {
    /// Seed of the knobs and of the schedules [default: the time].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Plays so many, or a few more.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    pub schedules: u64,
    /// Begins nothing new after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = seconds)]
    pub duration: f64,
    /// Schedules with the same knobs.
    #[arg(long, value_name = "NUMBER", default_value_t = 40)]
    pub in_process: u64,
    /// Processes beside each other [default: one a core].
    #[arg(long)]
    pub processes: Option<u32>,
    /// Stops at the first failure.
    #[arg(long)]
    pub stop_when_found: bool,
}

/// Schedules of one process.
#[derive(Debug, Args)]
pub struct SchedulesHereArguments {
    /// The seed of the first; the others follow it.
    #[arg(long)]
    pub first: u64,
    /// How many.
    #[arg(long, default_value_t = 1)]
    pub schedules: u64,
    /// Stays on this processor.
    #[arg(long)]
    pub processor: Option<u32>,
}
