//! Statistics that summarize a comparison.

/// Returns the geometric mean.
///
/// This mean fits ratios: exchanging the baseline with the other side inverts it. Returns `None` if there are no
/// values, or if a value is not above zero.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty()
        || values
            .iter()
            .any(|value| value.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater))
    {
        return None;
    }
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();

    Some((logarithms / values.len() as f64).exp())
}

/// Returns `value` divided by `baseline`, or `None` if `baseline` is not above zero or `value` is not finite.
#[must_use]
pub fn ratio(value: f64, baseline: f64) -> Option<f64> {
    (baseline > 0.0 && value.is_finite()).then(|| value / baseline)
}

/// Returns the largest of the values.
#[must_use]
pub fn maximum(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().fold(None, |highest, value| {
        Some(highest.map_or(value, |highest: f64| highest.max(value)))
    })
}

/// Returns the smallest of the values.
#[must_use]
pub fn minimum(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().fold(None, |minimum, value| {
        Some(minimum.map_or(value, |minimum: f64| minimum.min(value)))
    })
}

/// Returns the maximum of a cell's runs less their minimum, or `None` for fewer than two runs.
#[must_use]
pub fn spread(runs: &[f64]) -> Option<f64> {
    let apart = maximum(runs.iter().copied())? - minimum(runs.iter().copied())?;
    (runs.len() > 1).then_some(apart)
}

/// Returns whether chance may have decided which of two cells is the faster.
///
/// A cell's figure is the highest of its runs. Two cells tie if their figures are no further apart than the runs of
/// either cell. Returns `None` if one of the cells has fewer than two runs.
///
/// For two cells of the same thing, this function may wrongly find a difference. With three runs each, it does so about
/// 3 to 7 times in a hundred (runs that vary to one side, or to both). With five runs each, it does so less than once.
#[must_use]
pub fn tie(runs: &[f64], others: &[f64]) -> Option<bool> {
    let apart = maximum(runs.iter().copied())? - maximum(others.iter().copied())?;
    Some(apart.abs() <= spread(runs)?.max(spread(others)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-12)
    }

    #[test]
    fn geometric_means_computed_by_hand() {
        assert!(close(geometric_mean(&[2.0, 8.0]), 4.0));
        assert!(close(geometric_mean(&[0.5, 2.0]), 1.0));
        assert!(close(geometric_mean(&[1.0, 3.0, 9.0]), 3.0));
        assert!(close(geometric_mean(&[1.2]), 1.2));
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn ratios_need_a_baseline() {
        assert!(close(ratio(150.0, 100.0), 1.5));
        assert!(close(ratio(0.0, 100.0), 0.0));
        assert_eq!(ratio(1.0, 0.0), None);
        assert_eq!(ratio(f64::INFINITY, 1.0), None);
    }

    #[test]
    fn extremes() {
        assert_eq!(maximum([3.0, 7.0, 5.0]), Some(7.0));
        assert_eq!(minimum([3.0, 7.0, 5.0]), Some(3.0));
        assert_eq!(maximum([]), None);
        assert_eq!(minimum([]), None);
    }

    #[test]
    fn spreads_need_two_runs() {
        assert!(close(spread(&[100.0, 90.0, 97.0]), 10.0));
        assert!(close(spread(&[5.0, 5.0]), 0.0));
        assert_eq!(spread(&[100.0]), None);
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn ties_computed_by_hand() {
        // 120 and 125 are 5 apart; the runs are up to 10 apart.
        assert_eq!(tie(&[110.0, 120.0, 115.0], &[125.0, 122.0]), Some(true));
        // The larger spread counts, on either side.
        assert_eq!(tie(&[125.0, 122.0], &[110.0, 120.0, 115.0]), Some(true));
        // 120 and 131 are 11 apart; the runs are up to 10 apart.
        assert_eq!(tie(&[110.0, 120.0], &[131.0, 122.0]), Some(false));
        // Figures exactly as far apart as the runs still tie.
        assert_eq!(tie(&[110.0, 120.0], &[130.0, 130.0]), Some(true));
        // Runs that overlap always tie: 105 lies within 90 to 120.
        assert_eq!(tie(&[90.0, 120.0], &[100.0, 105.0]), Some(true));
        assert_eq!(tie(&[7.0, 7.0], &[7.0, 7.0]), Some(true));
        assert_eq!(tie(&[7.0, 7.0], &[7.1, 7.1]), Some(false));
        assert_eq!(tie(&[100.0], &[200.0, 201.0]), None);
        assert_eq!(tie(&[200.0, 201.0], &[]), None);
    }
}
