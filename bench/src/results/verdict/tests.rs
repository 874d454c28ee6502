use super::*;
use crate::results::sample;

/// Lines of the sample's matrix (two queries at 1 and 4 threads), with three runs of every engine near its figure.
fn lines(figures: &[(Engine, [f64; 4])]) -> Vec<Line> {
    let mut header = sample::header();
    header.settings.engines = figures.iter().map(|(engine, _)| *engine).collect();
    header.machine.cores = 4;
    let mut lines = vec![Line::Header(Box::new(header))];
    for (engine, rates) in figures {
        let cells = ["READ_PK_POINT", "READ_FTS"]
            .into_iter()
            .flat_map(|query| [(query, 1), (query, 4)]);
        for ((query, threads), rate) in cells.zip(rates) {
            for (run, part) in [(1, 0.9), (2, 1.0), (3, 0.95)] {
                let rate = rate * part;
                let mut run = sample::run(*engine, query, threads, run, rate);
                run.beside.clear();
                lines.push(Line::Run(run));
            }
        }
    }
    lines
}

fn verdict(lines: &[Line], thresholds: &str) -> (Verdict, String) {
    let thresholds = Thresholds::read(
        &format!("engine = \"peregrine\"\n{thresholds}"),
        "thresholds.toml",
    )
    .expect("thresholds");
    let verdict = Verdict::of(lines, &thresholds).expect("a verdict");
    let told = verdict.to_string();
    (verdict, told)
}

const SAME: [f64; 4] = [100.0; 4];

