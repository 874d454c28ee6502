//! Commits in two halves: the first half makes the commit visible, and the second makes it durable for any caller.

use std::sync::Arc;

use peregrine::os::simulated::{Loss, SimulatedOs};
use peregrine::{Database, Durability, Isolation, Options, Table, Transaction, Value, Xid};

use crate::tables::schemas::numbered;

struct World {
    os: SimulatedOs,
    db: Database,
    table: Arc<Table>,
}

impl World {
    /// Only commits sync the log.
    fn on(os: SimulatedOs) -> World {
        let options = Options {
            background: false,
            ..Options::default()
        };
        let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
        let table = match db.table("t") {
            Ok(table) => table,
            Err(_) => db.create_table("t", &numbered()).unwrap(),
        };
        World { os, db, table }
    }

    fn new() -> World {
        World::on(SimulatedOs::new(1))
    }

    fn insert(&self, txn: &mut Transaction, id: u32) {
        let row = [id, id, id].map(Value::from);
        txn.insert(&self.table, &row).unwrap();
    }

    /// Begins a transaction with row 1, and makes its commit visible without waiting until it is durable.
    fn half_committed(&self) -> Transaction {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        self.insert(&mut txn, 1);
        txn.commit_visibly().unwrap();
        txn
    }

    /// Returns those of the ids that have a row after a power loss.
    fn after_power_loss(&self, ids: &[u32]) -> Vec<u32> {
        let after = World::on(self.os.crash_with(Loss::Everything, 1));
        let mut txn = after.db.begin(Isolation::ReadCommitted);
        let there = |id: &u32| {
            let key = after.table.encode_key(0, &[(*id).into()]).unwrap();
            txn.get(&after.table, &key, |_| ()).unwrap().is_some()
        };
        ids.iter().copied().filter(there).collect()
    }
}

#[test]
fn the_first_half_waits_for_nothing() {
    let world = World::new();
    let txn = world.half_committed();
    assert!(txn.is_committed_visibly());
    assert!(world.after_power_loss(&[1]).is_empty());
}

#[test]
fn a_commit_waits_for_its_first_half() {
    let world = World::new();
    let mut txn = world.half_committed();
    txn.commit().unwrap();
    assert!(!txn.is_committed_visibly());
    assert_eq!(world.after_power_loss(&[1]), [1]);
}

/// The second transaction changes nothing, so its own commit writes nothing to the log.
#[test]
fn a_commit_waits_for_one_before_it_in_the_same_object() {
    let world = World::new();
    let mut txn = world.half_committed();
    world.insert(&mut txn, 2);
    txn.rollback().unwrap();
    let key = world.table.encode_key(0, &[1u32.into()]).unwrap();
    txn.get(&world.table, &key, |_| ()).unwrap().unwrap();
    txn.commit().unwrap();
    assert_eq!(world.after_power_loss(&[1, 2]), [1]);
}

#[test]
fn a_commit_after_a_first_half_commits_what_was_done_since() {
    let world = World::new();
    let mut txn = world.half_committed();
    world.insert(&mut txn, 2);
    txn.commit().unwrap();
    assert_eq!(world.after_power_loss(&[1, 2]), [1, 2]);
}

#[test]
fn the_second_half_waits_though_the_object_was_used_meanwhile() {
    let world = World::new();
    let mut txn = world.half_committed();
    world.insert(&mut txn, 2);
    txn.rollback().unwrap();
    txn.finish_commit(true).unwrap();
    assert_eq!(world.after_power_loss(&[1, 2]), [1]);

    let world = World::new();
    let mut txn = world.half_committed();
    world.insert(&mut txn, 2);
    let name = Xid::new(1, b"later", b"").unwrap();
    txn.prepare_with(&name, Durability::Later).unwrap();
    txn.detach();
    txn.finish_commit(true).unwrap();
    assert_eq!(world.after_power_loss(&[1, 2]), [1]);
}
