use std::collections::VecDeque;
use std::sync::Arc;

use super::*;
use crate::workload::Options;
use peregrine_harness::engines::{Engine, Protocol, RowSink, Statement, Value};

/// A session that records its statements and answers as its script says.
#[derive(Default)]
struct Scripted {
    statements: Arc<[Statement]>,
    asked: Vec<String>,
    answers: VecDeque<Scene>,
}

enum Scene {
    Rows(Vec<Vec<i64>>),
    Fails(u16),
}

impl Session for Scripted {
    fn prepare(&mut self, _: Engine, _: Protocol, statements: &Arc<[Statement]>) -> Result<()> {
        self.statements = Arc::clone(statements);
        Ok(())
    }

    fn execute(
        &mut self,
        statement: usize,
        parameters: &[Datum],
        rows: &mut dyn RowSink,
    ) -> Result<()> {
        let mut text = String::new();
        self.statements[statement].write(parameters, &mut text);
        self.asked.push(text.clone());
        match self.answers.pop_front() {
            None => Ok(()),
            Some(Scene::Rows(answer)) => {
                for row in answer {
                    let values: Vec<Value<'_>> = row
                        .iter()
                        .map(|number| u64::try_from(*number).map_or(Value::Null, Value::Integer))
                        .collect();
                    rows.row(&values);
                }
                Ok(())
            }
            Some(Scene::Fails(code)) => Err(HarnessError::Sql {
                statement: text,
                source: Box::new(mysql::Error::MySqlError(mysql::error::MySqlError {
                    state: "40001".to_owned(),
                    message: "failed".to_owned(),
                    code,
                })),
            }),
        }
    }

    fn roll_back(&mut self) -> Result<()> {
        self.asked.push("(rolled back)".to_owned());
        Ok(())
    }

    fn keep_on(&mut self, _: &[usize]) -> Result<()> {
        Ok(())
    }
}

fn workload(transactions: &str) -> Workload {
    let file = format!(
        "name = 't'\nabout = 't'\nrun = 'mix'\n[[table]]\nname = 't'\nrows = 9\n\
         columns = [{{ name = 'id', type = 'int', value = 'row' }}]\n{transactions}"
    );
    Workload::read(&file, "t.toml", &Options::default()).expect("right")
}

/// Runs the first transaction once, and returns its statements and its outcome.
fn run(transactions: &str, answers: Vec<Scene>) -> (Vec<String>, Result<Done>) {
    let workload = workload(transactions);
    let counters = Counters::new(vec![100; workload.counters.len()]);
    let mut client = Client::new(&workload, &counters, None, (1, 1), (0, 1));
    let mut session = Scripted {
        answers: answers.into(),
        ..Scripted::default()
    };
    let prepared = session.prepare(Engine::InnoDb, Protocol::Text, &workload.statements);
    prepared.expect("prepared");
    let done = client.run(0, &mut session);
    (session.asked, done)
}

#[test]
fn answers_go_into_variables_and_rounds_are_counted() {
    let (asked, done) = run(
        r#"
[[transaction]]
name = "x"
steps = [
  "BEGIN",
  { sql = "SELECT a, b FROM t", into = ["a", "b"] },
  { repeat = "a", count = "n", when = "n != 2", draw = { sum = "b + n" }, steps = ["SELECT :sum, :n"] },
  "COMMIT",
]
"#,
        vec![
            Scene::Rows(vec![]),
            Scene::Rows(vec![vec![3, 10], vec![8, 8]]),
        ],
    );
    let done = done.expect("done");
    assert_eq!(
        asked,
        [
            "BEGIN",
            "SELECT a, b FROM t",
            "SELECT 11, 1",
            "SELECT 13, 3",
            "COMMIT"
        ]
    );
    assert_eq!((done.statements, done.rolled_back), (5, false));
    assert_eq!(done.wrong, None);
}

#[test]
fn the_middle_row_is_the_first_of_two() {
    for (rows, middle) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
        let answer = (1..=rows).map(|row| vec![row]).collect();
        let (asked, _) = run(
            r#"
[[transaction]]
name = "x"
steps = [{ sql = "SELECT a FROM t", into = ["a"], pick = "middle" }, "SELECT :a"]
"#,
            vec![Scene::Rows(answer)],
        );
        assert_eq!(asked[1], format!("SELECT {middle}"), "of {rows}");
    }
}

