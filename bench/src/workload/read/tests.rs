use super::*;
use crate::workload::builtin;
use peregrine_harness::engines::Statement;

/// A small file without problems.
const SHOP: &str = r#"name = "shop"
about = "orders"
run = "mix"

[parameters]
things = 100

[profiles.quick]
things = 10

[[table]]
name = "things"
rows = "things"
columns = [
  { name = "id", type = "int not null", value = "row" },
  { name = "name", type = "varchar(40)", text = [5, 40] },
]
primary_key = "id"
indexes = [{ name = "by_name", columns = ["name(10)"], unique = false }]

[[transaction]]
name = "look"
weight = 3
draw = { id = { zipf = [1, "things"] } }
sql = "SELECT name FROM things WHERE id = :id AND name <> ':id'"
rows = [0, 1]

[[transaction]]
name = "rename"
needs_transactions = true
steps = [
  "BEGIN",
  { sql = "SELECT max(id) FROM things", into = ["newest"] },
  { when = "newest != null", steps = ["UPDATE things SET name = 'x' WHERE id = :newest"] },
  "COMMIT",
]

[figure]
count = "look"
per = "minute"
unit = "looks/min"

[[condition]]
name = "there are things"
sql = "SELECT count(*) FROM things WHERE id < 1"
"#;

fn problems(text: &str) -> Vec<(usize, usize, String)> {
    let problems = check(text, "test.toml").expect_err("wrong").all;
    problems
        .into_iter()
        .map(|problem| (problem.line, problem.column, problem.text))
        .collect()
}

#[test]
fn a_right_file_is_understood() {
    let options = Options {
        profile: Some("quick".to_owned()),
        ..Options::default()
    };
    let shop = Workload::read(SHOP, "shop.toml", &options).expect("right");
    assert_eq!(shop.parameters["things"], 10);
    assert_eq!(shop.cells(), [MIX]);
    assert_eq!(shop.transactions_of(MIX), [0, 1]);
    assert!(shop.needs_transactions(MIX));
    assert_eq!(shop.unit(MIX), "looks/min");
    assert_eq!(shop.described(MIX), "3 × look, 1 × rename");
    assert_eq!(
        shop.statements[0].pieces,
        ["SELECT name FROM things WHERE id = ", " AND name <> ':id'"]
    );
    assert_eq!(shop.statements[0].name, "look");
    assert_eq!(shop.statements[2].name, "rename.2");
    assert_eq!(
        shop.tables[0].create("InnoDB"),
        "CREATE TABLE things (id int not null, name varchar(40), PRIMARY KEY (id), \
         KEY by_name (name(10))) ENGINE=InnoDB"
    );
    assert_eq!(
        shop.tables[0].add_indexes().as_deref(),
        Some("ALTER TABLE things ADD KEY by_name (name(10))")
    );
    let full = Workload::read(SHOP, "shop.toml", &Options::default()).expect("right");
    assert_eq!(full.parameters["things"], 100);
}

#[test]
fn every_shipped_file_is_right_and_named_as_it_is_called() {
    for shipped in builtin::ALL {
        let workload = check(shipped.text, shipped.name).unwrap_or_else(|all| panic!("{all}"));
        assert_eq!(workload.name, shipped.name);
        assert_eq!(workload.cells().is_empty(), workload.mode == Mode::Load);
        let (text, _) = builtin::find(shipped.name).expect("found");
        assert_eq!(text, shipped.text);
    }
    let message = builtin::find("olpt").expect_err("unknown").to_string();
    for shipped in builtin::ALL {
        assert!(message.contains(shipped.name), "{message}");
    }
    assert!(builtin::find("no-such-file.toml").is_err());
}

#[test]
fn normal_has_the_thirteen_queries_in_their_order() {
    let normal = builtin::ALL[0];
    let workload = check(normal.text, normal.name).expect("right");
    let names: Vec<&str> = crate::normal::Query::ALL.iter().map(|q| q.name()).collect();
    assert_eq!(workload.cells(), names);
    for query in crate::normal::Query::ALL {
        let sql = workload.described(query.name());
        assert_eq!(query.limit().is_some(), sql.contains("LIMIT"), "{sql}");
    }
    assert_eq!(workload.normal_rows(), Some(1_000_000));
}

