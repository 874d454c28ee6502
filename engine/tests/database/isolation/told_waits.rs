//! Reports to a program about the waits of its sessions.
//!
//! In these tests the program commits sessions in the order of their numbers, as a replica does.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use peregrine::{
    Column, ColumnType, Database, Error, Isolation, Key, KillHandle, Options, RowLock, Sessions,
    Table, TableSchema, ToldWaits, Transaction, Value, Waiting,
};

use crate::tables::schemas::options;

/// Receives the reported waits, as waiter and holder.
struct InOrder(Mutex<Sender<(u64, u64)>>);

impl Sessions for InOrder {
    fn told_waits(&self, _: u64) -> ToldWaits {
        ToldWaits::InQueue
    }

    fn waits_for(&self, waiter: u64, holder: u64) -> bool {
        let _nobody_listens = self.0.lock().unwrap().send((waiter, holder));
        waiter < holder
    }
}

struct World {
    db: Database,
    table: Arc<Table>,
    told: Mutex<Receiver<(u64, u64)>>,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let (sender, told) = channel();
        World::of(Arc::new(InOrder(Mutex::new(sender))), told)
    }

    fn of(sessions: Arc<dyn Sessions>, told: Receiver<(u64, u64)>) -> World {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            sessions: Some(sessions),
            ..options()
        };
        let db = Database::open(dir.path().join("db"), options).unwrap();
        let int = ColumnType::Int {
            bytes: 8,
            signed: true,
        };
        let schema = TableSchema {
            columns: vec![Column::new("id", int), Column::new("v", int)],
            primary: Some(Key::new(&[0])),
            indexes: vec![],
            user: vec![],
        };
        let table = db.create_table("t", &schema).unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        for id in 0..10 {
            txn.insert(&table, &[Value::Int(id), Value::Int(0)])
                .unwrap();
        }
        txn.commit().unwrap();
        World {
            db,
            table,
            told: Mutex::new(told),
            _dir: dir,
        }
    }

    fn begin(&self, session: u64) -> Transaction {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        txn.set_session(session);
        txn.set_lock_wait_timeout(Duration::from_secs(20));
        txn
    }

    fn change(&self, txn: &mut Transaction, id: i64) -> Result<(), Error> {
        let key = self.table.encode_key(0, &[Value::Int(id)]).unwrap();
        txn.update(&self.table, &key, &[Value::Int(id), Value::Int(1)])
            .map(|_| ())
    }

    /// Waits until a pair has been reported; false when the wait has ended without a report.
    fn is_told(&self, waiter: u64, holder: u64, ended: impl Fn() -> bool) -> bool {
        let begin = Instant::now();
        let told = self.told.lock().unwrap();
        loop {
            match told.recv_timeout(Duration::from_millis(10)) {
                Ok(pair) if pair == (waiter, holder) => return true,
                Ok(_) => {}
                Err(_) if ended() => return false,
                Err(_) => assert!(begin.elapsed() < Duration::from_secs(120)),
            }
        }
    }
}

#[test]
fn a_later_transaction_gives_way_to_one_that_commits_before_it() {
    let world = World::new();
    let mut later = world.begin(2);
    world.change(&mut later, 1).unwrap();
    std::thread::scope(|scope| {
        let earlier = scope.spawn(|| {
            let mut earlier = world.begin(1);
            world.change(&mut earlier, 1)?;
            earlier.commit()
        });
        // The later transaction would commit only after the earlier one, so it gives way.
        assert!(world.is_told(1, 2, || earlier.is_finished()));
        later.rollback().unwrap();
        earlier.join().unwrap().unwrap();
    });
}

#[test]
fn who_will_have_the_row_before_is_told_as_well() {
    let world = World::new();
    let mut first = world.begin(3);
    world.change(&mut first, 1).unwrap();
    std::thread::scope(|scope| {
        let later = scope.spawn(|| {
            let mut later = world.begin(2);
            world.change(&mut later, 1)?;
            later.commit()
        });
        assert!(world.is_told(2, 3, || later.is_finished()));
        let earlier = scope.spawn(|| {
            let mut earlier = world.begin(1);
            world.change(&mut earlier, 1)?;
            earlier.commit()
        });
        assert!(world.is_told(1, 2, || earlier.is_finished()));
        first.rollback().unwrap();
        later.join().unwrap().unwrap();
        earlier.join().unwrap().unwrap();
    });
}

