//! The functions that aggregate, called as the server calls them.

use std::ptr::null;

use super::*;
use crate::c_types::Code;
use crate::engine::peregrine_engine_set_scan_threads;
use crate::fixture::{record, Open, Record, END, OK};
use crate::session::peregrine_session_kill;

impl Open {
    fn can(&self, asked: &[AggregateRequest]) -> i32 {
        // SAFETY: valid for its length.
        unsafe { peregrine_can_aggregate(self.handle, asked.as_ptr(), asked.len()) }
    }

    fn aggregate(&self, start: Option<(&[u8], u32)>, asked: &[AggregateRequest]) -> i32 {
        let (key, inclusive) = start.map_or((null(), 0), |(key, on)| (key.as_ptr(), on));
        let (handle, session) = (self.handle, self.session);
        let (asked, count) = (asked.as_ptr(), asked.len());
        // SAFETY: the key has its one part, `asked` is valid for its length.
        unsafe { peregrine_aggregate_range(handle, session, key, 1, inclusive, asked, count) }
    }

    fn set_tests(&self, tests: &[TestRequest]) -> i32 {
        // SAFETY: valid for their number, the values for their columns.
        unsafe { peregrine_set_tests(self.handle, tests.as_ptr(), tests.len()) }
    }

    fn number(&self, n: usize) -> (i64, u64, u64) {
        let (mut high, mut low, mut values) = (0, 0, 0);
        let (h, l, v) = (&mut high, &mut low, &mut values);
        // SAFETY: all are writable.
        let code = unsafe { peregrine_aggregate_number(self.handle, n, h, l, v) };
        assert_eq!(code, OK);
        (high, low, values)
    }

    fn value(&self, n: usize) -> (i32, Record) {
        let mut record = [0xff; 16];
        // SAFETY: a record of the table.
        let code = unsafe { peregrine_aggregate_value(self.handle, n, record.as_mut_ptr()) };
        (code, record)
    }
}

fn ask(kind: u32, column: u32) -> AggregateRequest {
    AggregateRequest { kind, column }
}

fn test(column: u32, operator: u32, value: &[u8]) -> TestRequest {
    TestRequest {
        column,
        operator,
        value: if operator < 6 { value.as_ptr() } else { null() },
    }
}

#[test]
fn tests_let_rows_through() {
    let open = Open::new();
    open.start();
    for id in 0..20 {
        let amount = (id % 4 != 0).then_some(id as i32 - 10);
        let record = record(id, amount, Some(&[b'a' + id as u8; 5]));
        open.insert(record);
    }
    open.use_key(u32::MAX, 0);
    let rows = [ask(0, 0)];
    let count = |tests: &[TestRequest]| {
        assert_eq!(open.set_tests(tests), OK);
        assert_eq!(open.aggregate(None, &rows), OK);
        open.number(0).1
    };
    let minus_five = (-5_i32).to_le_bytes();
    assert_eq!(count(&[test(1, 0, &minus_five)]), 1);
    assert_eq!(count(&[test(1, 1, &minus_five)]), 14);
    assert_eq!(count(&[test(1, 2, &minus_five)]), 3, "1, 2 and 3");
    assert_eq!(count(&[test(1, 3, &minus_five)]), 4);
    assert_eq!(
        count(&[test(1, 4, &minus_five), test(0, 2, &10_u32.to_le_bytes())]),
        3
    );
    assert_eq!(count(&[test(1, 6, &[])]), 5);
    assert_eq!(
        count(&[test(1, 7, &[]), test(2, 5, b"qqqqq")]),
        3,
        "17, 18 and 19"
    );
    assert_eq!(open.aggregate(None, &rows), OK);
    assert_eq!(open.number(0).1, 20, "tests are forgotten");
    assert_eq!(open.set_tests(&[test(1, 6, &[])]), OK);
    open.use_key(1, 0);
    assert_eq!(open.aggregate(None, &rows), OK);
    assert_eq!(open.number(0).1, 20, "and with the key");
    assert_eq!(
        open.set_tests(&[test(2, 0, b"aaaaa")]),
        END,
        "not in the key"
    );
    assert_eq!(count(&[test(1, 4, &minus_five)]), 11);
    open.use_key(u32::MAX, 0);
    assert_eq!(open.set_tests(&[test(3, 0, &[0; 8])]), END, "no doubles");
    assert_eq!(count(&[test(3, 7, &[])]), 20);
    let internal = Code::Internal as i32;
    assert_eq!(open.set_tests(&[test(9, 6, &[])]), internal);
    assert_eq!(open.set_tests(&[test(0, 8, &[])]), internal);
    let without = TestRequest {
        value: null(),
        ..test(0, 0, &[0; 4])
    };
    assert_eq!(open.set_tests(&[without]), internal);
    // SAFETY: the engine is open.
    let set = |threads| unsafe { peregrine_engine_set_scan_threads(open.engine, threads) };
    assert_eq!([set(0), set(1), set(64)], [OK; 3]);
    assert_eq!(set(65), Code::Invalid as i32);
}

