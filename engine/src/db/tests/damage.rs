//! Damaged or unreadable pages, undo and records: they keep no other table from being opened.

use super::*;

/// Damages a table's definition in the catalog.
fn garble_definition(db: &Database, id: TableId) {
    let mut key = [0; 6];
    key[..4].copy_from_slice(&id.0.to_be_bytes());
    let _inside = db.transactions().barrier().enter();
    let garble = |old: Option<&[u8]>, out: &mut Vec<u8>| {
        out.extend_from_slice(old.unwrap());
        // Behind the record's own byte, and the version.
        out[2..].fill(0xFF);
        (RecordEdit::Put, ())
    };
    db.tables.catalog.tree().rewrite(&key, garble).unwrap();
}

/// What is left of it could be decoded as another definition.
#[test]
fn a_definition_without_one_of_its_parts_is_damage_of_its_table_alone() {
    for part in 0..3u16 {
        let os = SimulatedOs::new(18);
        let db = open(&os);
        create(&db);
        insert(&db, 0..3).commit().unwrap();
        let long = TableSchema {
            user: vec![7; 9_000],
            ..schema()
        };
        let id = db.create_table("long", &long).unwrap().id();
        let mut key = [0; 6];
        key[..4].copy_from_slice(&id.0.to_be_bytes());
        key[4..].copy_from_slice(&part.to_be_bytes());
        {
            let _inside = db.transactions().barrier().enter();
            let remove = |old: Option<&[u8]>, _: &mut Vec<u8>| {
                assert!(old.is_some());
                (RecordEdit::Remove, ())
            };
            db.tables.catalog.tree().rewrite(&key, remove).unwrap();
        }
        db.checkpoint().unwrap();
        drop(db);
        let db = open(&os);
        let mut damaged = BTreeMap::new();
        let load = db.tables.catalog.load(&mut damaged, &mut |_| Ok(()));
        load.unwrap();
        // Without its last part it ends too soon, which its bytes tell.
        assert_eq!(damaged.keys().collect::<Vec<_>>(), [&id], "part {part}");
        assert_eq!(db.table_names(), ["t"]);
        assert_eq!(count(&db), 3);
        // What is left of it goes as a whole, so that later openings find nothing.
        db.tables.catalog.remove_damaged(id).unwrap();
        damaged.clear();
        let load = db.tables.catalog.load(&mut damaged, &mut |_| Ok(()));
        load.unwrap();
        assert!(damaged.is_empty(), "part {part}: {damaged:?}");
    }
}

#[test]
fn a_table_whose_definition_makes_no_sense_goes_where_the_log_drops_it() {
    let os = SimulatedOs::new(18);
    let db = open(&os);
    create(&db);
    garble_definition(&db, db.table("t").unwrap().id());
    db.checkpoint().unwrap();
    insert(&db, 0..3).commit().unwrap();
    db.drop_table("t").unwrap();
    let os = os.crash_with(Loss::Nothing, 0);
    drop(db);
    let db = open(&os);
    let mut damaged = BTreeMap::new();
    let load = db.tables.catalog.load(&mut damaged, &mut |_| Ok(()));
    load.unwrap();
    assert!(damaged.is_empty(), "{damaged:?}");
    create(&db);
    insert(&db, 0..3).commit().unwrap();
    drop(db);
    assert_eq!(count(&open(&os)), 3);
}

/// Only the changes of the table are known; a repair of the table needs them.
#[test]
fn what_is_prepared_in_a_table_whose_definition_makes_no_sense_is_kept() {
    let os = SimulatedOs::new(9);
    let db = open(&os);
    create(&db);
    let id = db.table("t").unwrap().id();
    insert(&db, 0..3).commit().unwrap();
    garble_definition(&db, id);
    db.checkpoint().unwrap();
    let xid = Xid::new(1, b"global", b"branch").unwrap();
    insert(&db, 3..5).prepare(&xid).unwrap();
    let os = os.crash_with(Loss::Nothing, 0);

    let db = open(&os);
    assert_eq!(db.table_names(), Vec::<String>::new());
    assert_eq!(db.prepared().len(), 1);
    drop(db);
    let db = open(&os);
    db.commit_prepared(&xid).unwrap();
    db.checkpoint().unwrap();
    drop(db);
    let db = open(&os);
    assert!(db.prepared().is_empty());
    let number = db.registry().pool().store().database_id();
    let files = QuarantineFiles::new(Arc::new(os.clone()), db.dir(), number);
    let kept = files.load().unwrap().remove(&id).unwrap().unwrap();
    assert_eq!(kept.changes.len(), 2);
}