#[test]
fn an_empty_answer_gives_null_or_ends_the_transaction() {
    let (asked, _) = run(
        r#"
[[transaction]]
name = "x"
steps = [{ sql = "SELECT a FROM t", into = ["a"] }, "SELECT :a"]
"#,
        vec![Scene::Rows(vec![])],
    );
    assert_eq!(asked[1], "SELECT NULL");
    let (asked, done) = run(
        r#"
[[transaction]]
name = "x"
steps = ["BEGIN", { repeat = 3, steps = [{ sql = "SELECT a FROM t", if_empty = "rollback" }] }, "COMMIT"]
"#,
        vec![
            Scene::Rows(vec![]),
            Scene::Rows(vec![vec![1]]),
            Scene::Rows(vec![]),
        ],
    );
    assert_eq!(asked[3], "(rolled back)");
    assert_eq!(asked.len(), 4);
    assert!(done.expect("done").rolled_back);
}

const TWO: &str = r#"
[[transaction]]
name = "x"
draw = { a = { uniform = [1, 1_000_000] }, n = { next = "t.id" } }
steps = ["BEGIN", "SELECT :a", "COMMIT"]
"#;

#[test]
fn after_a_conflict_the_same_values_are_tried_again() {
    let (asked, done) = run(
        TWO,
        vec![
            Scene::Rows(vec![]),
            Scene::Fails(1213),
            Scene::Rows(vec![]),
            Scene::Rows(vec![]),
            Scene::Fails(1020),
        ],
    );
    let done = done.expect("done");
    assert_eq!(done.conflicts, BTreeMap::from([(1020, 1), (1213, 1)]));
    let shape: Vec<&str> = asked
        .iter()
        .map(|text| &text[..6.min(text.len())])
        .collect();
    assert_eq!(
        shape,
        [
            "BEGIN", "SELECT", "(rolle", "BEGIN", "SELECT", "COMMIT", "(rolle", "BEGIN", "SELECT",
            "COMMIT"
        ]
    );
    assert!(asked[1] == asked[4] && asked[4] == asked[8], "{asked:?}");
}

#[test]
fn other_errors_end_it_and_conflicts_are_not_met_for_ever() {
    let (asked, done) = run(TWO, vec![Scene::Rows(vec![]), Scene::Fails(1146)]);
    assert_eq!(done.expect_err("failed").code(), Some(1146));
    assert_eq!(asked.last().map(String::as_str), Some("(rolled back)"));
    let always = (0..2_000)
        .flat_map(|_| [Scene::Rows(vec![]), Scene::Fails(1205)])
        .collect();
    let (asked, done) = run(TWO, always);
    assert_eq!(done.expect_err("failed").code(), Some(1205));
    assert_eq!(
        asked.len(),
        3 * usize::try_from(MOST_RETRIES).expect("a number")
    );
}

#[test]
fn answers_with_too_many_or_too_few_rows_are_wrong() {
    let text = r#"
[[transaction]]
name = "x"
draw = { most = 2 }
sql = "SELECT a FROM t WHERE a < :most"
rows = [1, "most"]
"#;
    for (rows, right) in [(0, false), (1, true), (2, true), (3, false)] {
        let answer = vec![vec![1]; rows];
        let (_, done) = run(text, vec![Scene::Rows(answer)]);
        let wrong = done.expect("done").wrong;
        assert_eq!(wrong.is_none(), right, "{rows}: {wrong:?}");
        if let Some(wrong) = wrong {
            assert!(wrong.contains("x with [2]"), "{wrong}");
        }
    }
}

#[test]
fn transactions_are_chosen_by_their_weights() {
    let workload = workload(
        "[[transaction]]\nname = 'a'\nweight = 1\nsql = 'SELECT 1'\n\
         [[transaction]]\nname = 'b'\nweight = 0\nsql = 'SELECT 1'\n\
         [[transaction]]\nname = 'c'\nweight = 3\nsql = 'SELECT 1'\n",
    );
    let counters = Counters::default();
    let mut client = Client::new(&workload, &counters, None, (1, 1), (0, 1));
    let among = workload.transactions_of("mix");
    assert_eq!(among, [0, 2]);
    let chosen: Vec<usize> = (0..10_000).map(|_| client.choose(&among)).collect();
    let first = chosen.iter().filter(|at| **at == 0).count();
    assert!((2_300..2_700).contains(&first), "{first}");
}

