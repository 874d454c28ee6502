//! The profiles: the published method and shorter forms of it.

use peregrine_harness::error::{HarnessError, Result};

/// The length and width of a run of the matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Its name in options and results.
    pub name: &'static str,
    /// The thread ladder.
    pub threads: &'static [u32],
    /// Warm-up before the first run of a cell, in seconds.
    pub warm_up_s: f64,
    /// The length of an effective run, in seconds.
    pub run_s: f64,
    /// Effective runs per cell.
    pub runs: u32,
    /// Each engine's cache, in bytes.
    pub cache_bytes: u64,
}

/// All profiles.
pub const PROFILES: [Profile; 3] = [
    // Five engines within twelve minutes on two processors, loading included. Runs are short, but the clients finish a
    // query that they have begun. So a scan that takes seconds is still measured whole.
    Profile {
        name: "quick",
        threads: &[1, 4, 16, 64],
        warm_up_s: 0.2,
        run_s: 0.45,
        runs: 3,
        cache_bytes: 1 << 30,
    },
    // About two and a half hours for five engines.
    Profile {
        name: "standard",
        threads: &[1, 4, 16, 64, 128, 256, 512],
        warm_up_s: 3.0,
        run_s: 5.0,
        runs: 3,
        cache_bytes: 1 << 30,
    },
    // The published durations.
    Profile {
        name: "paper",
        threads: &[1, 4, 16, 64, 128, 256, 512],
        warm_up_s: 180.0,
        run_s: 60.0,
        runs: 3,
        cache_bytes: 1 << 30,
    },
];

impl Profile {
    /// Returns the profile of this name.
    ///
    /// # Errors
    /// [`HarnessError::Usage`], which lists all names.
    pub fn parse(name: &str) -> Result<Self> {
        PROFILES
            .into_iter()
            .find(|profile| profile.name == name)
            .ok_or_else(|| {
                HarnessError::Usage(format!(
                    "unknown profile '{name}': the profiles are {}",
                    PROFILES.map(|profile| profile.name).join(", ")
                ))
            })
    }
}
