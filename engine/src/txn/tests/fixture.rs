//! Trees, pool, store and log in a temporary directory, with a transaction manager over them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::buffer::PoolWithThreads;
use crate::error::{Error, Result};
use crate::ids::{TreeId, TxId};
use crate::lock::LockMode;
use crate::log::{Log, LogOptions};
use crate::mvcc::{Header, ReadView};
use crate::os::{Os, RealOs};
use crate::planted::{is_planted, PlantedFault};
use crate::settings::{Durability, Isolation};
use crate::store::Store;
use crate::tree::{LeafImage, Position, Tree};
use crate::txn::{
    Delete, Put, PutMode, RedoBuffer, Replayed, TransactionManager, TreeTransaction, UndoOwner,
};

pub const TREE: TreeId = TreeId(1);
pub const OTHER: TreeId = TreeId(2);

/// The trees, and the reports of purge and rollback.
#[derive(Default)]
pub struct TestTrees {
    pub trees: Mutex<BTreeMap<TreeId, Arc<Tree>>>,
    pub purged: Mutex<Vec<Vec<u8>>>,
    pub rolled_back: Mutex<Vec<Vec<u8>>>,
    /// Whether handling a rollback note fails.
    pub refuse_rollback: AtomicBool,
    /// Whether the data of rollback notes can't be read.
    pub notes_are_damaged: AtomicBool,
    /// Notes that could not be followed.
    pub lost_notes: Mutex<Vec<Vec<u8>>>,
    /// A tree that can't be opened at present.
    pub unopened: Mutex<Option<TreeId>>,
}

impl UndoOwner for TestTrees {
    fn tree(&self, tree: TreeId) -> Result<Option<Arc<Tree>>> {
        if *self.unopened.lock() == Some(tree) {
            if is_planted(PlantedFault::UnopenedIsDropped) {
                return Ok(None);
            }
            return Err(Error::io("read", "data", std::io::ErrorKind::Other.into()));
        }
        Ok(self.trees.lock().get(&tree).cloned())
    }

    fn purged(&self, note: &[u8]) -> Result<()> {
        self.purged.lock().push(note.to_vec());
        Ok(())
    }

    fn rolled_back(&self, note: &[u8]) -> Result<()> {
        if self.refuse_rollback.load(Ordering::Relaxed) {
            return Err(Error::NoSpace {
                path: "data".into(),
            });
        }
        if self.notes_are_damaged.load(Ordering::Relaxed) {
            return Err(Error::Corrupt {
                file: "data".into(),
                offset: 0,
                page: None,
                what: "the checksum is wrong".into(),
            });
        }
        self.rolled_back.lock().push(note.to_vec());
        Ok(())
    }

    fn note_is_lost(&self, note: &[u8], _error: &Error) {
        self.lost_notes.lock().push(note.to_vec());
    }

    fn compensate(
        &self,
        tree: TreeId,
        key: &[u8],
        previous: Option<&[u8]>,
        redo: &mut RedoBuffer,
    ) -> Result<Replayed> {
        let table = crate::ids::TableId(tree.0);
        match previous {
            Some(payload) => redo.put(table, key, &[payload])?,
            None => redo.delete(table, key),
        }
        Ok(Replayed::Again)
    }
}

pub struct Fixture {
    pub transactions: Arc<TransactionManager>,
    pub trees: Arc<TestTrees>,
    pub tree: Arc<Tree>,
    pub other: Arc<Tree>,
    pub pool: Arc<PoolWithThreads>,
    pub store: Arc<Store>,
    pub log: Arc<Log>,
    pub dir: tempfile::TempDir,
}

impl Fixture {
    /// Two empty trees over a pool of 8 MiB.
    pub fn new() -> Fixture {
        Fixture::with_pool(8 << 20)
    }

    pub fn with_pool(bytes: usize) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        Fixture::on(dir, RealOs::new(), &path, bytes)
    }

    /// Has the data in `path` of `data`, and the log in `dir`.
    pub fn on(dir: tempfile::TempDir, data: Arc<dyn Os>, path: &Path, bytes: usize) -> Fixture {
        let store = Arc::new(Store::create(data, path).unwrap());
        std::fs::create_dir_all(dir.path().join("db")).unwrap();
        let log = dir.path().join("db/log");
        let log = Log::create(RealOs::new(), &log, log_options(&store)).unwrap();
        let pool = PoolWithThreads::new(bytes, store.clone()).unwrap();
        let tree = Arc::new(Tree::create(&pool, TREE).unwrap());
        let other = Arc::new(Tree::create(&pool, OTHER).unwrap());
        Fixture::assemble(dir, store, Arc::new(log), pool, tree, other)
    }

    pub fn assemble(
        dir: tempfile::TempDir,
        store: Arc<Store>,
        log: Arc<Log>,
        pool: Arc<PoolWithThreads>,
        tree: Arc<Tree>,
        other: Arc<Tree>,
    ) -> Fixture {
        let trees = Arc::new(TestTrees::default());
        trees.trees.lock().insert(TREE, tree.clone());
        trees.trees.lock().insert(OTHER, other.clone());
        let transactions = TransactionManager::new(pool.clone(), log.clone(), Durability::Later);
        transactions.set_trees(trees.clone());
        // No wait of a test takes so long, even on a slow machine: a waiter that does was never woken.
        transactions.set_lock_wait_timeout(Duration::from_secs(600));
        pool.set_freeze(transactions.leaf_freeze());
        Fixture {
            transactions,
            trees,
            tree,
            other,
            pool,
            store,
            log,
            dir,
        }
    }

    pub fn begin(&self, isolation: Isolation) -> TreeTransaction {
        self.transactions.begin(isolation)
    }

    /// Puts the given rows in one transaction, and commits.
    pub fn load(&self, rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) {
        let mut txn = self.begin(Isolation::ReadCommitted);
        for (key, payload) in rows {
            put(&mut txn, &self.tree, &key, &payload, PutMode::Upsert).unwrap();
        }
        txn.commit().unwrap();
    }

    /// Purges until there is nothing left to purge.
    pub fn purge(&self) {
        while self.transactions.purge_step().unwrap() {}
    }

    /// Every record of a tree, with its header.
    pub fn records(&self, tree: &Tree) -> Vec<(Vec<u8>, Header, Vec<u8>)> {
        let mut records = Vec::new();
        tree.verify(&mut |key, value| {
            let (header, payload) = Header::decode(value)?;
            records.push((key.to_vec(), header, payload.to_vec()));
            Ok(())
        })
        .unwrap();
        records
    }
}

