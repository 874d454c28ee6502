//! The embedded stores of a measurement session: opened in this process, loaded where new, and read by one session for
//! each client.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::host::Host;
use crate::normal::Generator;
use crate::results::record::Load;
use crate::runner::disk;
use crate::runner::kept::Kept;
use crate::stores::{
    fill, Question, Store, StoreSession, {self},
};
use crate::workload::Workload;
use peregrine_harness::engines::{Datum, Embedded, Engine, RowSink, Session, Value};
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::interrupt;

/// The open stores.
pub(in crate::runner) struct EmbeddedHost {
    /// The directory with a subdirectory for each store.
    dir: PathBuf,
    /// The size of each store's cache, in bytes.
    cache: u64,
    open: BTreeMap<Embedded, Opened>,
}

/// A store and its sessions.
struct Opened {
    store: Box<dyn Store>,
    sessions: Vec<Box<dyn Session>>,
    /// Whether its table was loaded before this measurement session.
    is_loaded: bool,
}

impl EmbeddedHost {
    /// Opens stores under a directory.
    ///
    /// Removes stores that were not `loaded` before, because they may have been written only in part.
    ///
    /// # Errors
    /// The store's errors, or when a directory can't be removed.
    pub fn open(dir: &Path, cache: u64, stores: &[Embedded], loaded: &[Embedded]) -> Result<Self> {
        let mut host = Self {
            dir: dir.to_path_buf(),
            cache,
            open: BTreeMap::new(),
        };
        for store in stores {
            let is_loaded = loaded.contains(store) && host.dir_of(*store).is_dir();
            if !is_loaded {
                remove(&host.dir_of(*store))?;
            }
            host.open_one(*store, is_loaded)?;
        }
        Ok(host)
    }

    fn dir_of(&self, store: Embedded) -> PathBuf {
        self.dir.join(store.name())
    }

    fn open_one(&mut self, store: Embedded, is_loaded: bool) -> Result<()> {
        std::fs::create_dir_all(&self.dir).at("cannot create", &self.dir)?;
        let opened = Opened {
            store: stores::open(store, &self.dir_of(store), self.cache)?,
            sessions: Vec::new(),
            is_loaded,
        };
        self.open.insert(store, opened);
        Ok(())
    }

    fn of(&self, engine: Engine) -> Option<&Opened> {
        match engine {
            Engine::Embedded(store) => self.open.get(&store),
            _ => None,
        }
    }

    /// Returns the stores whose tables are not loaded yet.
    pub fn empty(&self) -> Vec<Embedded> {
        let all = self.open.iter().filter(|(_, opened)| !opened.is_loaded);
        all.map(|(store, _)| *store).collect()
    }

    /// Loads an empty store.
    ///
    /// # Errors
    /// The store's errors, or when rows are missing afterwards; [`HarnessError::Interrupted`].
    pub fn load(
        &mut self,
        workload: &Workload,
        which: Embedded,
        generator: &Generator,
    ) -> Result<Load> {
        let dir = self.dir_of(which);
        let Some(opened) = self.open.get_mut(&which) else {
            return Err(not_open(which.title()));
        };
        let filled = fill(&mut *opened.store, generator, &|| !interrupt::requested())?;
        count(&*opened.store, generator.rows())?;
        opened.is_loaded = true;
        let (log, data): (Vec<PathBuf>, Vec<PathBuf>) =
            disk::all_files(&dir)?.into_iter().partition(|file| {
                let within = file.strip_prefix(&dir).unwrap_or(file);
                opened.store.is_log(within)
            });
        Ok(Load {
            workload: workload.name.clone(),
            engine: Engine::Embedded(which),
            run: 1,
            rows: generator.rows().into(),
            seconds: filled.load.as_secs_f64(),
            load_data_s: filled.load.as_secs_f64(),
            insert_s: None,
            index_s: None,
            settle_s: filled.settle.as_secs_f64(),
            analyze_s: 0.0,
            disk_bytes: disk::allocated_bytes(&data),
            data_bytes: 0,
            index_bytes: 0,
            free_bytes: 0,
            log_bytes: disk::allocated_bytes(&log),
            durability: Engine::Embedded(which).durability().to_owned(),
            cache_bytes: opened.store.cache_bytes(),
            used: Some(opened.store.settings()),
            server_peak_rss_bytes: None,
        })
    }