#[test]
fn thresholds_that_are_reached_exactly_hold() {
    let lines = lines(&[
        (Engine::InnoDb, SAME),
        (Engine::Peregrine, [110.0, 220.0, 200.0, 400.0]),
    ]);
    let thresholds = "geometric_mean = 2.0\n[minimum]\nREAD_PK_POINT = 1.1\nREAD_FTS = 2";
    let (found, told) = verdict(&lines, thresholds);
    assert!(found.held(), "{told}");
    assert_eq!((found.below.len(), found.compared), (0, 4));
    // The fourth root of 1.1 × 2.2 × 2 × 4 = 19.36 is 2.098.
    assert!(
        told.starts_with(
            "held: Peregrine, 4 cells beside InnoDB: geometric mean 2.10 (2 required)"
        ),
        "{told}"
    );
    assert!(
        told.contains("lowest 1.00 of its threshold: 1.10 at READ_PK_POINT, 1 threads, text"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn cells_below_are_told_with_all_runs_and_ties_as_such() {
    let lines = lines(&[
        (Engine::InnoDb, SAME),
        (Engine::Peregrine, [105.0, 50.0, 300.0, 300.0]),
    ]);
    let (found, told) = verdict(&lines, "[minimum]\nREAD_PK_POINT = 1.1");
    assert!(!found.held());
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(
        told[0],
        "below: READ_PK_POINT, 1 threads, text: 1.050 times InnoDB, 1.1 required; \
         Peregrine 94.50 99.75 105, InnoDB 90.00 95.00 100; a tie, the runs are as far apart"
    );
    assert!(told[1].starts_with("below: READ_PK_POINT, 4 threads"));
    assert!(!told[1].contains("tie"), "{}", told[1]);
    assert!(told[2].starts_with("NOT HELD: "));
    assert!(told[2].contains("2 below (1 of them ties), 0 missing"));
    assert!(told[2].contains("lowest 0.45 of its threshold: 0.50 at READ_PK_POINT, 4 threads"));
    assert_eq!(told.len(), 3);
}

#[test]
fn the_mean_alone_can_be_too_small() {
    let lines = lines(&[(Engine::InnoDb, SAME), (Engine::Peregrine, [190.0; 4])]);
    let (found, told) = verdict(&lines, "geometric_mean = 2.0");
    assert!(!found.held() && found.below.is_empty(), "{told}");
    assert!(verdict(&lines, "geometric_mean = 1.9").0.held());
}

#[test]
fn the_best_of_the_others_counts_in_each_cell() {
    let lines = lines(&[
        (Engine::InnoDb, [100.0, 100.0, 90.0, 90.0]),
        (Engine::MyIsam, [50.0, 150.0, 80.0, 80.0]),
        (Engine::Peregrine, [120.0, 120.0, 100.0, 100.0]),
    ]);
    let (found, told) = verdict(&lines, "best_of = [\"innodb\", \"myisam\"]");
    assert!(!found.held());
    assert_eq!(found.below.len(), 1, "{told}");
    let below = &found.below[0];
    assert_eq!(below.with, With::Engine(Engine::MyIsam));
    assert!((below.ratio - 0.8).abs() < 1e-12);
    assert_eq!(found.compared, 4);
    assert!(told.contains("beside the best of InnoDB, MyISAM"), "{told}");
}

#[test]
fn figures_must_rise_up_to_the_processors() {
    let mut lines = lines(&[(Engine::Peregrine, [100.0, 150.0, 100.0, 80.0])]);
    let (found, told) = verdict(&lines, "rising_to = \"cores\"");
    assert!(!found.held());
    assert_eq!((found.compared, found.below.len()), (2, 1), "{told}");
    assert!(
        told.contains("READ_FTS, 4 threads, text: 0.800 times 1 threads, 1 required"),
        "{told}"
    );
    if let Some(Line::Header(header)) = lines.first_mut() {
        header.machine.cores = 2;
    }
    let (found, _) = verdict(&lines, "rising_to = \"cores\"");
    assert_eq!(
        (found.compared, found.held()),
        (0, false),
        "nothing to compare"
    );
}

#[test]
fn what_was_not_measured_or_wrong_does_not_hold() {
    let all = lines(&[(Engine::InnoDb, SAME), (Engine::Peregrine, [200.0; 4])]);
    let thresholds = "[minimum]\nREAD_PK_POINT = 1\nREAD_FTS = 1";
    assert!(verdict(&all, thresholds).0.held());
    let of = |line: &Line, engine: Engine, run: u32| {
        matches!(line, Line::Run(found) if found.engine == engine && found.run == run
            && found.query == "READ_FTS" && found.threads == 4)
    };
    // One run fewer than required, on either side.
    for engine in [Engine::InnoDb, Engine::Peregrine] {
        let mut some = all.clone();
        some.retain(|line| !of(line, engine, 3));
        let (found, told) = verdict(&some, thresholds);
        assert!(!found.held(), "{told}");
        let missing = format!("READ_FTS, 4 threads, text on {}: 2 of 3", engine.title());
        assert!(told.contains(&missing), "{told}");
        assert_eq!(found.missing.len(), 1);
    }
    // A wrong answer.
    let mut wrong = all.clone();
    for line in &mut wrong {
        if of(line, Engine::InnoDb, 1) {
            if let Line::Run(run) = line {
                run.wrong = 3;
                run.problem = Some("a value is off".to_owned());
            }
        }
    }
    let (found, told) = verdict(&wrong, thresholds);
    assert!(!found.held());
    assert!(
        told.contains("void, 3 wrong, 0 failed: a value is off"),
        "{told}"
    );
    // An engine that is missing completely, and a query.
    let (found, told) = verdict(&all, "best_of = [\"aria\"]");
    assert!(!found.held());
    assert_eq!(found.missing.len(), 4, "{told}");
    let (found, told) = verdict(&all, "[minimum]\nREAD_ALL = 1");
    assert!(!found.held());
    assert!(told.contains("READ_ALL: not among"), "{told}");
    // Lines without a header.
    let thresholds = Thresholds::read("engine = \"aria\"\ngeometric_mean = 1", "thresholds.toml")
        .expect("thresholds");
    assert!(Verdict::of(&all[1..], &thresholds).is_err());
}

#[test]
fn what_ran_beside_is_told_by_engine() {
    let mut lines = lines(&[(Engine::InnoDb, SAME), (Engine::Peregrine, [200.0; 4])]);
    assert!(!verdict(&lines, "geometric_mean = 1").1.contains("beside:"));
    for line in &mut lines {
        if let Line::Run(run) = line {
            run.seconds = 0.5;
            let done = if run.engine == Engine::InnoDb { 20 } else { 50 };
            run.beside = [("WRITE".to_owned(), done)].into();
        }
    }
    let (_, told) = verdict(&lines, "geometric_mean = 1");
    assert!(
        told.ends_with("; transactions a second beside: InnoDB 40.0, Peregrine 100.0"),
        "{told}"
    );
}
