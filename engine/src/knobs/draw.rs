//! Values of knobs from a seed.

use super::Knob;
use crate::random::next;

/// The values of all knobs of `table` for a seed.
pub fn values(table: &[Knob], seed: u64) -> Vec<u64> {
    table.iter().map(|knob| value(knob, seed)).collect()
}

/// A quarter of the draws give the default, three eighths the least value, the others any value in the range.
///
/// Small numbers come as often as large ones. Each knob's value depends on its name: a new knob changes no other.
fn value(knob: &Knob, seed: u64) -> u64 {
    let mut state = seed;
    for byte in knob.name.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    match next(&mut state) % 8 {
        0 | 1 => knob.default,
        2..=4 => knob.least,
        _ => {
            let span = knob.most - knob.least;
            let bits = 64 - u64::from(span.leading_zeros());
            let mask = u64::MAX >> (64 - (1 + next(&mut state) % bits.max(1)));
            knob.least + (next(&mut state) & mask).min(span)
        }
    }
}

/// The content of `PEREGRINE_SHAKEN`: a seed, and values of single knobs.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    pub seed: Option<u64>,
    pub single: Vec<(&'a str, u64)>,
}

/// Parses the content of `PEREGRINE_SHAKEN`.
///
/// # Errors
/// The part that can't be parsed.
pub fn asked(text: &str) -> Result<Asked<'_>, String> {
    let mut parts = text.split(',').map(str::trim);
    let seed = match parts.next().unwrap_or_default() {
        "" => None,
        seed => Some(seed.parse().map_err(|_| format!("{seed} is no seed"))?),
    };
    let single = parts.map(|part| {
        let pair = part.split_once('=');
        let pair = pair.and_then(|(name, value)| Some((name, value.parse().ok()?)));
        pair.ok_or_else(|| format!("{part} is no knob with its value"))
    });
    Ok(Asked {
        seed,
        single: single.collect::<Result<_, _>>()?,
    })
}

/// The values according to `PEREGRINE_SHAKEN`.
///
/// # Panics
/// For an invalid content: a build for tests must not run with other values than asked for.
#[cfg(feature = "shaken")]
pub fn drawn(table: &[Knob]) -> Vec<u64> {
    use std::io::Write;

    let text = std::env::var("PEREGRINE_SHAKEN").unwrap_or_default();
    let asked = asked(&text).unwrap_or_else(|error| panic!("PEREGRINE_SHAKEN: {error}"));
    let seed = asked.seed.unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        since.map_or(0, |since| since.as_nanos() as u64) ^ u64::from(std::process::id())
    });
    let mut values = values(table, seed);
    for (name, value) in asked.single {
        let at = table.iter().position(|knob| knob.name == name);
        let at = at.unwrap_or_else(|| panic!("PEREGRINE_SHAKEN: {name} is no knob"));
        values[at] = value;
    }
    // Not by a macro: tests would capture its output.
    let _ = writeln!(std::io::stderr(), "shaken: PEREGRINE_SHAKEN={seed}");
    values
}