#[test]
fn parameters_are_set_and_unknown_ones_refused() {
    let set = |name: &str| Options {
        set: [(name.to_owned(), 7)].into(),
        ..Options::default()
    };
    let shop = Workload::read(SHOP, "shop.toml", &set("things")).expect("right");
    assert_eq!(shop.parameters["things"], 7);
    let message = Workload::read(SHOP, "shop.toml", &set("thigns"))
        .expect_err("unknown")
        .to_string();
    assert!(
        message.contains("thigns") && message.contains("things"),
        "{message}"
    );
}

#[test]
fn what_is_wrong_is_told_with_line_and_column() {
    for (right, wrong, line, column, told) in [
        ("run = \"mix\"", "run = \"mixed\"", 3, 7, "\"each\""),
        ("weight = 3", "wieght = 3", 23, 1, "unknown key 'wieght'"),
        ("weight = 3", "weight = -3", 23, 10, "from 0"),
        (":id AND", ":ip AND", 25, 44, "unknown name 'ip'"),
        ("= :id AND", "= ? AND", 25, 43, ":name"),
        (
            "\"things\"] } }",
            "\"thing\"] } }",
            24,
            29,
            "unknown name 'thing'",
        ),
        (
            "[profiles.quick]",
            "[profiles.fast]",
            8,
            11,
            "quick, standard, paper",
        ),
        (
            "things = 10\n",
            "thing = 10\n",
            9,
            1,
            "no parameter 'thing'",
        ),
        (
            "primary_key = \"id\"",
            "primary_key = \"no\"",
            18,
            15,
            "no column 'no'",
        ),
        ("name(10)", "name(x)", 19, 43, "title(20)"),
        ("  \"COMMIT\",\n", "", 31, 9, "last step must be"),
        (
            "count = \"look\"",
            "count = \"loock\"",
            39,
            9,
            "there are look, rename",
        ),
        (
            "newest != null",
            "newset != null",
            34,
            13,
            "unknown name 'newset'",
        ),
        (
            "per = \"minute\"",
            "per = \"hour\"",
            40,
            7,
            "\"second\" or \"minute\"",
        ),
        ("rows = [0, 1]", "rows = [0]", 26, 8, "[minimum, maximum]"),
        ("type = \"int not null\", ", "", 15, 3, "no 'type'"),
        ("text = [5, 40]", "text = 5", 16, 49, "must be an array"),
        ("about = \"orders\"", "about = 5", 2, 9, "must be a string"),
    ] {
        let text = SHOP.replace(right, wrong);
        assert_ne!(text, SHOP, "{right}");
        let found = problems(&text);
        let here = found.iter().find(|(l, c, _)| (*l, *c) == (line, column));
        assert!(
            here.is_some_and(|(_, _, text)| text.contains(told)),
            "{wrong}: {found:#?}"
        );
    }
}

#[test]
fn several_mistakes_are_told_at_once_and_none_twice() {
    let text = SHOP
        .replace("weight = 3", "wieght = 3")
        .replace("run = \"mix\"", "run = 1")
        .replace("newest != null", "newest !=");
    let found = problems(&text);
    let lines: Vec<usize> = found.iter().map(|(line, _, _)| *line).collect();
    assert_eq!(lines, [3, 23, 34], "{found:#?}");
}

#[test]
fn what_must_be_there_is_asked_for() {
    let found = problems("");
    let told: Vec<&str> = found.iter().map(|(_, _, text)| text.as_str()).collect();
    for key in ["'name'", "'about'", "'run'", "[[table]]", "[[transaction]]"] {
        assert!(
            told.iter().any(|text| text.contains(key)),
            "{key}: {told:?}"
        );
    }
}

#[test]
fn counters_need_a_column() {
    let text = SHOP.replace("{ zipf = [1, \"things\"] }", "{ latest = \"things.no\" }");
    let found = problems(&text);
    assert!(found[0].2.contains("things.no"), "{found:?}");
}

/// The shop, with a background load that changes things.
fn shop_beside(beside: &str) -> String {
    let filler = format!(
        "\n[[transaction]]\nname = \"fill\"\nneeds_transactions = true\nbeside = {beside}\n\
         steps = [\"BEGIN\", \"UPDATE things SET name = 'y'\", \"COMMIT\"]\n"
    );
    SHOP.replace("things = 100\n", "things = 100\nfillers = 0\n") + &filler
}

