//! Sizes, times and parameters as they are typed.

/// Reads a size such as `128M`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.trim_end_matches(['b', 'B', 'i']) {
        t if t.ends_with(['k', 'K']) => (&t[..t.len() - 1], 1_u64 << 10),
        t if t.ends_with(['m', 'M']) => (&t[..t.len() - 1], 1 << 20),
        t if t.ends_with(['g', 'G']) => (&t[..t.len() - 1], 1 << 30),
        t => (t, 1),
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
