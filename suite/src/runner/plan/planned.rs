//! A workload as results have it planned: they hold its file, so that they can be gone on with.

use crate::error::Result;
use crate::results::record::{Planned, RunSettings};
use crate::workload::{Options, Workload};

/// The workload as it is planned.
pub(in crate::runner) fn read(planned: &Planned, settings: &RunSettings) -> Result<Workload> {
    let options = Options {
        profile: Some(settings.profile.clone()),
        set: planned.parameters.clone(),
        seed: settings.seed,
    };
    Workload::read(&planned.text, &planned.source, &options)
}
