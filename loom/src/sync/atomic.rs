//! Loom's atomics, changed so that loom tries all their orders.
//!
//! Loom tries another order where an access depends on the last access to the same atomic by any thread. So it misses
//! orders where a thread loads an atomic before it stores there: the store depends on the thread's own load, and loom
//! does not look at earlier accesses (seen with loom 0.7.3). Here, before each access, an exchange that never succeeds
//! runs on a second atomic. Loom takes the exchange for a change, so every later access depends on it. It stores
//! nothing, so no thread learns anything from it.

use loom::sync::atomic;

pub use loom::sync::atomic::{fence, Ordering};

macro_rules! ordered {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {
        $(
            pub fn $name(&self, $($argument: $type),*) -> $result {
                let _always_fails = self.order.compare_exchange(true, true, Ordering::Relaxed, Ordering::Relaxed);
                self.value.$name($($argument),*)
            }
        )+
    };
}

macro_rules! atomics {
    ($($name:ident: $value:ty;)+) => {
        $(
            #[derive(Debug, Default)]
            pub struct $name {
                value: atomic::$name,
                order: atomic::AtomicBool,
            }

            impl $name {
                pub fn new(value: $value) -> Self {
                    $name { value: atomic::$name::new(value), order: atomic::AtomicBool::new(false) }
                }

                ordered! {
                    fn load(order: Ordering) -> $value;
                    fn store(value: $value, order: Ordering) -> ();
                    fn swap(value: $value, order: Ordering) -> $value;
                    fn compare_exchange(from: $value, to: $value, done: Ordering, failed: Ordering)
                        -> Result<$value, $value>;
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
            impl $name {
                ordered! {
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
