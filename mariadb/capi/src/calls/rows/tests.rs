//! The functions that read rows, called as the server calls them.

use std::ptr::null;

use super::*;
use crate::c_types::Code;
use crate::fixture::{record, Open, Record, END, OK};

/// All columns of the table, and the first two.
const ALL: u64 = 0b111;
const TWO: u64 = 0b11;

impl Open {
    /// Reads the rows with these ids, each of which is wanted or not.
    fn multi_get(&self, ids: &[u32], columns: u64, wanted: &mut [u8]) -> (i32, Vec<Record>) {
        let keys: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        self.multi_get_keys(&keys, 4, columns, wanted)
    }

    fn multi_get_keys(
        &self,
        keys: &[u8],
        key_length: usize,
        columns: u64,
        wanted: &mut [u8],
    ) -> (i32, Vec<Record>) {
        let mut records = vec![[0xff; 16]; wanted.len()];
        let target = Target {
            record: records.as_mut_ptr().cast(),
            columns: &columns,
        };
        // SAFETY: there are as many keys and records as bytes in `wanted`.
        let code = unsafe {
            peregrine_multi_get(
                self.handle,
                self.session,
                keys.as_ptr(),
                key_length,
                wanted.len(),
                target,
                16,
                wanted.as_mut_ptr(),
            )
        };
        (code, records)
    }
}

#[test]
fn rows_of_many_keys() {
    let open = Open::new();
    open.start();
    let row = |id: u32| record(id, (id % 3 != 0).then_some(id as i32 - 50), Some(b"fixed"));
    for id in (0..200).step_by(2) {
        open.insert(row(id));
    }
    open.use_key(0, 0);
    let ids: Vec<u32> = (0..100).map(|n| n * 37 % 210).collect();
    let mut wanted: Vec<u8> = ids.iter().map(|id| u8::from(id % 5 != 0)).collect();
    let (code, records) = open.multi_get(&ids, ALL, &mut wanted);
    assert_eq!(code, OK);
    for ((id, mark), record) in ids.iter().zip(&wanted).zip(&records) {
        let there = id % 5 != 0 && id % 2 == 0 && *id < 200;
        assert_eq!(*mark, u8::from(there), "{id}");
        if there {
            let want = row(*id);
            assert_eq!(record[0] & 3, want[0], "{id}");
            assert_eq!(record[1..13], want[1..13], "{id}");
        } else {
            assert_eq!(
                record, &[0xff; 16],
                "nothing is written where there is no row: {id}"
            );
        }
    }
    let (code, records) = open.multi_get(&[4, 4], TWO, &mut [1, 1]);
    assert_eq!(code, OK);
    assert_eq!(records[0], records[1]);
    assert_eq!(
        records[0][8..],
        [0xff; 8],
        "columns that are not asked for stay"
    );
    let (code, _) = open.multi_get(&[], ALL, &mut []);
    assert_eq!(code, OK);
}

#[test]
fn keys_that_can_not_be_are_refused() {
    let open = Open::new();
    open.start();
    open.insert(record(1, None, None));
    let refused = Code::Internal as i32;
    open.use_key(1, 0);
    assert_eq!(
        open.multi_get(&[1], ALL, &mut [1]).0,
        refused,
        "no clustered key"
    );
    open.use_key(u32::MAX, 0);
    assert_eq!(open.multi_get(&[1], ALL, &mut [1]).0, refused, "no key");
    open.use_key(0, 0);
    assert_eq!(
        open.multi_get_keys(&[1, 0], 2, ALL, &mut [1]).0,
        refused,
        "half of one"
    );
    let many = vec![1; 1_000];
    assert_eq!(open.multi_get(&many, ALL, &mut vec![1; 1_000]).0, refused);
    assert_eq!(open.multi_get(&[1], ALL, &mut [1]).0, OK);
}

#[test]
fn rows_read_together_are_those_read_one_by_one() {
    let open = Open::new();
    open.start();
    for id in 0..30 {
        let amount = (id % 4 != 0).then_some(id as i32 % 3);
        let record = record(id, amount, (id % 5 != 0).then_some(b"fixed"));
        open.insert(record);
    }
    let columns = 0b111_u64;
    let target = |record: &mut Record| Target {
        record: record.as_mut_ptr(),
        columns: &columns,
    };
    // All rows in either key; and in the second key also those of one amount: a null byte and three value bytes.
    for (key, image) in [(0, None), (1, None), (1, Some([0_u8, 1, 0, 0]))] {
        open.use_key(key, 0);
        let same = u32::from(image.is_some());
        let search = |record: &mut Record| {
            let (image, seek) = match &image {
                Some(image) => (image.as_ptr(), 0),
                None => (null(), 5),
            };
            let target = target(record);
            // SAFETY: the image has its one part, the record is the table's.
            unsafe { peregrine_search(open.handle, open.session, image, 1, seek, target) }
        };
        let mut wanted = Vec::new();
        let mut one = [0; 16];
        let mut code = search(&mut one);
        while code == OK {
            wanted.push(one);
            let target = target(&mut one);
            // SAFETY: the record is the table's.
            code = unsafe {
                match same {
                    0 => peregrine_next(open.handle, open.session, target),
                    _ => peregrine_next_same(open.handle, open.session, target),
                }
            };
        }
        assert_eq!(code, END);
        assert!(wanted.len() > 5, "{}", wanted.len());
        for most in [1, 4, 100] {
            assert_eq!(search(&mut one), OK);
            let mut got = vec![one];
            loop {
                let mut together = vec![[0xee; 16]; most];
                let target = target(&mut together[0]);
                let mut rows = usize::MAX;
                // SAFETY: the buffer holds that many records.
                let code = unsafe {
                    let (handle, session) = (open.handle, open.session);
                    peregrine_next_rows(handle, session, target, 16, most, same, &mut rows)
                };
                got.extend_from_slice(&together[..rows]);
                if code == END {
                    assert_eq!(rows, 0);
                    break;
                }
                assert_eq!(code, OK);
                assert!((1..=most).contains(&rows));
            }
            let seen = |records: &[Record]| -> Vec<Record> {
                // The bytes behind the last column and the unused null bits have no meaning.
                let own = |record: &Record| {
                    let mut record = *record;
                    record[0] &= 3;
                    record[13..].fill(0);
                    record
                };
                records.iter().map(own).collect()
            };
            assert_eq!(seen(&got), seen(&wanted), "key {key}, {most} at once");
        }
    }
}
