//! Opening a database: it puts the layers together, recovers, and starts the threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::checkpoint_source::Source;
use super::Database;
use crate::buffer::PoolWithThreads;
use crate::catalog::{Catalog, PackedDefinition};
use crate::checkpoint::{self, Checkpointer, ReplayPace, ReplayWork, Triggers};
use crate::error::{Error, Result};
use crate::knobs;
use crate::log::{Log, LogOptions, LOG_DIR};
use crate::os::{Os, RealOs};
use crate::planted::{is_planted, PlantedFault};
use crate::recovery::{self, Meta, QuarantineFiles, Recoverable};
use crate::settings::{Options, MOST_SCAN_THREADS};
use crate::store::Store;
use crate::sync::atomic::AtomicUsize;
use crate::sync::Mutex;
use crate::table::ddl::{Numbers, Tables};
use crate::table::prepared_transactions::PreparedTransactions;
use crate::table::registry::{Counted, Registry};
use crate::table::shared::{RowCounters, Scans, Shared};
use crate::txn::TransactionManager;

/// Least size of the buffer pool, of the log between checkpoints, and of the log kept for a transaction.
const LEAST_BYTES: u64 = 1 << 20;

/// The longest recovery target.
const LONGEST_RECOVERY: Duration = Duration::from_secs(3600);

