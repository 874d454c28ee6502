//! The figures of a client's turn, and the medians of several turns.

use peregrine_harness::arithmetic;

/// One client's turn.
///
/// It counts queries or transactions. Processor time is that of all threads of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// The number of compared units done: queries, or new orders.
    pub counted: u64,
    /// The number of all units done: the same queries, or transactions of all kinds.
    pub done: u64,
    /// The length of the turn, in seconds.
    pub seconds: f64,
    /// Processor time of the server, in seconds.
    pub server_cpu: f64,
    /// Processor time of the client, in seconds.
    pub client_cpu: f64,
    /// The number of statements that the server got, if it was counted.
    pub statements: Option<u64>,
    /// Conflicts for which the server ended transactions; a client may have repeated these.
    pub conflicts: u64,
    /// Failures and wrong answers; if there are any, no figure of the turn counts.
    pub faults: u64,
}

/// The medians of several turns, each figure's its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Medians {
    /// Compared units a second.
    pub rate: f64,
    /// The lowest and the highest rate of a turn.
    pub between: (f64, f64),
    /// The server's processor time for each unit done, in microseconds.
    pub server_us: f64,
    /// The client's processor time for each unit done, in microseconds.
    pub client_us: f64,
    /// Statements for each unit done.
    pub statements: Option<f64>,
}

impl Medians {
    /// Computes the medians; returns `None` if there are no turns, or if one of them did nothing or had faults.
    #[must_use]
    pub fn of(turns: &[Turn]) -> Option<Self> {
        if turns.iter().any(|turn| turn.faults > 0) {
            return None;
        }
        let of = |figure: &dyn Fn(&Turn) -> Option<f64>| {
            let figures: Option<Vec<f64>> = turns.iter().map(figure).collect();
            figures.and_then(median)
        };
        let each = |time: f64, turn: &Turn| arithmetic::ratio(time * 1e6, turn.done as f64);
        let rate = |turn: &Turn| arithmetic::ratio(turn.counted as f64, turn.seconds);
        let rates = || turns.iter().filter_map(rate);
        Some(Self {
            rate: of(&rate).filter(|rate| *rate > 0.0)?,
            between: (arithmetic::minimum(rates())?, arithmetic::maximum(rates())?),
            server_us: of(&|turn| each(turn.server_cpu, turn))?,
            client_us: of(&|turn| each(turn.client_cpu, turn))?,
            statements: of(&|turn| arithmetic::ratio(turn.statements? as f64, turn.done as f64)),
        })
    }
}

/// Returns the middle value, or the mean of the middle two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(counted: u64, server_cpu: f64, client_cpu: f64) -> Turn {
        Turn {
            counted,
            done: counted * 2,
            seconds: 2.0,
            server_cpu,
            client_cpu,
            statements: Some(counted * 10),
            conflicts: 0,
            faults: 0,
        }
    }

    #[test]
    fn each_figure_has_its_own_median() {
        let turns = [
            turn(100, 0.02, 0.1),
            turn(300, 0.01, 0.2),
            turn(200, 0.03, 0.3),
        ];
        let medians = Medians::of(&turns).expect("medians");
        assert!((medians.rate - 100.0).abs() < 1e-9);
        assert_eq!(medians.between, (50.0, 150.0));
        // The three values are 100, 16.7 and 75 µs.
        assert!((medians.server_us - 75.0).abs() < 1e-9);
        assert!((medians.client_us - 500.0).abs() < 1e-9);
        assert_eq!(medians.statements, Some(5.0));
        let two = Medians::of(&turns[..2]).expect("medians");
        assert!((two.rate - 100.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_done_and_faults_leave_no_medians() {
        assert_eq!(Medians::of(&[]), None);
        assert_eq!(Medians::of(&[turn(0, 0.1, 0.1)]), None);
        let faulty = Turn {
            faults: 1,
            ..turn(100, 0.1, 0.1)
        };
        assert_eq!(Medians::of(&[turn(100, 0.1, 0.1), faulty]), None);
        let uncounted = Turn {
            statements: None,
            ..turn(100, 0.1, 0.1)
        };
        let medians = Medians::of(&[uncounted]).expect("medians");
        assert_eq!(medians.statements, None);
    }
}