#[test]
fn clients_of_a_counter_never_get_the_same() {
    let counters = Counters::new(vec![10]);
    assert_eq!([counters.next(0), counters.next(0)], [11, 12]);
    assert_eq!(counters.newest(0), 12);
}

#[test]
fn time_to_think_is_drawn() {
    let workload = workload(
        "[[transaction]]\nname = 'a'\nthink_ms = { uniform = [2, 4] }\nsql = 'SELECT 1'\n\
         [[transaction]]\nname = 'b'\nsql = 'SELECT 1'\n",
    );
    let counters = Counters::default();
    let mut client = Client::new(&workload, &counters, None, (1, 1), (0, 1));
    assert!((0..100).all(|_| (2..=4).contains(&client.think_ms(0))));
    assert_eq!(client.think_ms(1), 0);
}

#[test]
fn several_rows_of_one_statement_have_draws_of_their_own() {
    let (asked, result) = run(
        "[[transaction]]\nname = 'a'\ndraw = { n = 7 }\nsteps = [{ repeat = 2, count = 's', steps = [\n\
         { sql = 'INSERT INTO t (id, of) VALUES', values = \"(:id, 'r:s', :n)\", repeat = 3, count = 'r',\n\
         draw = { id = '10 * s + r' } }] }]",
        Vec::new(),
    );
    assert_eq!(result.expect("done").statements, 2);
    assert_eq!(
        asked,
        [
            "INSERT INTO t (id, of) VALUES (11, 'r:s', 7), (12, 'r:s', 7), (13, 'r:s', 7)",
            "INSERT INTO t (id, of) VALUES (21, 'r:s', 7), (22, 'r:s', 7), (23, 'r:s', 7)",
        ]
    );
}

#[test]
fn an_answer_that_is_not_the_expected_one_is_wrong() {
    let file = "[[transaction]]\nname = 'a'\nsql = 'SELECT count(*) FROM t'\nanswer = '3 * 3'";
    for (rows, wrong) in [
        (vec![vec![9]], None),
        (vec![vec![8]], Some("8, 9 expected")),
        (vec![vec![-1]], Some("NULL, 9 expected")),
        (Vec::new(), Some("NULL, 9 expected")),
    ] {
        let (_, result) = run(file, vec![Scene::Rows(rows)]);
        let found = result.expect("done").wrong;
        match wrong {
            None => assert_eq!(found, None),
            Some(told) => assert!(found.is_some_and(|found| found.ends_with(told)), "{told}"),
        }
    }
}

#[test]
fn checks_are_asked_by_themselves() {
    let file = "name = 't'\nabout = 't'\nrun = 'once'\n[[table]]\nname = 't'\nrows = 9\n\
                columns = [{ name = 'id', type = 'int', value = 'row' }]\n\
                [[transaction]]\nname = 'a'\nfresh = ['t']\nsteps = ['DELETE FROM t']\n\
                check = [{ sql = 'SELECT count(*) FROM t', answer = 0 }]";
    let workload = Workload::read(file, "t.toml", &Options::default()).expect("right");
    assert_eq!(workload.transactions[0].fresh, [0]);
    let counters = Counters::default();
    let mut client = Client::new(&workload, &counters, None, (1, 2), (0, 1));
    let mut session = Scripted::default();
    session
        .prepare(Engine::InnoDb, Protocol::Text, &workload.statements)
        .expect("ready");
    client.run(0, &mut session).expect("done");
    session.answers.push_back(Scene::Rows(vec![vec![5]]));
    let done = client.check(0, &mut session).expect("asked");
    assert_eq!(session.asked, ["DELETE FROM t", "SELECT count(*) FROM t"]);
    let wrong = done.wrong.expect("wrong");
    assert!(wrong.contains("5, 0 expected"), "{wrong}");
}