/// Only its records in the tables show which tables it has changed.
#[test]
fn tables_with_records_of_a_transaction_whose_undo_is_damaged_are_quarantined() {
    let os = SimulatedOs::new(11);
    let db = open(&os);
    create(&db);
    let other = db.create_table("other", &schema()).unwrap();
    let mut txn = insert(&db, 0..3);
    txn.insert(&other, &[Value::UInt(1)]).unwrap();
    txn.commit().unwrap();
    let loser = insert(&db, 3..6);
    db.checkpoint().unwrap();
    let undo = {
        let closed = db.transactions().barrier().close();
        db.transactions().capture(&closed).undo_pages().to_vec()
    };
    let parts = db.registry().pool().store().parts();
    insert(&db, 6..8).commit().unwrap();
    txn.insert(&other, &[Value::UInt(2)]).unwrap();
    txn.commit().unwrap();
    let id = db.table("t").unwrap().id();
    let os = os.crash_with(Loss::Nothing, 0);
    drop((loser, txn));
    for part in parts {
        if matches!(part.kind, PartKind::Page(page) if undo.contains(&page)) {
            let generation = part.offset as usize + 16;
            os.damage(Path::new("/db/data"), |data| data[generation] ^= 1);
        }
    }

    let quarantined = |db: &Database| {
        let opened = db.table("t").map(drop);
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
        let other = db.table("other").unwrap();
        assert_eq!(other.estimate_rows(), 2);
        let number = db.registry().pool().store().database_id();
        let files = QuarantineFiles::new(Arc::new(os.clone()), db.dir(), number);
        let quarantined = files.load().unwrap().remove(&id).unwrap().unwrap();
        assert_eq!(
            (quarantined.unfinished.len(), quarantined.changes.len()),
            (1, 2)
        );
    };
    quarantined(&open(&os));
    let db = open(&os);
    quarantined(&db);
    db.drop_table("t").unwrap();
    create(&db);
    insert(&db, 0..3).commit().unwrap();
    drop(db);
    assert_eq!(count(&open(&os)), 3);
}

/// Table `t` can't be used, and `other` has its row.
fn only_t_is_quarantined(db: &Database) {
    let used = db.table("t").map(drop);
    assert!(matches!(used, Err(Error::Corrupt { .. })), "{used:?}");
    assert_eq!(db.table("other").unwrap().estimate_rows(), 1);
}

/// A bad sector: each read of it fails; with damaged bytes, the read would succeed and the checksum show the damage.
#[test]
fn a_page_that_can_never_be_read_counts_as_damaged_where_the_program_says_so() {
    let os = SimulatedOs::new(19);
    let db = open(&os);
    create(&db);
    let other = db.create_table("other", &schema()).unwrap();
    insert(&db, 0..3).commit().unwrap();
    db.checkpoint().unwrap();
    let id = db.table("t").unwrap().id();
    let root = db.registry().definition(id).unwrap().trees[0].root;
    let parts = db.registry().pool().store().parts();
    let part = parts
        .iter()
        .find(|part| part.kind == PartKind::Page(root))
        .unwrap();
    let mut txn = insert(&db, 3..5);
    txn.insert(&other, &[Value::UInt(1)]).unwrap();
    txn.commit().unwrap();
    let os = os.crash_with(Loss::Nothing, 0);
    drop((txn, other, db));
    os.spoil(Path::new("/db/data"), part.offset);

    let opened = |unreadable_is_damage| {
        let options = Options {
            background: false,
            unreadable_is_damage,
            ..Options::default()
        };
        Database::open_on(Arc::new(os.clone()), "/db", options)
    };
    let refused = opened(false).map(drop);
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    // Once the table is quarantined, no opening needs that page.
    for unreadable_is_damage in [true, false] {
        only_t_is_quarantined(&opened(unreadable_is_damage).unwrap());
    }
}

