//! The workload of results: they hold its file, so that they can be resumed.

use crate::results::record::{Planned, RunSettings};
use crate::workload::{Options, Workload};
use peregrine_harness::error::Result;

/// Parses a workload from the results.
pub(in crate::runner) fn read(planned: &Planned, settings: &RunSettings) -> Result<Workload> {
    let options = Options {
        profile: Some(settings.profile.clone()),
        set: planned.parameters.clone(),
        seed: settings.seed,
    };
    Workload::read(&planned.text, &planned.source, &options)
}