#[test]
fn two_that_share_a_row_do_not_wait_for_each_other() {
    let world = World::new();
    let mut first = world.begin(3);
    world.change(&mut first, 1).unwrap();
    let key = world.table.encode_key(0, &[Value::Int(1)]).unwrap();
    std::thread::scope(|scope| {
        let read = |session| {
            let mut txn = world.begin(session);
            txn.get_locked(&world.table, &key, RowLock::Shared, |_| ())?;
            txn.commit()
        };
        let later = scope.spawn(move || read(2));
        assert!(world.is_told(2, 3, || later.is_finished()));
        let earlier = scope.spawn(move || read(1));
        assert!(world.is_told(1, 3, || earlier.is_finished()));
        first.rollback().unwrap();
        later.join().unwrap().unwrap();
        earlier.join().unwrap().unwrap();
    });
    assert!(!world.is_told(1, 2, || true));
}

#[test]
fn who_gives_way_is_a_deadlocks_victim_however_much_it_has_done() {
    let world = World::new();
    let mut earlier = world.begin(1);
    world.change(&mut earlier, 1).unwrap();
    std::thread::scope(|scope| {
        let later = scope.spawn(|| {
            let mut later = world.begin(2);
            for id in 2..9 {
                world.change(&mut later, id)?;
            }
            let outcome = world.change(&mut later, 1);
            later.rollback()?;
            outcome
        });
        assert!(world.is_told(2, 1, || later.is_finished()));
        world.change(&mut earlier, 2).unwrap();
        let outcome = later.join().unwrap();
        assert!(matches!(outcome, Err(Error::Deadlock)), "{outcome:?}");
    });
    earlier.commit().unwrap();
}

/// Kills the session that is about to wait.
#[derive(Default)]
struct Kills(Mutex<Option<KillHandle>>);

impl Sessions for Kills {
    fn told_waits(&self, _: u64) -> ToldWaits {
        if let Some(kill) = &*self.0.lock().unwrap() {
            kill.kill();
        }
        ToldWaits::None
    }
}

#[test]
fn who_is_killed_when_it_is_about_to_wait_does_not_wait() {
    let sessions = Arc::new(Kills::default());
    let world = World::of(sessions.clone(), channel().1);
    let mut first = world.begin(1);
    world.change(&mut first, 1).unwrap();
    let mut second = world.begin(2);
    *sessions.0.lock().unwrap() = Some(second.kill_handle());
    let outcome = world.change(&mut second, 1);
    assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
}

/// Sessions below 10 wait for 20 ms, and not at all in optimistic tables; the others wait as on a replica.
struct Applies;

impl Sessions for Applies {
    fn waiting(&self, session: u64) -> Waiting {
        match session < 10 {
            true => Waiting {
                limit: Some(Duration::from_millis(20)),
                also_optimistic: false,
            },
            false => Waiting {
                limit: None,
                also_optimistic: true,
            },
        }
    }
}

#[test]
fn a_limit_that_the_program_has_at_that_moment_goes_before_the_transactions() {
    let world = World::of(Arc::new(Applies), channel().1);
    let mut first = world.begin(10);
    world.change(&mut first, 1).unwrap();
    let mut second = world.begin(2);
    second.set_lock_wait_timeout(Duration::from_secs(10));
    let began = Instant::now();
    let outcome = world.change(&mut second, 1);
    assert!(
        matches!(outcome, Err(Error::LockWaitTimeout)),
        "{outcome:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn who_applies_events_waits_also_where_locking_is_optimistic() {
    let world = World::of(Arc::new(Applies), channel().1);
    world
        .db
        .set_locking("t", peregrine::Locking::Optimistic)
        .unwrap();
    let mut first = world.begin(1);
    world.change(&mut first, 1).unwrap();
    let outcome = world.change(&mut world.begin(2), 1);
    assert!(matches!(outcome, Err(Error::RowChanged)), "{outcome:?}");
    std::thread::scope(|scope| {
        let applier = scope.spawn(|| {
            let mut applier = world.begin(11);
            world.change(&mut applier, 1)?;
            applier.commit()
        });
        let begin = Instant::now();
        while world.db.status().lock_waits_now == 0 && !applier.is_finished() {
            assert!(begin.elapsed() < Duration::from_secs(120));
            std::thread::yield_now();
        }
        first.commit().unwrap();
        applier.join().unwrap().unwrap();
    });
}