#[test]
fn aggregates_as_the_server_asks_for_them() {
    let open = Open::new();
    open.start();
    for (id, amount, fixed) in [
        (1, Some(-5), Some(b"bbbbb")),
        (2, None, Some(b"aaaaa")),
        (3, Some(7), None),
        (4, Some(-5), Some(b"ccccc")),
    ] {
        let record = record(id, amount, fixed);
        open.insert(record);
    }
    let asked = [
        ask(0, 0),
        ask(1, 1),
        ask(2, 1),
        ask(3, 1),
        ask(4, 2),
        ask(4, 0),
    ];
    open.use_key(u32::MAX, 0);
    assert_eq!(open.can(&asked), OK);
    assert_eq!(open.aggregate(None, &asked), OK);
    assert_eq!(open.number(0), (0, 4, 4));
    assert_eq!(open.number(1), (0, 3, 3));
    assert_eq!(open.number(2), (-1, -3_i64 as u64, 3));
    // Only the column's own bytes and its null bit are written.
    let (code, least) = open.value(3);
    assert_eq!((code, &least[5..8]), (OK, &[0xfb, 0xff, 0xff][..]));
    assert_eq!((least[0], least[4], least[8]), (0xfe, 0xff, 0xff));
    let (code, greatest) = open.value(4);
    assert_eq!(
        (code, &greatest[8..13], greatest[0]),
        (OK, &b"ccccc"[..], 0xfd)
    );
    assert_eq!(open.value(5).1[1..5], [4, 0, 0, 0]);
    assert_eq!(open.value(0).0, Code::Internal as i32, "no value");
    assert_eq!(open.value(6).0, Code::Internal as i32, "nothing asked");

    // After id 1, up to before id 4.
    open.use_key(0, 0);
    let end = 4_u32.to_le_bytes();
    open.set_end(&end, 0);
    let start = 1_u32.to_le_bytes();
    assert_eq!(open.aggregate(Some((&start, 0)), &asked), OK);
    assert_eq!(open.number(0), (0, 2, 2));
    assert_eq!(open.number(2), (0, 7, 1));
    // The end is forgotten; the start is inclusive.
    assert_eq!(open.aggregate(Some((&start, 1)), &asked), OK);
    assert_eq!(open.number(0), (0, 4, 4));
    let start = 9_u32.to_le_bytes();
    assert_eq!(open.aggregate(Some((&start, 1)), &asked), OK);
    assert_eq!(open.number(0), (0, 0, 0));
    let (code, none) = open.value(3);
    assert_eq!((code, none[0], &none[5..8]), (END, 0xff, &[0, 0, 0][..]));

    // The image of a secondary key: a null byte, and three bytes of the amount.
    open.use_key(1, 0);
    let of_key = [ask(0, 0), ask(3, 0), ask(2, 1)];
    assert_eq!(open.can(&of_key), OK);
    assert_eq!(open.can(&asked), END, "the key lacks a column");
    let start = [0, 0xfb, 0xff, 0xff];
    open.set_end(&start, 1);
    assert_eq!(open.aggregate(Some((&start, 1)), &of_key), OK);
    assert_eq!(open.number(0), (0, 2, 2));
    assert_eq!(open.value(1).1[1..5], [1, 0, 0, 0]);
    assert_eq!(open.number(2), (-1, -10_i64 as u64, 2));
}

#[test]
fn what_cannot_be_is_said_beforehand() {
    let open = Open::new();
    open.start();
    open.use_key(u32::MAX, 0);
    assert_eq!(open.can(&[ask(2, 2)]), END, "sums are of integers");
    assert_eq!(
        open.can(&[ask(3, 3)]),
        END,
        "floats have no least value here"
    );
    assert_eq!(open.can(&[ask(1, 3)]), OK);
    assert_eq!(
        open.can(&[ask(3, 9)]),
        Code::Internal as i32,
        "no such column"
    );
    assert_eq!(
        open.can(&[ask(7, 0)]),
        Code::Internal as i32,
        "no such kind"
    );
    assert_eq!(open.aggregate(None, &[ask(2, 2)]), Code::Internal as i32);
    open.use_key(u32::MAX, 1);
    assert_eq!(open.can(&[ask(0, 0)]), END, "rows are to be locked");
    open.use_key(u32::MAX, 0);
    // SAFETY: the session is open.
    unsafe { peregrine_session_kill(open.session) };
    assert_eq!(open.aggregate(None, &[ask(0, 0)]), Code::Interrupted as i32);
    open.start();
    assert_eq!(open.aggregate(None, &[ask(0, 0)]), OK);
}
