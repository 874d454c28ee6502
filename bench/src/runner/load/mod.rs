//! The clients, their pace and the background load.

pub mod background_load;
pub mod client_cost;
pub mod insert;
pub mod live_counters;
pub mod load_generator;
pub mod pace;
pub mod seconds;
