//! Tests of the pool.

mod descent;
mod pool;
mod reuse;