pub fn log_options(store: &Store) -> LogOptions {
    LogOptions {
        database_id: store.database_id(),
        segment_bytes: 1 << 20,
        stop: store.stop_flag().clone(),
        background: true,
    }
}

/// One attempt to put, without waiting.
pub fn try_put(
    txn: &mut TreeTransaction,
    tree: &Tree,
    key: &[u8],
    payload: &[u8],
    mode: PutMode,
) -> Result<Put> {
    let transactions = txn.transactions().clone();
    let inside = transactions.barrier().enter();
    txn.try_put(&inside, tree, key, payload, mode, None)
}

/// One attempt to delete, without waiting.
pub fn try_delete(txn: &mut TreeTransaction, tree: &Tree, key: &[u8]) -> Result<Delete> {
    let transactions = txn.transactions().clone();
    let inside = transactions.barrier().enter();
    txn.try_delete(&inside, tree, key, None)
}

/// Puts and logs the change; waits as needed. Returns whether a row was replaced.
pub fn put(
    txn: &mut TreeTransaction,
    tree: &Tree,
    key: &[u8],
    payload: &[u8],
    mode: PutMode,
) -> Result<bool> {
    let transactions = txn.transactions().clone();
    loop {
        let inside = transactions.barrier().enter();
        match txn.try_put(&inside, tree, key, payload, mode, None)? {
            Put::Done { replaced } => {
                let table = crate::ids::TableId(tree.id().0);
                txn.log_put(&inside, table, key, &[payload])?;
                txn.log_full_part(&inside)?;
                return Ok(replaced);
            }
            Put::Duplicate => return Err(Error::Duplicate { index: 0 }),
            Put::Missing => return Err(missing()),
            Put::Changed => return Err(Error::WriteConflict),
            Put::Conflict(conflict) => {
                drop(inside);
                txn.wait(&conflict)?;
            }
        }
    }
}

/// Deletes and logs the change; waits as needed.
pub fn delete(txn: &mut TreeTransaction, tree: &Tree, key: &[u8]) -> Result<()> {
    let transactions = txn.transactions().clone();
    loop {
        let inside = transactions.barrier().enter();
        match txn.try_delete(&inside, tree, key, None)? {
            Delete::Done => {
                txn.log_delete(&inside, crate::ids::TableId(tree.id().0), key)?;
                return txn.log_full_part(&inside);
            }
            Delete::Missing => return Err(missing()),
            Delete::Changed => return Err(Error::WriteConflict),
            Delete::Conflict(conflict) => {
                drop(inside);
                txn.wait(&conflict)?;
            }
        }
    }
}

fn missing() -> Error {
    Error::NotFound {
        what: "row",
        name: String::new(),
    }
}

/// Reads a row by the transaction's own view.
pub fn get(txn: &mut TreeTransaction, tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
    let view = txn.view();
    txn.read(tree, key, &view, <[u8]>::to_vec).unwrap()
}

/// Reads a row by a locking read.
pub fn get_locked(txn: &mut TreeTransaction, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
    txn.lock_row(tree, key, LockMode::Exclusive)?;
    let view = txn.latest_view();
    txn.read(tree, key, &view, <[u8]>::to_vec)
}

/// Reads every row that a view sees, through leaf images.
pub fn scan(txn: &TreeTransaction, tree: &Tree, view: &ReadView) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows = BTreeMap::new();
    let mut image = LeafImage::new();
    let mut buf = Vec::new();
    let mut copied = txn.versions().before_copy();
    let mut more = tree.copy_leaf(Position::First, &mut image).unwrap();
    while more {
        let all_seen = TxId(image.max_txid()) < view.low;
        for i in 0..image.count() {
            let value = image.value(i);
            let payload = if all_seen {
                crate::mvcc::live_payload(value).unwrap()
            } else {
                let key = |key: &mut Vec<u8>| image.key(i, key);
                txn.versions()
                    .visible(view, value, &mut buf, copied, tree, key)
                    .unwrap()
            };
            if let Some(payload) = payload {
                let mut key = Vec::new();
                image.key(i, &mut key);
                rows.insert(key, payload.to_vec());
            }
        }
        copied = txn.versions().before_copy();
        more = tree.copy_next_leaf(&mut image).unwrap();
    }
    rows
}
