//! Atomics, with a point before each access.

use std::sync::atomic;

use super::schedule::point;

pub(crate) use std::sync::atomic::{fence, Ordering};

macro_rules! atomics {
    ($($name:ident: $value:ty;)+) => {
        $(
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub(crate) struct $name(pub(super) atomic::$name);

            // Not every type has use for every one.
            #[allow(dead_code)]
            impl $name {
                pub const fn new(value: $value) -> Self {
                    $name(atomic::$name::new(value))
                }

                pub fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }

                pub fn into_inner(self) -> $value {
                    self.0.into_inner()
                }

                pub fn load(&self, order: Ordering) -> $value {
                    point();
                    self.0.load(order)
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    point();
                    self.0.store(value, order);
                }

                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.swap(value, order)
                }

                pub fn compare_exchange(
                    &self,
                    from: $value,
                    to: $value,
                    done: Ordering,
                    failed: Ordering,
                ) -> Result<$value, $value> {
                    point();
                    self.0.compare_exchange(from, to, done, failed)
                }

                /// May fail without a reason; here it does not.
                pub fn compare_exchange_weak(
                    &self,
                    from: $value,
                    to: $value,
                    done: Ordering,
                    failed: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(from, to, done, failed)
                }

                pub fn fetch_update(
                    &self,
                    done: Ordering,
                    failed: Ordering,
                    change: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    point();
                    self.0.fetch_update(done, failed, change)
                }

                pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_and(value, order)
                }

                pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_or(value, order)
                }
            }

            impl From<$value> for $name {
                fn from(value: $value) -> Self {
                    $name::new(value)
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
                pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_add(value, order)
                }

                pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_sub(value, order)
                }

                pub fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_max(value, order)
                }

                pub fn fetch_min(&self, value: $value, order: Ordering) -> $value {
                    point();
                    self.0.fetch_min(value, order)
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
