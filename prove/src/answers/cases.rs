//! The scripts and their statements.

use peregrine_harness::error::{HarnessError, Result};

/// The scripts: `## NAME`, then statements, each ended by a semicolon at the end of a line.
///
/// A statement that begins with `2> ` belongs to the second session.
const SCRIPTS: &str = include_str!("cases.sql");

/// The number of tables; the roots of their trees are more pages than the default cache holds.
const TABLES: usize = 3_000;

/// The range of row counts, at 160 bytes a row: the table then has about as many leaves as one thread reads before
/// other threads help.
const ROWS: std::ops::Range<usize> = 11_700..12_200;

/// A statement of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The session, from 0.
    pub session: usize,
    /// The statement, without its semicolon.
    pub text: String,
}

/// A script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Its statements, in the order in which they are run.
    pub statements: Vec<Statement>,
}

impl Case {
    fn new(name: &'static str, statements: impl IntoIterator<Item = String>) -> Self {
        let statement = |text| Statement { session: 0, text };
        Self {
            name,
            statements: statements.into_iter().map(statement).collect(),
        }
    }

    /// Returns how many sessions the script needs.
    #[must_use]
    pub fn sessions(&self) -> usize {
        let sessions = self.statements.iter().map(|s| s.session + 1);
        sessions.max().unwrap_or(0)
    }
}

/// Returns the names of all scripts.
#[must_use]
pub fn names() -> Vec<&'static str> {
    all().iter().map(|case| case.name).collect()
}

/// Returns the scripts with these names, or all scripts if `named` is empty.
///
/// # Errors
/// [`HarnessError::Usage`] for an unknown name; the message lists all names.
pub fn chosen(named: &[String]) -> Result<Vec<Case>> {
    let all = all();
    for name in named {
        if !all.iter().any(|case| case.name == name) {
            return Err(HarnessError::Usage(format!(
                "no script {name}; the scripts are {}",
                names().join(", ")
            )));
        }
    }
    let wanted = |case: &Case| named.is_empty() || named.iter().any(|name| name == case.name);
    Ok(all.into_iter().filter(wanted).collect())
}

fn all() -> Vec<Case> {
    let mut cases = vec![counted_twice()];
    cases.extend(SCRIPTS.split("## ").skip(1).map(parse));
    cases.push(many_tables());
    cases
}

fn parse(script: &'static str) -> Case {
    let (name, statements) = script.split_once('\n').unwrap_or((script, ""));
    let statements = statements.split(";\n").map(str::trim);
    let statement = |text: &str| match text.strip_prefix("2> ") {
        Some(text) => Statement {
            session: 1,
            text: text.to_owned(),
        },
        None => Statement {
            session: 0,
            text: text.to_owned(),
        },
    };
    Case {
        name: name.trim(),
        statements: statements
            .filter(|text| !text.is_empty())
            .map(statement)
            .collect(),
    }
}

fn counted_twice() -> Case {
    let of_size = |rows| {
        [
            "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, x INT, f CHAR(150))".to_owned(),
            format!("INSERT INTO t SELECT seq, 1, REPEAT(CHAR(65 + seq % 26), 150) FROM seq_1_to_{rows}"),
            "SELECT COUNT(*) FROM t".to_owned(),
            "SELECT SUM(x), AVG(x) FROM t WHERE id > 1".to_owned(),
        ]
    };
    Case::new("counted-twice", ROWS.step_by(20).flat_map(of_size))
}

fn many_tables() -> Case {
    let create =
        |n| format!("CREATE TABLE m{n} (id INT PRIMARY KEY, a INT, b INT, KEY (a), KEY (b))");
    let work = [
        "INSERT INTO m0 SELECT seq, seq, seq FROM seq_1_to_20000".to_owned(),
        "FLUSH TABLES".to_owned(),
        "SELECT COUNT(*), SUM(a), SUM(b) FROM m0".to_owned(),
    ];
    Case::new("many-tables", (0..TABLES).map(create).chain(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_have_names_of_their_own_and_statements() {
        let all = all();
        let mut names = names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        for case in &all {
            assert!(case.statements.len() > 1, "{}", case.name);
            let named = case
                .name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c == '-');
            assert!(named && !case.name.is_empty(), "{}", case.name);
            for statement in &case.statements {
                let text = &statement.text;
                assert!(!text.ends_with(';') && !text.contains('\n'), "{text}");
            }
        }
    }

    #[test]
    fn a_statement_names_its_session() {
        let case = parse("name\nBEGIN;\n2> SELECT 1;\nCOMMIT;\n");
        let statements: Vec<(usize, &str)> = case
            .statements
            .iter()
            .map(|s| (s.session, &s.text[..]))
            .collect();
        assert_eq!(statements, [(0, "BEGIN"), (1, "SELECT 1"), (0, "COMMIT")]);
        assert_eq!(case.sessions(), 2);
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_names() {
        let error = chosen(&["nothing".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("loose-index-scan"), "{error}");
        assert_eq!(chosen(&["many-tables".to_owned()]).unwrap().len(), 1);
    }
}
