//! `peregrine prove schedules`.

use clap::Args;

use peregrine_harness::command::values::seconds;

/// The number of schedules, and their seed.
#[derive(Debug, Args)]
pub struct SchedulesArguments {
    /// Seed of the knobs and of the schedules [default: the time].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Runs this many schedules, or a few more.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    pub schedules: u64,
    /// Starts no schedule after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = seconds)]
    pub duration: f64,
    /// Schedules with the same knobs.
    #[arg(long, value_name = "NUMBER", default_value_t = 40)]
    pub in_process: u64,
    /// Goes on with this process of the seed: an interrupted run prints its number.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub first_process: u64,
    /// Processes at the same time [default: one per core].
    #[arg(long)]
    pub processes: Option<u32>,
    /// Stops at the first failure.
    #[arg(long)]
    pub stop_when_found: bool,
}

/// Schedules of one process.
#[derive(Debug, Args)]
pub struct SchedulesHereArguments {
    /// Seed of the first schedule; the others follow it.
    #[arg(long)]
    pub first: u64,
    /// The number of schedules.
    #[arg(long, default_value_t = 1)]
    pub schedules: u64,
    /// The processor that the process stays on.
    #[arg(long)]
    pub processor: Option<u32>,
}
