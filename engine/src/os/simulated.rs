//! A disk in memory that can lose and refuse writes, for tests.