#[test]
fn a_client_that_is_stopped_leaves_a_transaction_of_many_rounds() {
    let workload = workload(
        "[[transaction]]\nname = 'a'\nsteps = ['BEGIN', { repeat = 1000000, steps = ['DELETE FROM t'] }, 'COMMIT']",
    );
    let counters = Counters::default();
    let stop = AtomicBool::new(true);
    let mut client = Client::new(&workload, &counters, None, (1, 2), (0, 1)).until(&stop);
    let mut session = Scripted::default();
    session
        .prepare(Engine::InnoDb, Protocol::Text, &workload.statements)
        .expect("ready");
    let result = client.run(0, &mut session);
    assert!(matches!(result, Err(HarnessError::Interrupted)));
    assert_eq!(session.asked, ["BEGIN", "(rolled back)"]);
}

/// A session that only counts its statements and the rows that it sends to the server.
#[derive(Default)]
struct Counting {
    statements: Arc<[Statement]>,
    asked: usize,
    rows: usize,
}

impl Session for Counting {
    fn prepare(&mut self, _: Engine, _: Protocol, statements: &Arc<[Statement]>) -> Result<()> {
        self.statements = Arc::clone(statements);
        Ok(())
    }

    fn execute(
        &mut self,
        statement: usize,
        parameters: &[Datum],
        _: &mut dyn RowSink,
    ) -> Result<()> {
        let mut text = String::new();
        self.statements[statement].write(parameters, &mut text);
        assert!(!text.contains("NULL"), "{text}");
        if text.starts_with("INSERT") {
            self.rows += 1 + text.matches("), (").count();
        } else {
            self.asked += 1;
        }
        Ok(())
    }

    fn roll_back(&mut self) -> Result<()> {
        Ok(())
    }

    fn keep_on(&mut self, _: &[usize]) -> Result<()> {
        Ok(())
    }
}

#[test]
fn operations_are_repeated_as_often_as_published() {
    let shipped = crate::workload::builtin::ALL
        .iter()
        .find(|shipped| shipped.name == "operations");
    let text = shipped.expect("shipped").text;
    let workload = Workload::read(text, "operations", &Options::default()).expect("right");
    let counters = Counters::default();
    // The numbers of statements. Statements that the published names do not count are added after `+`.
    let published = [
        ("alter_table_add", 99 * 3 + 1),
        ("count", 100),
        ("count_distinct", 1_000),
        ("count_distinct_2", 1_000),
        ("count_group_on_key_parts", 1_000),
        ("count_on_key", 50_100),
        ("delete_all_many_keys", 128 + 1),
        ("insert", 4 * 2),
        ("outer_join", 10),
        ("select_key2_return_prim", 200_000),
        ("select_many_fields", 2_000),
        ("update_big", 10),
        ("update_of_key_big", 501 + 1),
        ("update_of_primary_key_many_keys", 256 + 2),
        ("update_with_key_prefix", 100_000),
    ];
    assert_eq!(workload.cells(), published.map(|(name, _)| name));
    for (at, (name, asked)) in published.into_iter().enumerate() {
        let mut session = Counting::default();
        session
            .prepare(Engine::InnoDb, Protocol::Text, &workload.statements)
            .expect("ready");
        let mut client = Client::new(&workload, &counters, None, (1, 0), (0, 1));
        client.run(at, &mut session).expect("done");
        assert_eq!(session.asked, asked, "{name}");
        let rows = if name == "insert" { 350_768 } else { 0 };
        assert_eq!(session.rows, rows, "{name}");
    }
}

/// An order of two or three lines, each with an item.
const ORDER: &str = r#"
[[transaction]]
name = "order"
draw = { lines = { uniform = [2, 3] } }
list = [{ name = "line", length = "lines", most = 3, count = "n", draw = { item = "100 * n", quantity = { uniform = [1, 9] } } }]
steps = [
  "BEGIN",
  { sql = "SELECT id, price FROM item WHERE id IN (", values = ":item", end = ") AND 7 = :lines", each = "line", by = ["item"], into = ["price"], IF_EMPTY },
  { each = "line", when = "n != 2", draw = { cost = "price * 10" }, steps = ["UPDATE stock SET q = :quantity, c = :cost WHERE item = :item"] },
  { sql = "INSERT INTO line VALUES", values = "(:n, :price)", each = "line" },
  "COMMIT",
]
"#;

