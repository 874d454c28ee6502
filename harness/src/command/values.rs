//! Sizes, times and parameters in the form of the command line.

/// Reads a size such as `128M`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let plain = text.strip_suffix(['b', 'B']).unwrap_or(text);
    let binary = plain.strip_suffix('i');
    let (digits, factor) = match binary.unwrap_or(plain) {
        t if t.ends_with(['k', 'K']) => (&t[..t.len() - 1], 1_u64 << 10),
        t if t.ends_with(['m', 'M']) => (&t[..t.len() - 1], 1 << 20),
        t if t.ends_with(['g', 'G']) => (&t[..t.len() - 1], 1 << 30),
        _ => (plain, 1),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .filter(|size| *size >= 1 << 20)
        .ok_or_else(|| "a size of at least 1M is a number with K, M or G, such as 128M".to_owned())
}

/// Reads a time in seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|time| time.is_finite() && (0.0..=86_400.0).contains(time))
        .ok_or_else(|| "a time is a number of seconds, such as 0.5".to_owned())
}

/// Reads a parameter such as `rows=1000`.
pub fn parameter(text: &str) -> Result<(String, i64), String> {
    text.split_once('=')
        .and_then(|(name, number)| Some((name.to_owned(), number.replace('_', "").parse().ok()?)))
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| "a parameter is NAME=NUMBER, such as rows=1000".to_owned())
}

/// The length of a cell's warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WarmUp {
    /// This many seconds.
    Seconds(f64),
    /// Until the rate is steady.
    Steady,
}

/// Reads a warm-up time.
pub fn warm_up(text: &str) -> Result<WarmUp, String> {
    if text == "steady" {
        return Ok(WarmUp::Steady);
    }
    let time = seconds(text);
    time.map(WarmUp::Seconds)
        .map_err(|_| "a warm-up is a number of seconds, such as 0.5, or steady".to_owned())
}

/// Reads a percentage.
pub fn percent(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| "a percentage is a number from 0 to 100, such as 5".to_owned())
}

/// Reads a rate.
pub fn rate(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|rate| (0.001..=10_000_000.0).contains(rate))
        .ok_or_else(|| {
            "a rate is a number of transactions a second, from 0.001 to 10000000".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_one_unit() {
        for text in ["64M", "64m", "64MB", "64Mi", "64MiB", "67108864B"] {
            assert_eq!(bytes(text), Ok(64 << 20), "{text}");
        }
        for text in ["67108864ibbi", "67108864iB", "64MBB", "64BM", "M"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