#[test]
fn what_runs_beside_is_no_cell() {
    let text = shop_beside("{ sessions = \"fillers\", rate = \"things * 2\" }")
        .replace("run = \"mix\"", "run = \"each\"");
    let shop = |fillers: i64| {
        let set = [("fillers".to_owned(), fillers)].into();
        let options = Options {
            set,
            ..Options::default()
        };
        Workload::read(&text, "shop.toml", &options).expect("right")
    };
    let idle = shop(0);
    assert_eq!(idle.cells(), ["look", "rename"]);
    assert!(idle.transactions_of("fill").is_empty());
    assert_eq!(idle.running_beside(), []);
    assert!(!idle.needs_transactions("look"));
    let busy = shop(3);
    let beside = Beside {
        sessions: 3,
        rate: 200,
    };
    assert_eq!(busy.running_beside(), [(2, beside)]);
    assert_eq!(busy.cells(), ["look", "rename"]);
    assert!(busy.needs_transactions("look"), "the filler does");
}

#[test]
fn what_runs_beside_is_not_mixed() {
    let text = shop_beside("{ sessions = 2, rate = 5 }");
    let shop = Workload::read(&text, "shop.toml", &Options::default()).expect("right");
    assert_eq!(shop.transactions_of(MIX), [0, 1]);
}

#[test]
fn what_is_wrong_with_beside_is_told() {
    for (beside, told) in [
        ("5", "must be a table"),
        ("{ sessions = 2 }", "no 'rate'"),
        (
            "{ sessions = -1, rate = 5 }",
            "from 0 to 1000, and this is -1",
        ),
        ("{ sessions = 2, rate = 0 }", "from 1 to 1000000"),
        (
            "{ sessions = \"filers\", rate = 5 }",
            "unknown name 'filers'",
        ),
        (
            "{ sessions = 2, rate = 5, clients = 3 }",
            "unknown key 'clients'",
        ),
        ("{ sessions = 2, rate = 5 }\nweight = 3", "no 'weight'"),
        ("{ sessions = 2, rate = 5 }\nthink_ms = 3", "a rate instead"),
    ] {
        let found = problems(&shop_beside(beside));
        assert!(
            found.iter().any(|(_, _, text)| text.contains(told)),
            "{beside}: {found:#?}"
        );
    }
    let right = shop_beside("{ sessions = 2, rate = 5 }");
    let found = problems(&right.replace("count = \"look\"", "count = \"fill\""));
    assert!(found[0].2.contains("is not measured"), "{found:#?}");
    let only = "beside = { sessions = 1, rate = 1 }\nsql = \"SELECT 1\"\n";
    let tables = &SHOP[..SHOP.find("[[transaction]]").expect("there")];
    let found = problems(&format!("{tables}[[transaction]]\nname = \"fill\"\n{only}"));
    assert!(found[0].2.contains("nothing to measure"), "{found:#?}");
}

#[test]
fn what_is_wrong_with_what_is_done_once_is_told() {
    let once = SHOP.replace("run = \"mix\"", "run = \"once\"");
    let with =
        |keys: &str| once.replace("name = \"look\"\n", &format!("name = \"look\"\n{keys}\n"));
    check(&with("fresh = [\"things\"]"), "test.toml").expect("right");
    for (keys, told) in [
        ("fresh = [\"thing\"]", "no table 'thing': there are things"),
        ("fresh = \"things\"", "must be an array"),
        (
            "check = [{ sql = \"SELECT 1\", answer = \"one\" }]",
            "unknown name 'one'",
        ),
        ("think_ms = 5", "has no 'think_ms'"),
    ] {
        let found = problems(&with(keys));
        assert!(
            found.iter().any(|(_, _, text)| text.contains(told)),
            "{keys}: {found:#?}"
        );
    }
    let mixed = SHOP.replace(
        "name = \"look\"\n",
        "name = \"look\"\nfresh = [\"things\"]\n",
    );
    assert!(problems(&mixed)[0].2.contains("whose 'run' is \"once\""));
}

#[test]
fn loading_has_tables_and_no_transactions() {
    let loading = SHOP.replace("run = \"mix\"", "run = \"load\"");
    let found = problems(&loading);
    assert!(
        found
            .iter()
            .any(|(_, _, text)| text.contains("has no transactions")),
        "{found:#?}"
    );
    let only = &loading[..loading.find("[[transaction]]").expect("there")];
    let workload = check(only, "test.toml").expect("right");
    assert!(workload.cells().is_empty());
}

