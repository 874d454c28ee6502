//! The whole database through its public interface, against models.

mod ascii;

mod model;

mod schemas;
