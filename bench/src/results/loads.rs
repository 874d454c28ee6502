//! The times and sizes of loading, over all its runs.

use super::record::{Line, Load};
use peregrine_harness::arithmetic::minimum;
use peregrine_harness::engines::Engine;

/// The loading of an engine's tables for a workload.
///
/// Each time is the minimum over the runs. The sizes are those of the first run, before other tables had been in the
/// files. If a run occurs twice, the last one counts.
#[must_use]
pub fn of(lines: &[Line], workload: &str, engine: Engine) -> Option<Load> {
    let mut runs: Vec<&Load> = Vec::new();
    for line in lines {
        if let Line::Load(load) = line {
            if load.engine == engine && load.workload == workload {
                runs.retain(|other| other.run != load.run);
                runs.push(load);
            }
        }
    }
    let first = runs.iter().min_by_key(|load| load.run)?;
    let least_of =
        |time: &dyn Fn(&Load) -> Option<f64>| minimum(runs.iter().filter_map(|load| time(load)));
    Some(Load {
        seconds: least_of(&|load| Some(load.seconds)).unwrap_or(first.seconds),
        load_data_s: least_of(&|load| Some(load.load_data_s)).unwrap_or(first.load_data_s),
        insert_s: least_of(&|load| load.insert_s),
        index_s: least_of(&|load| load.index_s),
        ..(*first).clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    #[test]
    fn times_are_the_least_and_sizes_the_first() {
        let Line::Load(load) = sample::lines().swap_remove(1) else {
            panic!("a load")
        };
        let run = |run, seconds, insert_s, disk_bytes| {
            Line::Load(Load {
                run,
                seconds,
                insert_s,
                disk_bytes,
                ..load.clone()
            })
        };
        let lines = [
            run(1, 9.0, Some(4.0), 70),
            run(2, 3.0, Some(6.0), 90),
            run(1, 5.0, Some(4.5), 100),
            run(3, 4.0, None, 80),
        ];
        let found = of(&lines, "normal", Engine::InnoDb).expect("loaded");
        assert_eq!(
            (found.seconds, found.insert_s, found.disk_bytes),
            (3.0, Some(4.5), 100)
        );
        assert_eq!(of(&lines, "join", Engine::InnoDb), None);
        assert_eq!(of(&lines, "normal", Engine::Aria), None);
    }
}
