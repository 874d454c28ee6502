//! The first read of a transaction takes its snapshot, whatever the read finds.

use peregrine::{
    Column, Cursor, CursorOptions, Database, Index, Isolation, Key, RowLock, Seek, TableSchema,
};

use crate::tables::schemas::{options, INT};

const SEEKS: [Seek; 8] = [
    Seek::Exact,
    Seek::ExactLast,
    Seek::AtOrAfter,
    Seek::After,
    Seek::AtOrBefore,
    Seek::Before,
    Seek::First,
    Seek::Last,
];

#[test]
fn a_search_beyond_all_keys_is_a_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let schema = TableSchema {
        columns: vec![Column::new("a", INT), Column::new("b", INT)],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("b", &[1])],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let mut next = 0u32;
    for index in [0, 1] {
        for seek in SEEKS {
            for number in [0, u32::MAX] {
                let mut txn = db.begin(Isolation::RepeatableRead);
                let mut cursor = Cursor::new(&table, index, CursorOptions::default());
                let key = table.encode_key(index, &[number.into()]).unwrap();
                cursor.seek(&mut txn, &key, seek).unwrap();

                let mut other = db.begin(Isolation::ReadCommitted);
                next += 1;
                other.insert(&table, &[next.into(), next.into()]).unwrap();
                other.commit().unwrap();

                let key = table.encode_key(0, &[next.into()]).unwrap();
                let found = txn.get_locked(&table, &key, RowLock::None, |_| ());
                assert!(found.unwrap().is_none(), "{index} {seek:?} {number}");
            }
        }
    }
}
