//! What the pool promises.

mod descent;
mod pool;
mod reuse;
