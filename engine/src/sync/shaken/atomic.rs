//! Atomics, with a point before each access.

use std::sync::atomic;

use super::schedule::point;

pub(crate) use std::sync::atomic::{fence, Ordering};

/// Methods of an atomic, each after a point.
macro_rules! after_a_point {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {
        $(
            pub fn $name(&self, $($argument: $type),*) -> $result {
                point();
                self.0.$name($($argument),*)
            }
        )+
    };
}

macro_rules! atomics {
    ($($name:ident: $value:ty;)+) => {
        $(
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub(crate) struct $name(pub(super) atomic::$name);

            // Not every type uses every method.
            #[allow(dead_code)]
            impl $name {
                pub const fn new(value: $value) -> Self {
                    $name(atomic::$name::new(value))
                }

                pub fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }

                after_a_point! {
                    fn load(order: Ordering) -> $value;
                    fn store(value: $value, order: Ordering) -> ();
                    fn swap(value: $value, order: Ordering) -> $value;
                    fn compare_exchange(from: $value, to: $value, done: Ordering, failed: Ordering)
                        -> Result<$value, $value>;
                    fn compare_exchange_weak(from: $value, to: $value, done: Ordering, failed: Ordering)
                        -> Result<$value, $value>;
                    fn fetch_update(
                        done: Ordering,
                        failed: Ordering,
                        change: impl FnMut($value) -> Option<$value>
                    ) -> Result<$value, $value>;
                    fn fetch_and(value: $value, order: Ordering) -> $value;
                    fn fetch_or(value: $value, order: Ordering) -> $value;
                }
            }
        )+
    };
}

macro_rules! numbers {
    ($($name:ident: $value:ty;)+) => {
        $(
            #[allow(dead_code)]
            impl $name {
                after_a_point! {
                    fn fetch_add(value: $value, order: Ordering) -> $value;
                    fn fetch_sub(value: $value, order: Ordering) -> $value;
                    fn fetch_max(value: $value, order: Ordering) -> $value;
                    fn fetch_min(value: $value, order: Ordering) -> $value;
                }
            }
        )+
    };
}

atomics! {
    AtomicBool: bool;
    AtomicU8: u8;
    AtomicU32: u32;
    AtomicU64: u64;
    AtomicI64: i64;
    AtomicUsize: usize;
}

numbers! {
    AtomicU8: u8;
    AtomicU32: u32;
    AtomicU64: u64;
    AtomicI64: i64;
    AtomicUsize: usize;
}