#[test]
fn what_is_wrong_with_several_rows_is_told() {
    let with = |step: &str| SHOP.replace("  \"COMMIT\",", &format!("  {step},\n  \"COMMIT\","));
    let values = "sql = \"INSERT INTO things (id) VALUES\", values = \"(:n)\"";
    let right = with(&format!("{{ {values}, repeat = 3, count = \"n\" }}"));
    check(&right, "test.toml").expect("right");
    for (step, told) in [
        (format!("{{ {values}, count = \"n\" }}"), "no 'repeat'"),
        (
            format!("{{ {values}, repeat = 0, count = \"n\" }}"),
            "from 1 to 10000",
        ),
        (format!("{{ {values}, repeat = 3 }}"), "unknown name 'n'"),
        (
            format!("{{ {values}, repeat = 3, count = \"n\", by = [\"n\"] }}"),
            "'by' is for statements with 'values' for 'each' row of a list",
        ),
    ] {
        let found = problems(&with(&step));
        assert!(
            found.iter().any(|(_, _, text)| text.contains(told)),
            "{step}: {found:#?}"
        );
    }
}

#[test]
fn what_is_wrong_with_lists_is_told() {
    let list = "{ name = \"line\", length = 2, most = 3, count = \"n\" }";
    let with = |list: &str, step: &str| {
        SHOP.replace(
            "needs_transactions = true\nsteps = [",
            &format!("needs_transactions = true\nlist = [{list}]\nsteps = ["),
        )
        .replace("  \"COMMIT\",", &format!("  {step},\n  \"COMMIT\","))
    };
    let ask = "sql = \"SELECT id FROM things WHERE id IN (\", values = \":n\", end = \")\", each = \"line\"";
    let right = format!("{{ {ask}, by = [\"n\"], into = [\"found\"] }}");
    let workload = check(&with(list, &right), "test.toml").expect("right");
    let variants = workload.statements.iter();
    let variants: Vec<String> = variants
        .filter(|statement| statement.name == "rename.4")
        .map(Statement::sql)
        .collect();
    assert_eq!(
        variants,
        [
            "SELECT id FROM things WHERE id IN ( ? )",
            "SELECT id FROM things WHERE id IN ( ?, ? )",
            "SELECT id FROM things WHERE id IN ( ?, ?, ? )",
        ]
    );
    let step = |keys: &str| format!("{{ {ask}, {keys} }}");
    for (list, step, told) in [
        (
            list.replace("most = 3, ", ""),
            step("pick = \"first\""),
            "no 'most'",
        ),
        (
            list.replace("most = 3", "most = 1001"),
            step("pick = \"first\""),
            "from 1 to 1000",
        ),
        (
            list.replace("length = 2", "length = \"x\""),
            step("pick = \"first\""),
            "unknown name 'x'",
        ),
        (
            list.to_owned(),
            step("repeat = 3"),
            "'repeat' or 'each', not both",
        ),
        (list.to_owned(), step("by = []"), "'by' must have a name"),
        (list.to_owned(), step("by = [\"m\"]"), "unknown name 'm'"),
        (
            list.to_owned(),
            right.replace("each = \"line\"", "each = \"lines\""),
            "there is no list 'lines': there are line",
        ),
        (
            String::new(),
            "{ each = \"line\", steps = [\"SELECT 1\"] }".to_owned(),
            "there is no list 'line': there are none here",
        ),
    ] {
        let found = problems(&with(&list, &step));
        assert!(
            found.iter().any(|(_, _, text)| text.contains(told)),
            "{list} {step}: {found:#?}"
        );
    }
}

#[test]
fn damaged_files_are_refused_without_panic() {
    let mut dice = peregrine_harness::dice::Dice::new(1, 1);
    for _ in 0..400 {
        let mut text: Vec<char> = SHOP.chars().collect();
        for _ in 0..=dice.below(3) {
            let at = dice.below(u32::try_from(text.len()).expect("short")) as usize;
            match dice.below(3) {
                0 => {
                    text.remove(at);
                }
                1 => text.insert(
                    at,
                    ['"', '[', '{', '\'', '=', ':', 'ü', '9'][dice.below(8) as usize],
                ),
                _ => text.truncate(at.max(1)),
            }
        }
        let text: String = text.into_iter().collect();
        let _ = check(&text, "test.toml");
    }
}
