//! Shortens a script that shows a difference.
//!
//! The algorithm is that of Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002: it leaves
//! out parts, ever smaller ones.

use peregrine_harness::error::Result;

/// Leaves out lines that `differs` does not need, with at most `tries` calls of `differs`.
///
/// # Errors
/// Those of `differs`.
pub fn shrunk<T: Clone>(
    script: &[T],
    mut tries: u32,
    mut differs: impl FnMut(&[T]) -> Result<bool>,
) -> Result<Vec<T>> {
    let mut script = script.to_vec();
    let mut part = script.len().div_ceil(2);
    while part > 0 {
        let mut begin = 0;
        let before = script.len();
        while begin < script.len() {
            if tries == 0 {
                return Ok(script);
            }
            tries -= 1;
            let mut shorter = script.clone();
            shorter.drain(begin..(begin + part).min(script.len()));
            if differs(&shorter)? {
                script = shorter;
            } else {
                begin += part;
            }
        }
        if part == 1 && script.len() == before {
            break;
        }
        part = match part {
            1 => 1,
            more => more / 2,
        };
    }
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_stays() {
        let script: Vec<u32> = (0..100).collect();
        let needed = [3, 50, 99];
        let differs = |some: &[u32]| Ok(needed.iter().all(|n| some.contains(n)));
        assert_eq!(shrunk(&script, 1_000, differs).unwrap(), needed);
        let few = shrunk(&script, 10, differs).unwrap();
        assert!(few.len() < 100 && needed.iter().all(|n| few.contains(n)));
    }
}