fn order(if_empty: &str) -> String {
    ORDER.replace(", IF_EMPTY", if_empty)
}

/// The statements without quantities, which are random.
fn without_quantity(asked: &[String]) -> Vec<String> {
    let cut = |sql: &String| match (sql.find("q = "), sql.find(", c")) {
        (Some(from), Some(to)) => format!("{}{}", &sql[..from], &sql[to + 2..]),
        _ => sql.clone(),
    };
    asked.iter().map(cut).collect()
}

#[test]
fn a_list_is_asked_for_at_once_and_each_row_gets_its_own_answer() {
    let price = |item: i64| vec![item, item + 5];
    // In another order than requested, and with a row twice.
    let answer = vec![price(300), price(200), price(200), price(100)];
    let (asked, done) = run(&order(""), vec![Scene::Rows(vec![]), Scene::Rows(answer)]);
    let done = done.expect("done");
    assert_eq!(done.wrong, None);
    let asked = without_quantity(&asked);
    let two = [
        "BEGIN",
        "SELECT id, price FROM item WHERE id IN ( 100, 200 ) AND 7 = 2",
        "UPDATE stock SET c = 1050 WHERE item = 100",
        "INSERT INTO line VALUES (1, 105), (2, 205)",
        "COMMIT",
    ];
    let three = [
        "BEGIN",
        "SELECT id, price FROM item WHERE id IN ( 100, 200, 300 ) AND 7 = 3",
        "UPDATE stock SET c = 1050 WHERE item = 100",
        "UPDATE stock SET c = 3050 WHERE item = 300",
        "INSERT INTO line VALUES (1, 105), (2, 205), (3, 305)",
        "COMMIT",
    ];
    assert!(asked == two || asked == three, "{asked:?}");
}

#[test]
fn what_is_missing_for_a_row_of_a_list_is_wrong_or_ends_the_transaction() {
    let answer = || vec![Scene::Rows(vec![]), Scene::Rows(vec![vec![200, 1]])];
    let (asked, done) = run(&order(""), answer());
    let wrong = done.expect("done").wrong.expect("wrong");
    assert!(wrong.contains("order.2"), "{wrong}");
    assert!(wrong.contains("no row for "), "{wrong}");
    let last = asked.get(asked.len() - 2).expect("lines are inserted");
    assert!(
        last.starts_with("INSERT INTO line VALUES (1, NULL), (2, 1)"),
        "{last}"
    );

    let (asked, done) = run(&order(", if_empty = \"rollback\""), answer());
    let done = done.expect("done");
    assert!(done.rolled_back && done.wrong.is_none());
    assert_eq!(asked.last().map(String::as_str), Some("(rolled back)"));
    assert_eq!(asked.len(), 3);
}

#[test]
fn a_list_is_the_same_after_a_conflict() {
    let prices = || Scene::Rows(vec![vec![100, 1], vec![200, 2], vec![300, 3]]);
    let answers = vec![
        Scene::Rows(vec![]),
        prices(),
        Scene::Fails(1213),
        Scene::Rows(vec![]),
        prices(),
    ];
    let (asked, done) = run(&order(""), answers);
    assert_eq!(done.expect("done").conflicts[&1213], 1);
    let again = asked.iter().rposition(|sql| sql == "BEGIN").expect("again");
    assert_eq!(asked[1..3], asked[again + 1..again + 3]);
}

#[test]
fn a_list_without_rows_is_not_asked_about_and_one_too_long_is_refused() {
    let none = order("").replace("length = \"lines\"", "length = 0");
    let (asked, done) = run(&none, vec![]);
    assert_eq!(done.expect("done").wrong, None);
    assert_eq!(asked, ["BEGIN", "COMMIT"]);

    let long = order("").replace("length = \"lines\"", "length = 4");
    let (asked, done) = run(&long, vec![]);
    let refused = done.expect_err("too long").to_string();
    assert!(
        refused.contains("list 'line' would have 4 rows"),
        "{refused}"
    );
    assert_eq!(asked, ["(rolled back)"]);
}
