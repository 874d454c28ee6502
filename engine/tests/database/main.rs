//! The whole database through its public interface, against models.

mod damage;
mod isolation;
mod model;
mod reading;
mod tables;
mod writing;
