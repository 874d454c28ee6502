//! The whole database through its public interface, compared with models.

mod damage;
mod isolation;
mod model;
mod reading;
mod tables;
mod writing;
