//! Generates random changes of one table and of several, and conditions that choose rows.

use super::author::{Author, SESSIONS};
use super::schema::{Column, Table, AUTOMATIC, ROOM};
use super::values::one_of;

/// The number of values of `id`.
const IDS: u32 = 12;
/// How often a session's change has a certain `id`, in a hundred, and how often that is one of the session's own.
///
/// With lower figures, sessions conflict so often that no transaction reaches its end.
const BY_ID: u32 = 70;
const OWN: u32 = 80;

impl Author<'_> {
    /// Returns a value of `id`, mostly one of the session's own if there are several sessions.
    pub(super) fn id(&mut self) -> u32 {
        let session = self.session;
        match session {
            Some(session) if self.chance(OWN) => {
                SESSIONS * self.dice.below(IDS / SESSIONS) + session
            }
            _ => self.dice.below(IDS),
        }
    }

    /// Returns the condition by which a change chooses its rows.
    fn chosen(&mut self, table: &Table) -> String {
        if self.session.is_some() && self.chance(BY_ID) {
            return format!(" WHERE {}.id = {}", table.name, self.id());
        }
        self.condition(table)
    }

    pub(super) fn constant(&mut self, column: &Column) -> String {
        if column.is_nullable && self.chance(15) {
            return "NULL".into();
        }
        if column.name == "id" {
            return self.id().to_string();
        }
        column.kind.constant(self.dice)
    }

    /// Returns the columns that an insert sets: `id`, the NOT NULL columns, and most of the nullable ones.
    fn row_columns(&mut self, table: &Table) -> Vec<Column> {
        let mut columns = Vec::new();
        for column in table.settable() {
            if column.name == "id" || !column.is_nullable || self.chance(85) {
                columns.push(column.clone());
            }
        }
        columns
    }

    fn period(&mut self) -> (&'static str, &'static str) {
        const DAYS: [&str; 6] = [
            "'2020-01-01'",
            "'2020-01-05'",
            "'2020-01-09'",
            "'2020-02-01'",
            "'2020-03-01'",
            "'2020-04-01'",
        ];
        let from = self.dice.below(5) as usize;
        let to = from + 1 + self.dice.below(5 - from as u32) as usize;
        (DAYS[from], DAYS[to])
    }

    /// Returns an insert without a value for [`AUTOMATIC`], and a query whether LAST_INSERT_ID() is the value of a row.
    pub(super) fn automatic(&mut self, table: &Table) -> Vec<String> {
        let columns = self.row_columns(table);
        let insert = self.insert_of(table, &columns, false);
        let name = &table.name;
        vec![
            "SET last_insert_id = 0".into(),
            insert,
            format!("SELECT COUNT(*) FROM {name} WHERE {AUTOMATIC} = LAST_INSERT_ID()"),
        ]
    }

    pub(super) fn insert(&mut self, table: &Table) -> String {
        let columns = self.row_columns(table);
        let gives_automatic = table.is_automatic && self.chance(30);
        self.insert_of(table, &columns, gives_automatic)
    }

    fn insert_of(&mut self, table: &Table, columns: &[Column], gives_automatic: bool) -> String {
        let mut names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        if table.has_period {
            names.extend(["ps", "pe"]);
        }
        if gives_automatic {
            names.push(AUTOMATIC);
        }
        let rows: Vec<String> = (0..1 + self.dice.below(4))
            .map(|_| {
                let mut row: Vec<String> =
                    columns.iter().map(|column| self.constant(column)).collect();
                if table.has_period {
                    let (from, to) = self.period();
                    row.extend([from.to_owned(), to.to_owned()]);
                }
                if gives_automatic {
                    let given = (ROOM * (1 + self.dice.below(30))).to_string();
                    let some = ["NULL", "0", "DEFAULT", &given, &given];
                    let some = match self.raises_counters {
                        true => &some[..],
                        false => &some[..3],
                    };
                    row.push((*one_of(self.dice, some)).to_owned());
                }
                format!("({})", row.join(", "))
            })
            .collect();
        let (word, end) = match self.dice.below(10) {
            0 | 1 => ("INSERT IGNORE", String::new()),
            2 | 3 if !table.has_period => ("REPLACE", String::new()),
            4 | 5 => ("INSERT", self.on_duplicate(table)),
            6 if !table.is_versioned && !table.has_period => {
                ("INSERT", format!(" RETURNING {}", table.shown()))
            }
            _ => ("INSERT", String::new()),
        };
        let (names, rows) = (names.join(", "), rows.join(", "));
        format!("{word} INTO {} ({names}) VALUES {rows}{end}", table.name)
    }

    fn on_duplicate(&mut self, table: &Table) -> String {
        let columns = table.settable();
        let column = (*one_of(self.dice, &columns)).clone();
        let value = if self.chance(50) {
            format!("VALUES({})", column.name)
        } else {
            self.constant(&column)
        };
        format!(" ON DUPLICATE KEY UPDATE {} = {value}", column.name)
    }

    pub(super) fn insert_select(&mut self, table: &Table) -> String {
        let sources: Vec<&Table> = self
            .tables
            .iter()
            .filter(|t| !t.primary.is_empty())
            .collect();
        if sources.is_empty() || table.has_period {
            return self.insert(table);
        }
        let source = *one_of(self.dice, &sources);
        let columns = self.row_columns(table);
        let values: Vec<String> = columns
            .iter()
            .map(|column| {
                let same = |from: &&Column| {
                    from.kind == column.kind
                        && !from.kind.is_text()
                        && (column.is_nullable || !from.is_nullable)
                };
                match source.columns.iter().find(same) {
                    Some(from) if self.chance(70) => format!("{}.{}", source.name, from.name),
                    _ => self.constant(column),
                }
            })
            .collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let word = *one_of(self.dice, &["INSERT", "INSERT IGNORE", "REPLACE"]);
        let condition = self.condition(source);
        format!(
            "{word} INTO {} ({}) SELECT {} FROM {}{condition}{} LIMIT {}",
            table.name,
            names.join(", "),
            values.join(", "),
            source.name,
            source.whole_order().unwrap_or_default(),
            1 + self.dice.below(6)
        )
    }

    /// Returns a condition, with its WHERE, that compares only values that the columns can take.
    pub(super) fn condition(&mut self, table: &Table) -> String {
        let count = self.dice.below(3);
        let mut all: Vec<String> = Vec::new();
        for _ in 0..count {
            let column = one_of(self.dice, &table.columns).clone();
            all.push(self.predicate(&table.name, &column));
        }
        if all.is_empty() {
            return String::new();
        }
        let word = if self.chance(75) { " AND " } else { " OR " };
        format!(" WHERE {}", all.join(word))
    }

    fn predicate(&mut self, table: &str, column: &Column) -> String {
        let name = format!("{table}.{}", column.name);
        let value = match column.is_generated {
            true => column.kind.constant(self.dice),
            false => self.constant(&Column {
                is_nullable: false,
                ..column.clone()
            }),
        };
        match self.dice.below(10) {
            0 => format!("{name} IS NULL"),
            1 => format!("{name} IS NOT NULL"),
            2 | 3 => {
                let sign = *one_of(self.dice, &["<", "<=", ">", ">=", "<>"]);
                format!("{name} {sign} {value}")
            }
            4 => {
                let other = column.kind.constant(self.dice);
                format!("{name} IN ({value}, {other})")
            }
            5 => {
                let other = column.kind.constant(self.dice);
                format!("{name} BETWEEN {value} AND {other}")
            }
            6 if column.kind.is_text() => format!("{name} LIKE 'a%'"),
            7 => format!("NOT {name} <=> {value}"),
            _ => format!("{name} = {value}"),
        }
    }

    /// Returns the assignments of an UPDATE.
    ///
    /// If the rows have an order, it may set any column to any value; otherwise only values that every row can take.
    fn assignments(&mut self, table: &Table) -> String {
        let is_ordered = !table.primary.is_empty();
        let columns: Vec<Column> = table
            .settable()
            .into_iter()
            .filter(|column| is_ordered || !column.is_in_unique)
            .cloned()
            .collect();
        if columns.is_empty() {
            return "id = id".into();
        }
        let mut set = Vec::new();
        for _ in 0..1 + self.dice.below(2) {
            let column = one_of(self.dice, &columns);
            let value = match self.dice.below(10) {
                0 | 1 if is_ordered && column.kind.is_small_integer() => {
                    format!("{} + 1", column.name)
                }
                2 if column.kind.is_small_integer() => format!("{} % 5", column.name),
                3 => column.name.clone(),
                4 if column.is_nullable || is_ordered => "DEFAULT".into(),
                _ => self.constant(column),
            };
            set.push(format!("{} = {value}", column.name));
        }
        set.join(", ")
    }

    pub(super) fn update(&mut self, table: &Table) -> String {
        let set = self.assignments(table);
        let condition = self.chosen(table);
        let name = &table.name;
        let Some(order) = table.whole_order() else {
            return format!("UPDATE {name} SET {set}{condition}");
        };
        let word = if self.chance(20) {
            "UPDATE IGNORE"
        } else {
            "UPDATE"
        };
        let descending = if self.chance(40) && table.primary.len() == 1 {
            " DESC"
        } else {
            ""
        };
        let limit = if self.chance(25) {
            format!(" LIMIT {}", 1 + self.dice.below(4))
        } else {
            String::new()
        };
        format!("{word} {name} SET {set}{condition}{order}{descending}{limit}")
    }

    pub(super) fn delete(&mut self, table: &Table) -> String {
        let condition = self.chosen(table);
        let name = &table.name;
        match table.whole_order() {
            Some(order) if self.chance(50) => {
                format!(
                    "DELETE FROM {name}{condition}{order} LIMIT {}",
                    1 + self.dice.below(4)
                )
            }
            _ if condition.is_empty() => {
                format!("DELETE FROM {name} WHERE id = {}", self.id())
            }
            _ => format!("DELETE FROM {name}{condition}"),
        }
    }

    /// Returns an UPDATE or DELETE of two tables; a row with several partners is changed once, to a constant.
    pub(super) fn joined_change(&mut self) -> String {
        let [t, u] = self.tables else {
            return "DO 0".into();
        };
        let mut condition = self.condition(t);
        condition = condition.replacen(" WHERE ", " AND (", 1);
        if !condition.is_empty() {
            condition.push(')');
        }
        let join = if self.chance(60) {
            "t.id = u.id"
        } else {
            "t.id = u.id + 1"
        };
        if self.chance(40) {
            let targets = *one_of(self.dice, &["t", "u", "t, u"]);
            return format!("DELETE {targets} FROM t JOIN u ON {join} WHERE TRUE{condition}");
        }
        // There InnoDB leaves a stored generated column stale if a trigger changes the columns that it derives from.
        let targets: Vec<&Table> = [t, u]
            .into_iter()
            .filter(|t| !t.has_trigger && !t.has_period)
            .collect();
        let mut set = Vec::new();
        for table in targets {
            let columns: Vec<&Column> = table
                .settable()
                .into_iter()
                .filter(|c| !c.is_in_unique)
                .collect();
            if !columns.is_empty() && self.chance(70) {
                let column = (*one_of(self.dice, &columns)).clone();
                set.push(format!(
                    "{}.{} = {}",
                    table.name,
                    column.name,
                    self.constant(&column)
                ));
            }
        }
        if set.is_empty() {
            return format!("DELETE t FROM t JOIN u ON {join} WHERE TRUE{condition}");
        }
        format!(
            "UPDATE t JOIN u ON {join} SET {} WHERE TRUE{condition}",
            set.join(", ")
        )
    }

    /// Returns a change of a part of a period.
    pub(super) fn portion(&mut self, table: &Table) -> Option<String> {
        if !table.has_period {
            return None;
        }
        let (from, to) = self.period();
        let name = &table.name;
        let portion = format!("{name} FOR PORTION OF p FROM {from} TO {to}");
        let condition = format!(" WHERE id = {}", self.dice.below(12));
        let columns: Vec<&Column> = table
            .settable()
            .into_iter()
            .filter(|c| !c.is_in_unique)
            .collect();
        Some(match columns.is_empty() || self.chance(50) {
            true => format!("DELETE FROM {portion}{condition}"),
            false => {
                let column = (*one_of(self.dice, &columns)).clone();
                format!(
                    "UPDATE {portion} SET {} = {}{condition}",
                    column.name,
                    self.constant(&column)
                )
            }
        })
    }

    pub(super) fn change(&mut self) -> String {
        let tables = self.tables;
        let table = one_of(self.dice, tables);
        match self.dice.below(4) {
            0 | 1 => self.insert(table),
            2 => self.update(table),
            _ => self.delete(table),
        }
    }
}
