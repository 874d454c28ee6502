//! Formats figures for people.
//!
//! The figure of a run is a rate, so that more is always better: ratios, means and thresholds need not know the unit.
//! For a transaction that a client runs once in each run, the report shows its time. Its rate is how often the client
//! could run it in a second.

use crate::workload::SECONDS;

/// Formats a rate in about three digits: 12, 4.1k, 81k.
///
/// For the unit `s`, formats the time that the rate stands for.
#[must_use]
pub fn shown(rate: f64, unit: &str) -> String {
    if unit == SECONDS {
        seconds(1.0 / rate)
    } else {
        short(rate)
    }
}

/// Formats a rate in about three digits: 12, 4.1k, 81k.
#[must_use]
pub fn short(rate: f64) -> String {
    match rate {
        f if f < 10.0 => format!("{f:.1}"),
        f if f < 1_000.0 => format!("{f:.0}"),
        f if f < 9_950.0 => format!("{:.1}k", f / 1_000.0),
        f if f < 999_500.0 => format!("{:.0}k", f / 1_000.0),
        f => format!("{:.2}M", f / 1_000_000.0),
    }
}

/// Formats a time in about three digits.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "–".to_owned(),
        s if s < 0.0995 => format!("{s:.4}"),
        s if s < 9.95 => format!("{s:.2}"),
        s if s < 99.5 => format!("{s:.1}"),
        s => format!("{s:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (figure, told) in [
            (0.25, "0.2"),
            (9.5, "9.5"),
            (123.4, "123"),
            (4_120.0, "4.1k"),
            (81_499.0, "81k"),
            (1_250_000.0, "1.25M"),
        ] {
            assert_eq!(shown(figure, "queries/s"), told);
        }
    }

    #[test]
    fn of_what_is_done_once_the_time_is_shown() {
        for (time, told) in [
            (0.004_21, "0.0042"),
            (0.25, "0.25"),
            (8.0, "8.00"),
            (56.04, "56.0"),
            (727.3, "727"),
        ] {
            assert_eq!(shown(1.0 / time, SECONDS), told);
        }
        assert_eq!(shown(0.0, SECONDS), "–");
    }
}
