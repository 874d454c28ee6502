//! What the pool promises.

mod pool;
mod reuse;
