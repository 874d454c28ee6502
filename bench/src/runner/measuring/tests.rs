use super::*;
use crate::fake::{workload, workload_with, Behaviour, FakeSession};
use crate::normal::Generator;
use crate::results::{sample, Comparison};
use crate::runner::plan::matrix::{done, remaining};
use std::collections::HashSet;

/// A host whose sessions all behave alike.
///
/// It counts how often it was restored.
struct FakeHost {
    sessions: Vec<Box<dyn Session>>,
    recovered: usize,
    /// The tables that were loaded again.
    fresh: Vec<usize>,
}

impl FakeHost {
    fn new(generator: &Generator, behaviour: Behaviour) -> Self {
        let sessions = (0..6)
            .map(|_| -> Box<dyn Session> { Box::new(FakeSession::new(generator, behaviour)) })
            .collect();
        Self {
            sessions,
            recovered: 0,
            fresh: Vec::new(),
        }
    }
}

impl Host for FakeHost {
    fn sessions(&mut self, _: Engine, count: usize) -> Result<&mut [Box<dyn Session>]> {
        Ok(&mut self.sessions[..count])
    }

    fn peak_resident_bytes(&self, _: Engine) -> Option<u64> {
        Some(77)
    }

    fn cpu_seconds(&self, _: Engine) -> Option<f64> {
        None
    }

    fn kept(&self, engine: Engine) -> Kept {
        Kept {
            durability: engine.durability().to_owned(),
            cache_bytes: 1 << 27,
        }
    }

    fn load_again(&mut self, _: &Workload, _: Engine, tables: &[usize]) -> Result<()> {
        self.fresh.extend_from_slice(tables);
        Ok(())
    }

    fn drain(&mut self, _engine: Engine) -> Result<Option<Deferred>> {
        Ok(Some(Deferred {
            seconds: 3.0,
            server_cpu_s: None,
            written_bytes: None,
        }))
    }

    fn recover(&mut self, _: Engine) -> Result<Option<String>> {
        self.recovered += 1;
        Ok(Some("the server had crashed".to_owned()))
    }
}

/// Measures the sample matrix until `limit` lines are written; then the user interrupts it.
fn measurement_session(
    behaviour: Behaviour,
    lines: &mut Vec<Line>,
    limit: usize,
) -> (Result<()>, FakeHost) {
    measured_of(&workload(300), behaviour, lines, limit)
}