    /// Closes the stores and removes their files unless `kept`.
    ///
    /// # Errors
    /// When a directory can't be removed.
    pub fn end(&mut self, kept: bool) -> Result<()> {
        self.open.clear();
        if kept {
            Ok(())
        } else {
            remove(&self.dir)
        }
    }
}

impl Host for EmbeddedHost {
    fn sessions(&mut self, engine: Engine, count: usize) -> Result<&mut [Box<dyn Session>]> {
        let opened = match engine {
            Engine::Embedded(store) => self.open.get_mut(&store),
            _ => None,
        };
        let Some(opened) = opened else {
            return Err(not_open(engine.title()));
        };
        while opened.sessions.len() < count {
            let reader = opened.store.reader()?;
            opened.sessions.push(Box::new(StoreSession::new(reader)));
        }
        Ok(&mut opened.sessions[..count])
    }

    fn peak_resident_bytes(&self, _: Engine) -> Option<u64> {
        None
    }

    fn cpu_seconds(&self, _: Engine) -> Option<f64> {
        None
    }

    fn kept(&self, engine: Engine) -> Kept {
        Kept {
            durability: engine.durability().to_owned(),
            cache_bytes: self.of(engine).map_or(0, |of| of.store.cache_bytes()),
        }
    }

    fn load_again(&mut self, _: &Workload, engine: Engine, _: &[usize]) -> Result<()> {
        Err(HarnessError::Usage(format!(
            "{} takes part in table normal only, which is never loaded again",
            engine.title()
        )))
    }

    fn recover(&mut self, engine: Engine) -> Result<Option<String>> {
        if let Engine::Embedded(store) = engine {
            if let Some(opened) = self.open.get_mut(&store) {
                opened.sessions.clear();
            }
        }
        Ok(None)
    }
}

fn not_open(title: &str) -> HarnessError {
    HarnessError::Server(format!("{title} is not open"))
}

fn remove(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.at("cannot remove", dir),
    }
}

/// Checks that a store has as many rows as were loaded.
fn count(store: &dyn Store, rows: u32) -> Result<()> {
    struct Only(Option<i64>);
    impl RowSink for Only {
        fn row(&mut self, values: &[Value<'_>]) {
            let first = values.first().map(|value| Datum::of_answer(*value));
            self.0 = first.and_then(|datum| datum.integer());
        }
    }
    let mut found = Only(None);
    let ids = (0, u32::MAX);
    store
        .reader()?
        .answer(&Question::Count { ids }, &mut found)?;
    if found.0 == Some(rows.into()) {
        Ok(())
    } else {
        Err(HarnessError::Server(format!(
            "{rows} rows were loaded into {}, but it has {}",
            store.title(),
            found.0.map_or_else(|| "none".to_owned(), |n| n.to_string())
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::workload;

    #[test]
    fn what_was_loaded_is_gone_on_with_and_what_was_not_is_loaded_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let (dir, cache) = (dir.path().join("stores"), 8 << 20);
        let generator = Generator::new(1, 200);
        let all = Embedded::ALL;
        let mut host = EmbeddedHost::open(&dir, cache, &all, &[]).expect("opened");
        assert_eq!(host.empty(), all);
        for store in all {
            let load = host.load(&workload(200), store, &generator);
            let load = load.expect("loaded");
            assert!(load.rows == 200 && load.disk_bytes > 0, "{load:?}");
            let sessions = host.sessions(load.engine, 3).expect("sessions");
            assert_eq!(sessions.len(), 3);
        }
        host.end(true).expect("closed");

        let loaded = [Embedded::Lmdb, Embedded::Sqlite, Embedded::Library];
        let mut host = EmbeddedHost::open(&dir, cache, &all, &loaded).expect("opened again");
        assert_eq!(host.empty(), [Embedded::Redb, Embedded::Fjall]);
        for (store, opened) in &host.open {
            let there = count(&*opened.store, 200);
            assert_eq!(there.is_ok(), loaded.contains(store), "{there:?}");
        }
        let again = host.load(&workload(200), Embedded::Redb, &generator);
        again.expect("loaded anew");
        host.end(false).expect("removed");
        assert!(!dir.exists());
        assert!(host.sessions(Engine::Embedded(Embedded::Lmdb), 1).is_err());
    }
}
