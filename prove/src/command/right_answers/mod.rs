//! Proofs that answers and rows are right.

pub(super) mod answers;
pub(super) mod changes;
pub(super) mod differential;
pub(super) mod pushdown;
pub(super) mod statements;