fn measured_of(
    workload: &Workload,
    behaviour: Behaviour,
    lines: &mut Vec<Line>,
    limit: usize,
) -> (Result<()>, FakeHost) {
    let settings = sample::settings();
    let generator = Generator::new(settings.seed, 300);
    let answers = Answers::compute(&generator, |_| ());
    let mut host = FakeHost::new(&generator, behaviour);
    let stop = AtomicBool::new(false);
    let cells = &settings.workloads[0].cells;
    let work = remaining(&settings, workload, cells, &done(lines));
    let mut progress = Progress::new();
    let mut written = 0;
    let mut write = |line: &Line| {
        lines.push(line.clone());
        written += 1;
        if written == limit {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    };
    let result = Measuring {
        settings: &settings,
        workload,
        answers: Some(&answers),
        stop: &stop,
        write: &mut write,
        progress: &mut progress,
    }
    .all(&work, &mut host);
    (result, host)
}

#[test]
fn an_interrupted_matrix_goes_on_where_it_stopped() {
    let mut lines = vec![Line::Header(Box::new(sample::header()))];
    let (result, _) = measurement_session(Behaviour::Right, &mut lines, 7);
    assert!(matches!(result, Err(HarnessError::Interrupted)));
    assert_eq!(lines.len(), 1 + 7);
    let (result, _) = measurement_session(Behaviour::Right, &mut lines, usize::MAX);
    result.expect("to the end");
    let cells = 2 * 2 * 2;
    assert_eq!(lines.len(), 1 + cells * 3);
    let distinct: HashSet<_> = done(&lines);
    assert_eq!(distinct.len(), cells * 3, "none twice");
    let comparison = Comparison::new(&lines);
    let summary = comparison
        .summary(Engine::Peregrine, Engine::InnoDb)
        .expect("a summary");
    assert_eq!((summary.cells, summary.void), (4, 0));
}

/// Measures the sample matrix with other settings.
fn measured_with(change: impl FnOnce(&mut RunSettings), workload: &Workload) -> Vec<Run> {
    let mut settings = sample::settings();
    change(&mut settings);
    let generator = Generator::new(settings.seed, 300);
    let mut host = FakeHost::new(&generator, Behaviour::Right);
    let cells = &settings.workloads[0].cells;
    let work = remaining(&settings, workload, cells, &HashSet::new());
    let mut runs = Vec::new();
    Measuring {
        settings: &settings,
        workload,
        answers: None,
        stop: &AtomicBool::new(false),
        write: &mut |line| {
            if let Line::Run(run) = line {
                runs.push(run.as_ref().clone());
            }
            Ok(())
        },
        progress: &mut Progress::new(),
    }
    .all(&work, &mut host)
    .expect("to the end");
    runs
}

#[test]
fn an_open_loop_is_written_down_with_its_rate() {
    let runs = measured_with(|settings| settings.rate = Some(500.0), &workload(300));
    for run in &runs {
        assert_eq!(run.due_rate, Some(500.0));
        // 20 ms, one every 2 ms.
        assert_eq!(run.queries + run.left, 10);
    }
    let runs = measured_with(|_| (), &workload(300));
    assert!(runs
        .iter()
        .all(|run| run.due_rate.is_none() && run.left == 0));
}

#[test]
fn the_first_run_of_a_cell_has_its_warm_up_and_those_that_wrote_what_was_put_off() {
    let runs = measured_with(
        |settings| settings.steady_percent = Some(5.0),
        &workload(300),
    );
    for run in &runs {
        // The warm-up ends after its 10 ms, long before it can be steady.
        let steady = run.warm_up.map(|warm_up| warm_up.steady);
        assert_eq!(steady, (run.run == 1).then_some(Some(false)));
        assert_eq!(run.deferred, None, "nothing was written");
        assert!(run.by_second.is_empty(), "it is shorter than two seconds");
    }
    let writing = workload_with(300, &[("writers", 1), ("writes", 1_000)]);
    let runs = measured_with(|_| (), &writing);
    for run in &runs {
        assert_eq!(run.deferred.map(|deferred| deferred.seconds), Some(3.0));
        let charged = run.rate * run.seconds / (run.seconds + 3.0);
        assert!((run.charged_rate() - charged).abs() < 1e-9 * charged);
    }
}

#[test]
fn what_ran_beside_is_written_down_and_its_errors_void_the_cell() {
    let writing = workload_with(300, &[("writers", 2), ("writes", 1_000)]);
    let mut lines = Vec::new();
    let (result, _) = measured_of(&writing, Behaviour::Right, &mut lines, usize::MAX);
    result.expect("to the end");
    for line in &lines {
        let Line::Run(run) = line else {
            panic!("a run")
        };
        let done: Vec<_> = run.beside.iter().collect();
        assert!(matches!(done[..], [(name, 1..)] if name == "TOGGLE_STATE"));
        assert!(run.is_valid(), "{:?}", run.problem);
    }
    let mut lines = Vec::new();
    let (result, _) = measured_of(&writing, Behaviour::WritesFail, &mut lines, usize::MAX);
    result.expect("to the end");
    for line in &lines {
        let Line::Run(run) = line else {
            panic!("a run")
        };
        assert!(run.queries > 0 && run.errors > 0 && !run.is_valid());
        assert!(run.problem.as_ref().expect("told").contains("beside"));
    }
}

#[test]
fn wrong_answers_are_written_down_and_void_their_cells() {
    let mut lines = Vec::new();
    let (result, host) = measurement_session(Behaviour::OneValueOff, &mut lines, usize::MAX);
    result.expect("to the end");
    assert_eq!(host.recovered, 0);
    for line in &lines {
        let Line::Run(run) = line else {
            panic!("a run")
        };
        // The warm-up's wrong answers are charged to the first run.
        assert!(if run.run == 1 {
            run.wrong > run.queries
        } else {
            run.wrong == run.queries
        });
        assert!(run.problem.as_ref().expect("told").contains("wrong answer"));
        assert_eq!(run.server_peak_rss_bytes, Some(77));
    }
    let comparison = Comparison::new(&lines);
    assert_eq!(comparison.summary(Engine::Peregrine, Engine::InnoDb), None);
    assert_eq!(comparison.faulty().len(), lines.len());
}

#[test]
fn a_failing_target_is_brought_back_and_its_cells_are_void() {
    let mut lines = Vec::new();
    let (result, host) = measurement_session(Behaviour::Fails, &mut lines, usize::MAX);
    result.expect("to the end");
    assert!(host.recovered >= lines.len());
    for line in &lines {
        let Line::Run(run) = line else {
            panic!("a run")
        };
        assert!(run.errors > 0);
        assert!(run
            .problem
            .as_ref()
            .expect("told")
            .contains("the server had crashed"));
    }
}

#[test]
fn figures_are_told_shortly() {
    let group = Group {
        workload: "normal".to_owned(),
        protocol: Protocol::Text,
        query: "READ_FTS".to_owned(),
        threads: 4,
    };
    let line = described(
        &group,
        "queries/s",
        &[
            (Engine::InnoDb, Some(10.0)),
            (Engine::Aria, None),
            (Engine::Peregrine, Some(25.0)),
        ],
    );
    assert!(
        line.contains("InnoDB 10, Aria void, Peregrine 25 (×2.50)"),
        "{line}"
    );
}

#[test]
fn what_is_done_once_is_timed_by_itself_on_fresh_tables() {
    let text = "name = 'o'\nabout = 'o'\nrun = 'once'\n\
        [[table]]\nname = 't'\nrows = 1\ncolumns = [{ name = 'id', type = 'int', value = 1 }]\n\
        [[transaction]]\nname = 'right'\nfresh = ['t']\nsteps = [{ repeat = 50, steps = ['DELETE FROM t'] }]\n\
        [[transaction]]\nname = 'wrong'\nsql = 'DELETE FROM t'\n\
        check = [{ sql = 'SELECT count(*) FROM t', answer = 0 }]\n";
    let workload = Workload::read(text, "o.toml", &crate::workload::Options::default());
    let workload = workload.expect("right");
    let settings = sample::settings();
    let mut host = FakeHost::new(&Generator::new(1, 10), Behaviour::Right);
    let cells = ["right".to_owned(), "wrong".to_owned()];
    let work = remaining(&settings, &workload, &cells, &HashSet::new());
    let mut lines = Vec::new();
    Measuring {
        settings: &settings,
        workload: &workload,
        answers: None,
        stop: &AtomicBool::new(false),
        write: &mut |line| {
            lines.push(line.clone());
            Ok(())
        },
        progress: &mut Progress::new(),
    }
    .all(&work, &mut host)
    .expect("to the end");
    assert_eq!(lines.len(), 2 * 2 * 3, "one number of threads");
    assert_eq!(host.fresh, [0; 2 * 3], "before each run");
    for line in &lines {
        let Line::Run(run) = line else {
            panic!("a run")
        };
        assert_eq!((run.threads, run.queries, run.unit.as_str()), (1, 1, "s"));
        // The fake returns an empty answer to an unknown statement, so the check finds NULL.
        assert_eq!(run.is_valid(), run.query == "right", "{:?}", run.problem);
        assert_eq!(run.statements, if run.query == "right" { 50 } else { 1 });
        if run.query == "right" {
            assert!((run.rate * run.seconds - 1.0).abs() < 0.5);
        }
    }
}