impl Database {
    /// Opens the database in a directory and recovers it: it then has exactly the committed transactions.
    ///
    /// Creates directory and database if they do not exist (see [`Options::create`]).
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::Format`], [`Error::Corrupt`], [`Error::Io`], [`Error::Invalid`] for options out of
    /// range, [`Error::NotFound`] if there is no database and `options` forbid to create one.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Database> {
        Database::open_on(RealOs::new(), dir, options)
    }

    /// As [`Database::open`], on another implementation of the operating system.
    ///
    /// # Errors
    /// As [`Database::open`].
    #[doc(hidden)]
    pub fn open_on(os: Arc<dyn Os>, dir: impl AsRef<Path>, options: Options) -> Result<Database> {
        let dir = dir.as_ref();
        check_options(&options)?;
        if Store::exists(&*os, dir)? {
            let (store, meta) = Store::open(os.clone(), dir)?;
            if meta.is_empty() {
                // Its creation ended before the first checkpoint: it is empty.
                if !options.create && !is_planted(PlantedFault::CreateAnyway) {
                    return Err(no_database(dir));
                }
                return Database::start_new(os, dir, store, options);
            }
            let meta = Meta::decode(&meta, store.path())?;
            return Database::start(os, dir, store, &meta, options);
        }
        if !options.create {
            return Err(no_database(dir));
        }
        check_no_log(&*os, dir)?;
        let store = Store::create(os.clone(), dir)?;
        Database::start_new(os, dir, store, options)
    }

    /// Starts a database whose file is empty.
    fn start_new(os: Arc<dyn Os>, dir: &Path, store: Store, options: Options) -> Result<Database> {
        let mut log_options = LogOptions::new(store.database_id(), store.stop_flag().clone())
            .sized_for(options.log_bytes);
        log_options.background = options.background;
        if let Some(bytes) = options.log_segment_bytes {
            log_options.segment_bytes = bytes;
        }
        QuarantineFiles::new(os.clone(), dir, store.database_id()).clear()?;
        let log = Log::create(os.clone(), &dir.join(LOG_DIR), log_options)?;
        let pool = pool_of(&*os, store, &options)?;
        let parts = Parts::new(pool, log, &options)?;
        let catalog = {
            let _inside = parts.shared.transactions.barrier().enter();
            Catalog::create(&parts.pool)?
        };
        parts.finish(dir, catalog, Numbers::default(), &options, None)
    }

    /// Starts a database from its last checkpoint.
    fn start(
        os: Arc<dyn Os>,
        dir: &Path,
        store: Store,
        meta: &Meta,
        options: Options,
    ) -> Result<Database> {
        let pool = pool_of(&*os, store, &options)?;
        let catalog = Catalog::open(&pool, meta.catalog)?;
        let mut damaged = BTreeMap::new();
        let mut definitions = Vec::new();
        catalog.load(&mut damaged, &mut |definition| {
            definitions.push((definition.id, PackedDefinition::new(&definition)?));
            Ok(())
        })?;
        let store = pool.store();
        let mut log_options = LogOptions::new(store.database_id(), store.stop_flag().clone());
        log_options.background = options.background;
        let files = QuarantineFiles::new(os.clone(), dir, store.database_id());
        let files = Arc::new(files);
        let quarantine = files.load_read()?;
        let log = Log::open(os, &dir.join(LOG_DIR), log_options, meta.log_from())?;
        // Changes nothing before this point, so that files of a newer version stay as they are.
        store.free_lost()?;
        let parts = Parts::new(pool, log, &options)?;
        for (id, packed) in definitions {
            // The counters are in the order of the tables' numbers.
            let counters = meta.counters.binary_search_by_key(&id, |c| c.table);
            let (rows, next_auto) = counters.map_or((0, 1), |at| {
                let counters = &meta.counters[at];
                (counters.rows, counters.next_auto)
            });
            let counted = Counted::new(rows, next_auto);
            parts
                .shared
                .registry
                .add(&packed.unpack()?, packed, counted, None);
        }
        let state = Recoverable {
            meta,
            files,
            quarantine,
            damaged,
            drop_on_open: options.drop_on_open.as_deref(),
        };
        parts.finish(dir, catalog, meta.numbers, &options, Some(state))
    }
}

/// Refuses sizes that are too small.
pub(super) fn check_bytes(name: &str, value: u64) -> Result<()> {
    if value >= LEAST_BYTES {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{name} must be at least {LEAST_BYTES}, not {value}"
    )))
}

/// Refuses a number of scan threads out of range.
pub(super) fn check_scan_threads(threads: usize) -> Result<()> {
    if (1..=MOST_SCAN_THREADS).contains(&threads) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "scan_threads must be from 1 to {MOST_SCAN_THREADS}, not {threads}"
    )))
}

fn no_database(dir: &Path) -> Error {
    Error::NotFound {
        what: "database",
        name: dir.display().to_string(),
    }
}

/// Refuses a directory with a log but without a data file.
///
/// A creation makes the data file first. So the data file has been lost, and the log may be wanted.
fn check_no_log(os: &dyn Os, dir: &Path) -> Result<()> {
    let log = dir.join(LOG_DIR);
    if !os.exists(&log)? || is_planted(PlantedFault::ReplaceLostLog) {
        return Ok(());
    }
    let is_segment = |name: &String| name.parse::<u64>().is_ok();
    let is_there = os.list(&log)?.iter().any(is_segment);
    // Another process may have created both after this one looked for the data file.
    match is_there && !Store::exists(os, dir)? {
        true => Err(Error::Format {
            file: log,
            what: "a log is here, but the data file that it belongs to is missing".into(),
        }),
        false => Ok(()),
    }
}

fn check_options(options: &Options) -> Result<()> {
    check_bytes("pool_bytes", options.pool_bytes as u64)?;
    check_bytes("log_bytes", options.log_bytes)?;
    check_bytes("longest_kept_log", options.longest_kept_log)?;
    check_scan_threads(options.scan_threads)?;
    let all = options.drop_on_open.as_deref() == Some("");
    if all && !is_planted(PlantedFault::DropAllOnOpen) {
        return Err(Error::Invalid(
            "drop_on_open must not be empty: all names begin so".into(),
        ));
    }
    let target = options.recovery_target;
    if !target.is_zero() && !(Duration::from_secs(1)..=LONGEST_RECOVERY).contains(&target) {
        return Err(Error::Invalid(format!(
            "recovery_target must be 0 (none) or from 1 s to {} s, not {} s",
            LONGEST_RECOVERY.as_secs(),
            target.as_secs_f64()
        )));
    }
    Ok(())
}

fn pool_of(os: &dyn Os, mut store: Store, options: &Options) -> Result<Arc<PoolWithThreads>> {
    if options.direct_io && !store.read_directly(os)? {
        return Err(Error::Invalid(
            "the file system has no reads of single KiB past the page cache: direct_io must be off here".into(),
        ));
    }
    if options.unreadable_is_damage {
        store.take_unreadable_for_damage();
    }
    let store = Arc::new(store);
    let pool_bytes = (options.pool_bytes / knobs::pool_part()).max(LEAST_BYTES as usize);
    match options.background {
        true => PoolWithThreads::new(pool_bytes, store),
        false => PoolWithThreads::without_thread(pool_bytes, store),
    }
}

/// The lower layers of a database that is being opened.
struct Parts {
    pool: Arc<PoolWithThreads>,
    shared: Arc<Shared>,
}

impl Parts {
    fn new(pool: Arc<PoolWithThreads>, log: Log, options: &Options) -> Result<Parts> {
        let log = Arc::new(log);
        let transactions = TransactionManager::new(pool.clone(), log.clone(), options.durability);
        transactions.set_lock_wait_timeout(options.lock_wait_timeout);
        transactions.set_longest_kept_log(options.longest_kept_log);
        #[cfg(feature = "broken")]
        transactions.set_broken(match options.broken {
            None => crate::IsolationFault::of_environment()?,
            given => given,
        });
        if let Some(sessions) = &options.sessions {
            transactions.set_sessions(sessions.clone());
        }
        let registry = Arc::new(Registry::new(pool.clone(), options.collations.clone()));
        transactions.set_trees(registry.clone());
        pool.set_freeze(transactions.leaf_freeze());
        let shared = Arc::new(Shared {
            transactions,
            log,
            registry,
            rows: RowCounters::default(),
            prepared: PreparedTransactions::default(),
            scans: Scans::new(options.scan_threads),
            deferred_bytes: AtomicUsize::new(0),
        });
        Ok(Parts { pool, shared })
    }

    /// Recovers, takes a checkpoint if there is room for one, and starts the threads.
    fn finish(
        self,
        dir: &Path,
        catalog: Catalog,
        numbers: Numbers,
        options: &Options,
        state: Option<Recoverable<'_>>,
    ) -> Result<Database> {
        let shared = self.shared.clone();
        let opened = self.recover_and_start(dir, catalog, numbers, options, state);
        if opened.is_err() {
            // Otherwise prepared transactions and threads would keep the layers, and so the files and the directory's
            // lock.
            shared.transactions.shutdown();
            shared.prepared.close();
        }
        opened
    }

    fn recover_and_start(
        self,
        dir: &Path,
        catalog: Catalog,
        mut numbers: Numbers,
        options: &Options,
        state: Option<Recoverable<'_>>,
    ) -> Result<Database> {
        let Parts { pool, shared } = self;
        shared.registry.each_definition(|definition| {
            numbers.pass(definition);
        })?;
        let tables = Arc::new(Tables {
            catalog,
            registry: shared.registry.clone(),
            numbers: numbers.into(),
        });
        let (mut prepared, mut done) = (None, (0, 0));
        let meta = state.as_ref().map(|state| state.meta);
        let mut replay_pace = meta.map_or_else(ReplayPace::default, |meta| meta.replay_pace);
        let began = crate::sync::now();
        if let Some(state) = state {
            let files = state.files.clone();
            let meta = state.meta;
            shared
                .transactions
                .opens_from(meta.checkpoint, meta.log_from());
            let replayed = recovery::recover(&shared.transactions, &tables, &shared.log, state)?;
            tracing::info!(
                transactions = replayed.transactions,
                changes = replayed.changes,
                prepared = replayed.prepared.len(),
                "the log is replayed"
            );
            done = (replayed.bytes, replayed.undo_records);
            prepared = Some((files, replayed));
        }
        if let Some(prefix) = &options.drop_on_open {
            for name in shared.registry.names() {
                if name.starts_with(prefix) {
                    tables.remove_on_open(&shared, &name)?;
                }
            }
        }
        if let Some((files, replayed)) = prepared {
            recovery::restore(&shared, &files, &replayed)?;
        }
        let source = Arc::new(Source::new(shared.clone(), tables.clone(), pool.clone()));
        let store = pool.store();
        let is_behind = match checkpoint::checkpoint(store, &shared.log, &*source) {
            // The log has everything, as between two checkpoints: the next opening recovers the same way. Only if the
            // file requires this program's version: an earlier version would lose what the log has of this one.
            Err(error @ Error::NoSpace { .. })
                if meta.is_some_and(|meta| meta.is_current)
                    && !is_planted(PlantedFault::OpenOnlyWithRoom) =>
            {
                tracing::error!("the checkpoint of an opening failed: {error}");
                true
            }
            done => {
                done?;
                false
            }
        };
        if meta.is_none() {
            // Both headers then have a checkpoint. If one header gets lost, an opening does not take the database for
            // one whose creation never ended.
            checkpoint::checkpoint(store, &shared.log, &*source)?;
        }
        if let Some(meta) = meta {
            let bytes = shared.log.end().0.saturating_sub(meta.log_from().0);
            let work = ReplayWork::done(done.0, done.1, pool.stats().reads).and_reading(bytes);
            replay_pace = replay_pace.measured(work, crate::sync::since(began));
        }
        source.set_replay_pace(replay_pace);
        if !options.background {
            return Ok(Database {
                shared,
                tables,
                checkpointer: None,
                source,
                checkpointing: Mutex::default(),
                dir: dir.to_owned(),
            });
        }
        shared.transactions.start_purge()?;
        let triggers = Triggers {
            log_bytes: options.log_bytes,
            interval: options.checkpoint_interval,
            recovery_target: Some(options.recovery_target).filter(|target| !target.is_zero()),
            replay_pace,
        };
        let store = pool.store().clone();
        let checkpointer =
            Checkpointer::start(store, shared.log.clone(), source.clone(), triggers)?;
        if is_behind {
            checkpointer.request();
        }
        Ok(Database {
            shared,
            tables,
            checkpointer: Some(checkpointer),
            source,
            checkpointing: Mutex::default(),
            dir: dir.to_owned(),
        })
    }
}