/// Its checksum is right, as after a fault of the program: it would make each opening fail.
#[test]
fn undo_that_makes_no_sense_keeps_no_other_table_closed() {
    let os = SimulatedOs::new(17);
    let db = open(&os);
    create(&db);
    let other = db.create_table("other", &schema()).unwrap();
    let mut txn = insert(&db, 0..3);
    txn.insert(&other, &[Value::UInt(1)]).unwrap();
    txn.commit().unwrap();
    let loser = insert(&db, 3..6);
    let undo = {
        let closed = db.transactions().barrier().close();
        db.transactions().capture(&closed).undo_pages().to_vec()
    };
    let pool = db.registry().pool().clone();
    let mut sound = Vec::new();
    for &page in &undo {
        let mut guard = pool.fetch_exclusive(page).unwrap();
        let body = guard.body_mut().unwrap();
        sound.push(body.to_vec());
        body.fill(0xFF);
    }
    db.checkpoint().unwrap();
    let crashed = os.crash_with(Loss::Nothing, 0);
    for (&page, bytes) in undo.iter().zip(&sound) {
        let mut guard = pool.fetch_exclusive(page).unwrap();
        guard.body_mut().unwrap().copy_from_slice(bytes);
    }
    drop((loser, txn, other, pool, db));

    for _ in 0..2 {
        only_t_is_quarantined(&open(&crashed));
    }
}

/// The same for a damaged record of which the log has a change.
#[test]
fn a_record_that_makes_no_sense_keeps_no_other_table_closed() {
    let os = SimulatedOs::new(23);
    let db = open(&os);
    create(&db);
    let other = db.create_table("other", &schema()).unwrap();
    insert(&db, 0..3).commit().unwrap();
    let table = db.table("t").unwrap();
    let key = table.encode_key(0, &[Value::UInt(1)]).unwrap();
    let put = |value: &[u8]| {
        let trees = table.trees.load();
        let _inside = db.transactions().barrier().enter();
        let mut before = Vec::new();
        let change = |current: Option<&[u8]>, put: &mut Vec<u8>| {
            before = current.unwrap().to_vec();
            put.extend_from_slice(value);
            (RecordEdit::Put, ())
        };
        let clustered = &trees.clustered;
        clustered.modify(&key, value.len(), 0, change).unwrap();
        before
    };
    let sound = put(&[0xFF; 20]);
    db.checkpoint().unwrap();
    put(&sound);
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.delete(&table, &key).unwrap();
    txn.insert(&other, &[Value::UInt(1)]).unwrap();
    txn.commit().unwrap();
    let crashed = os.crash_with(Loss::Nothing, 0);
    drop((txn, table, other, db));
    for _ in 0..2 {
        only_t_is_quarantined(&open(&crashed));
    }
}

/// Each record has a right checksum.
#[test]
fn a_record_of_the_log_that_no_opening_can_read_is_found_by_a_check() {
    let newer: &[u8] = &[9, 1];
    // Of transaction number 1, with an operation that does not exist.
    let changes: &[u8] = &[1, 9];
    let records = [
        (KIND_DDL, newer),
        (KIND_COUNTER, newer),
        (KIND_COMMIT, changes),
    ];
    for (kind, payload) in records {
        let os = SimulatedOs::new(11);
        let db = open(&os);
        create(&db);
        let problems = || {
            let mut report = Report::default();
            check_on(Arc::new(os.crash(1)), "/db", &mut report).unwrap();
            assert!(report.log_records > 0);
            report.problems
        };
        assert_eq!(problems(), Vec::<String>::new());
        let log = &db.shared.log;
        let end = log.append(kind, &[payload]).unwrap();
        log.durable(end, Durability::SyncAtCommit).unwrap();
        let problems = problems();
        assert!(problems.len() == 1, "{kind}: {problems:?}");
        assert!(
            problems[0].starts_with("the log's record at "),
            "{problems:?}"
        );
        assert!(try_open(&os.crash(1)).is_err(), "{kind}");
    }
}
