//! Fills the tables of a workload.

use crate::runner::kept::Kept;
use crate::runner::loading::{Loading, Place, TableFile};
use crate::workload::{builtin, data_file, Options, Workload};
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::interrupt;

/// Returns a shipped workload with these parameters.
///
/// # Errors
/// When the workload does not have these parameters.
pub(super) fn workload(name: &str, seed: u64, set: &[(&str, i64)]) -> Result<Workload> {
    let (text, source) = builtin::find(name)?;
    let options = Options {
        profile: None,
        set: set
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        seed,
    };
    Workload::read(&text, &source, &options)
}

/// Loads the tables into the engine's schema.
///
/// # Errors
/// When loading fails; [`HarnessError::Interrupted`] when the user wants to stop.
pub(super) fn fill(server: &Hosted, workload: &Workload, engine: Engine, seed: u64) -> Result<()> {
    let data_dir = server.data_dir();
    let dir = data_dir.with_file_name("rows");
    std::fs::create_dir_all(&dir).at("cannot create", &dir)?;
    let mut files = Vec::new();
    for table in &workload.tables {
        let path = dir.join(format!("{}.tsv", table.name));
        let rows = data_file::write(table, seed, &path, &|| !interrupt::requested())?;
        files.push(TableFile { path, rows });
    }
    if interrupt::requested() {
        return Err(HarnessError::Interrupted);
    }
    let loading = Loading {
        workload,
        files: &files,
        place: Place::Private {
            data_dir,
            process: server.process()?,
        },
        kept: Kept {
            durability: engine.durability().to_owned(),
            cache_bytes: server.settings().cache_bytes,
        },
    };
    loading.load(&mut server.connect(None)?, engine)?;
    std::fs::remove_dir_all(&dir).at("cannot remove", &dir)
}
