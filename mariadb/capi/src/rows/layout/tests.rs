//! The server's keys and the engine's indexes, through the functions that the server calls.

use crate::c_types::{Code, TableDefinition, Target};
use crate::calls::changes::peregrine_insert;
use crate::calls::rows::{peregrine_next, peregrine_search};
use crate::failure::peregrine_error_key;
use crate::fixture::{record, with_definition, Open, Record, END, OK};
use crate::rows::layout::Layout;
use crate::session::peregrine_session_commit;
use crate::table::peregrine_table_set_description;

const DUPLICATE: i32 = Code::Duplicate as i32;
const DEFINITION: i32 = Code::Definition as i32;

impl Open {
    /// The ids of the rows with a value in a key.
    fn ids(&self, key: u32, image: &[u8]) -> Vec<u8> {
        let mut record: Record = [0; 16];
        let columns = 0b111u64;
        let target = Target {
            record: record.as_mut_ptr(),
            columns: &columns,
        };
        self.use_key(key, 0);
        self.set_end(image, 1);
        let mut ids = Vec::new();
        let (handle, session) = (self.handle, self.session);
        // SAFETY: the image has its one part, the record is one of the table.
        unsafe {
            let mut code = peregrine_search(handle, session, image.as_ptr(), 1, 1, target);
            while code == OK {
                ids.push(target.record.add(1).read());
                code = peregrine_next(handle, session, target);
            }
            assert_eq!(code, END);
        }
        ids
    }

    fn commit(&self) {
        // SAFETY: the session is this thread's.
        assert_eq!(unsafe { peregrine_session_commit(self.session, 1) }, OK);
    }

    /// Returns the key in which a record is a duplicate.
    fn key_in_the_way(&self, row: Record) -> u32 {
        // SAFETY: a record of the table.
        let code = unsafe { peregrine_insert(self.handle, self.session, row.as_ptr(), 0) };
        assert_eq!(code, DUPLICATE);
        peregrine_error_key()
    }
}

#[test]
fn keys_are_known_by_their_parts_and_not_by_their_order() {
    let mut open = Open::with_keys(&[0, 1, 2]);
    open.start();
    open.insert(record(1, Some(5), Some(b"aaaaa")));
    open.insert(record(2, Some(5), Some(b"bbbbb")));
    open.commit();
    let (amount, fixed) = (&[0u8, 5, 0, 0], b"\0bbbbb");
    for (order, amounts, fixeds) in [([0, 1, 2], 1, 2), ([0, 2, 1], 2, 1)] {
        assert_eq!(open.reopen(&order), OK);
        open.start();
        assert_eq!(open.ids(amounts, amount), [1, 2], "{order:?}");
        assert_eq!(open.ids(fixeds, fixed), [2], "{order:?}");
        assert_eq!(open.ids(0, &2_u32.to_le_bytes()), [2], "{order:?}");
        let row = record(3, None, Some(b"aaaaa"));
        assert_eq!(open.key_in_the_way(row), fixeds, "{order:?}");
        let row = record(1, None, Some(b"ccccc"));
        assert_eq!(open.key_in_the_way(row), 0, "{order:?}");
        open.commit();
    }
}

#[test]
fn other_keys_are_another_definition() {
    let mut open = Open::with_keys(&[0, 1, 2]);
    for keys in [&[0, 1][..], &[0, 1, 1], &[0, 2, 2], &[0, 1, 2, 2]] {
        assert_eq!(open.reopen(keys), DEFINITION, "{keys:?}");
    }
    assert_eq!(open.reopen(&[0, 2, 1]), OK);
    let mut twice = Open::with_keys(&[0, 1, 2, 1]);
    assert_eq!(twice.reopen(&[0, 1, 1, 2]), OK);
    twice.start();
    twice.insert(record(1, Some(5), None));
    for key in [1, 2] {
        assert_eq!(twice.ids(key, &[0, 5, 0, 0]), [1]);
    }
}

#[test]
fn a_column_of_no_key_may_have_lost_its_collation() {
    for (keys, opens) in [(&[0, 1][..], true), (&[0, 1, 2][..], false)] {
        // SAFETY: the definition, and all that it points to, lives until the end of the call.
        let read = with_definition(keys, |definition| unsafe { Layout::read(definition) });
        let (mut layout, server) = read.unwrap();
        let mut engine = server.clone();
        engine.columns[2].collation = 8;
        assert_eq!(layout.find_indexes(&engine, &server), opens, "{keys:?}");
        assert!(!layout.find_indexes(&server, &engine), "{keys:?}");
    }
}

#[test]
fn names_go_to_the_columns_and_indexes_that_have_them() {
    // SAFETY: the definition, and all that it points to, lives until the end of the call.
    let read = with_definition(&[0, 1, 2], |definition| unsafe { Layout::read(definition) });
    let (mut layout, mut server) = read.unwrap();
    let mut engine = server.clone();
    engine.indexes.reverse();
    for (n, column) in server.columns.iter_mut().enumerate() {
        column.name = format!("c{n}");
    }
    server.indexes[0].name = "amounts".into();
    server.indexes[1].name = "fixed".into();
    assert!(layout.find_indexes(&engine, &server));
    let names = layout.names(&server);
    assert_eq!(names.columns, ["c0", "c1", "c2", "c3"]);
    assert_eq!(names.indexes, ["fixed", "amounts"]);
}

#[test]
fn names_of_another_definition_are_not_taken() {
    let open = Open::with_keys(&[0, 1, 2]);
    for (keys, code) in [
        (&[0, 2, 1][..], OK),
        (&[0, 1][..], DEFINITION),
        (&[0, 1, 1][..], DEFINITION),
    ] {
        // SAFETY: the table is open, and the definition lives until the end of the call.
        let named = with_definition(keys, |definition| unsafe {
            peregrine_table_set_description(open.table, definition)
        });
        assert_eq!(named, code, "{keys:?}");
    }
}

#[test]
fn a_table_is_kept_with_the_types_of_its_columns() {
    with_definition(&[0, 1, 2], |definition| {
        // SAFETY: the definition is whole.
        let (_, schema) = unsafe { Layout::read(definition) }.expect("a definition");
        let types = std::str::from_utf8(&schema.user).expect("a text");
        assert_eq!(types, "MariaDB\0type\0type\0type\0type");
        assert_eq!(schema.columns.len(), 4);

        let rest = "option\0\0COMMENT 'x'";
        let known = TableDefinition {
            rest: rest.as_ptr().cast(),
            rest_length: rest.len() as u32,
            ..*definition
        };
        // SAFETY: the definition is whole.
        let (_, schema) = unsafe { Layout::read(&known) }.expect("a definition");
        let kept = std::str::from_utf8(&schema.user).expect("a text");
        let rests = " rest\0 rest\0 rest\0 rest";
        assert_eq!(kept, format!("{types}\0{rests}\0{rest}"));
    });
}
