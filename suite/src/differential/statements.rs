//! Random statements with one right outcome, in whatever order an engine comes upon the rows.
//!
//! So `LIMIT` has an order without ties, keys move in such an order, values that a strict statement could refuse are
//! set in it, and rows of joined tables are set to constants. What a table without a primary key can't do by that is
//! not asked of it.

use super::schema::{Column, Table, AUTOMATIC};
use super::values::{chance, one_of, Kind};
use super::BINARY;
use crate::dice::Dice;

/// How often a statement goes by the binary protocol, in a hundred.
const BY_BINARY_PROTOCOL: u32 = 20;
/// Values that are given for a column with AUTO_INCREMENT lie so far apart that automatic ones have room in between:
/// then the order of all is the same, whichever are passed over.
const ROOM: u32 = 10_000;

/// Makes statements up.
pub struct Author<'a> {
    pub dice: &'a mut Dice,
    pub tables: &'a [Table],
}

impl Author<'_> {
    fn chance(&mut self, percent: u32) -> bool {
        chance(self.dice, percent)
    }

    /// A statement, or some that belong together.
    pub fn unit(&mut self) -> Vec<String> {
        let mut unit = self.statements();
        for sql in &mut unit {
            if self.chance(BY_BINARY_PROTOCOL) {
                sql.insert_str(0, BINARY);
            }
        }
        unit
    }

    fn statements(&mut self) -> Vec<String> {
        let tables = self.tables;
        let table = one_of(self.dice, tables);
        match self.dice.below(100) {
            0..=3 if table.is_automatic => self.automatic(table),
            0..=29 => vec![self.insert(table)],
            30..=47 => vec![self.update(table)],
            48..=55 => vec![self.delete(table)],
            56..=59 => vec![self.joined_change()],
            60..=63 => vec![self.insert_select(table)],
            64..=74 => vec![self.select(table)],
            75..=78 => vec![self.joined_select()],
            79..=80 => vec![self.portion(table).unwrap_or_else(|| self.update(table))],
            81..=88 => self.transaction(),
            89..=91 => vec![self.alter(table)],
            92..=93 => self.handler(table),
            94..=95 => self.prepared(table),
            96 => self.locked(table),
            97 => self.walked(table),
            98 => vec![format!("TRUNCATE TABLE {}", table.name)],
            _ => vec![format!("SELECT COUNT(*) FROM {}", table.name)],
        }
    }

    fn constant(&mut self, column: &Column) -> String {
        if column.is_nullable && self.chance(15) {
            return "NULL".into();
        }
        if column.name == "id" {
            return self.dice.below(12).to_string();
        }
        column.kind.constant(self.dice)
    }

    /// Columns with `id`, and constants of the period where there is one.
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

    /// An insert without a value for [`AUTOMATIC`], and whether the value that the session knows is that of a row.
    fn automatic(&mut self, table: &Table) -> Vec<String> {
        let columns = self.row_columns(table);
        let insert = self.insert_of(table, &columns, false);
        let name = &table.name;
        vec![
            "SET last_insert_id = 0".into(),
            insert,
            format!("SELECT COUNT(*) FROM {name} WHERE {AUTOMATIC} = LAST_INSERT_ID()"),
        ]
    }

    fn insert(&mut self, table: &Table) -> String {
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
                    row.push((*one_of(self.dice, &some)).to_owned());
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

    fn insert_select(&mut self, table: &Table) -> String {
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

    /// A condition, with its WHERE, that refuses no value.
    fn condition(&mut self, table: &Table) -> String {
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

    /// What an UPDATE sets; whatever there is where the rows have an order, else what every row takes.
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

    fn update(&mut self, table: &Table) -> String {
        let set = self.assignments(table);
        let condition = self.condition(table);
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

    fn delete(&mut self, table: &Table) -> String {
        let condition = self.condition(table);
        let name = &table.name;
        match table.whole_order() {
            Some(order) if self.chance(50) => {
                format!(
                    "DELETE FROM {name}{condition}{order} LIMIT {}",
                    1 + self.dice.below(4)
                )
            }
            _ if condition.is_empty() => {
                format!("DELETE FROM {name} WHERE id = {}", self.dice.below(12))
            }
            _ => format!("DELETE FROM {name}{condition}"),
        }
    }

    /// UPDATE or DELETE of two tables. A row that has several partners is changed once, to a constant.
    fn joined_change(&mut self) -> String {
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
        // InnoDB leaves stored generated columns stale there, where a trigger changes what they follow from.
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

    fn select(&mut self, table: &Table) -> String {
        let condition = self.condition(table);
        let name = &table.name;
        let exact: Vec<&Column> = table
            .columns
            .iter()
            .filter(|column| column.kind.is_exact())
            .collect();
        let column = (*one_of(self.dice, &exact)).clone();
        let any = one_of(self.dice, &table.columns).clone();
        let (of, any) = (&column.name, &any.name);
        let hint = match table.keys.is_empty() || self.chance(60) {
            true => String::new(),
            false => format!(" FORCE INDEX ({})", one_of(self.dice, &table.keys)),
        };
        match self.dice.below(9) {
            0 => format!("SELECT COUNT(*), COUNT({any}), COUNT(DISTINCT {any}) FROM {name}{hint}{condition}"),
            1 => format!("SELECT SUM({of}), MIN({of}), MAX({of}), AVG({of}) FROM {name}{hint}{condition}"),
            2 => format!("SELECT {of}, COUNT(*), COUNT({any}) FROM {name}{hint}{condition} GROUP BY {of}"),
            3 => format!("SELECT DISTINCT {of} FROM {name}{hint}{condition}"),
            4 if !table.primary.is_empty() => format!(
                "SELECT {} FROM {name}{hint}{condition}{} LIMIT {}",
                table.shown(),
                table.whole_order().unwrap_or_default(),
                1 + self.dice.below(5)
            ),
            5 => format!("SELECT {of}, MIN(id), MAX(id) FROM {name}{hint}{condition} GROUP BY {of} ORDER BY {of} DESC"),
            6 => format!("SELECT {of}, id FROM {name}{hint}{condition} ORDER BY {of}, id LIMIT 3"),
            _ => format!("SELECT {} FROM {name}{hint}{condition}", table.shown()),
        }
    }

    fn joined_select(&mut self) -> String {
        let [t, u] = self.tables else {
            return "DO 0".into();
        };
        let mut pairs = vec![("id".to_owned(), "id".to_owned())];
        for column in &t.columns {
            let same = |other: &&Column| other.kind == column.kind && !column.kind.is_text();
            if let Some(other) = u.columns.iter().find(same) {
                pairs.push((column.name.clone(), other.name.clone()));
            }
        }
        let (left, right) = one_of(self.dice, &pairs).clone();
        let condition = self.condition(t);
        let shown = |table: &Table| {
            let columns = table.columns.iter();
            let columns: Vec<String> = columns
                .map(|c| format!("{}.{}", table.name, c.name))
                .collect();
            columns.join(", ")
        };
        match self.dice.below(6) {
            0 => format!("SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.{right} = t.{left})"),
            1 => format!("SELECT {} FROM t WHERE t.{left} IN (SELECT u.{right} FROM u)", shown(t)),
            2 => format!("SELECT {} FROM t WHERE t.{left} NOT IN (SELECT u.{right} FROM u WHERE u.{right} IS NOT NULL)", shown(t)),
            3 => format!("SELECT {}, {} FROM t LEFT JOIN u ON t.{left} = u.{right}{condition}", shown(t), shown(u)),
            4 => format!("SELECT t.id, (SELECT COUNT(*) FROM u WHERE u.{right} >= t.{left}) FROM t{condition}"),
            _ => format!("SELECT {}, {} FROM t JOIN u ON t.{left} = u.{right}{condition}", shown(t), shown(u)),
        }
    }

    /// A change of a part of a period.
    fn portion(&mut self, table: &Table) -> Option<String> {
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

    fn change(&mut self) -> String {
        let tables = self.tables;
        let table = one_of(self.dice, tables);
        match self.dice.below(4) {
            0 | 1 => self.insert(table),
            2 => self.update(table),
            _ => self.delete(table),
        }
    }

    fn transaction(&mut self) -> Vec<String> {
        let begin = *one_of(
            self.dice,
            &["BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT"],
        );
        let mut all = vec![begin.to_owned()];
        for _ in 0..1 + self.dice.below(5) {
            match self.dice.below(8) {
                0 => all.push("SAVEPOINT a".into()),
                1 => all.push("SAVEPOINT b".into()),
                2 => all.push(format!("ROLLBACK TO {}", one_of(self.dice, &["a", "b"]))),
                3 => all.push(format!(
                    "RELEASE SAVEPOINT {}",
                    one_of(self.dice, &["a", "b"])
                )),
                _ => {
                    let change = self.change();
                    all.push(change);
                }
            }
        }
        all.push(
            (*one_of(
                self.dice,
                &["COMMIT", "ROLLBACK", "COMMIT AND CHAIN; ROLLBACK"],
            ))
            .to_owned(),
        );
        all.iter()
            .flat_map(|sql| sql.split("; "))
            .map(str::to_owned)
            .collect()
    }

    fn alter(&mut self, table: &Table) -> String {
        let name = &table.name;
        let column = one_of(self.dice, &table.columns).clone();
        let kind = Kind::any(self.dice);
        let what = match self.dice.below(11) {
            0 if table.is_automatic && self.chance(60) => {
                format!("AUTO_INCREMENT = {}", ROOM * (1 + self.dice.below(30)))
            }
            0 => format!("ADD COLUMN x0 {} NULL", kind.sql(self.dice)),
            1 => "ADD COLUMN x1 INT NOT NULL DEFAULT 5 FIRST".into(),
            2 => "DROP COLUMN x0".into(),
            3 => "DROP COLUMN x1".into(),
            4 if !column.kind.needs_prefix() => format!("ADD INDEX y0 ({})", column.name),
            5 if !column.kind.needs_prefix() && !column.is_generated => {
                format!("ADD UNIQUE INDEX y1 ({}, id)", column.name)
            }
            6 => "DROP INDEX y0".into(),
            7 => "DROP INDEX y1".into(),
            8 => "RENAME COLUMN x0 TO x2".into(),
            9 => "RENAME COLUMN x2 TO x0".into(),
            _ => "FORCE".into(),
        };
        format!("ALTER TABLE {name} {what}")
    }

    fn handler(&mut self, table: &Table) -> Vec<String> {
        let name = &table.name;
        if table.primary.is_empty() || table.is_versioned || table.is_automatic {
            return vec![self.select(table)];
        }
        let mut all = vec![format!("HANDLER {name} OPEN")];
        for _ in 0..1 + self.dice.below(4) {
            let step = *one_of(self.dice, &["FIRST", "NEXT", "PREV", "LAST"]);
            all.push(format!(
                "HANDLER {name} READ `PRIMARY` {step} LIMIT {}",
                1 + self.dice.below(3)
            ));
        }
        // Nothing changes in between: the manual leaves open what a HANDLER reads of that.
        all.push(format!("HANDLER {name} CLOSE"));
        all
    }

    fn prepared(&mut self, table: &Table) -> Vec<String> {
        let sql = match self.dice.below(3) {
            0 => self.insert(table),
            1 => self.update(table),
            _ => self.select(table),
        };
        // Statements whose rows the manual counts are known by their text.
        if sql.contains("ON DUPLICATE KEY UPDATE") || sql.starts_with("REPLACE") {
            return vec![sql];
        }
        let quoted = sql.replace('\\', "\\\\").replace('\'', "''");
        vec![
            format!("PREPARE s FROM '{quoted}'"),
            "EXECUTE s".into(),
            "EXECUTE s".into(),
            "DEALLOCATE PREPARE s".into(),
        ]
    }

    fn locked(&mut self, table: &Table) -> Vec<String> {
        let mut all = vec!["LOCK TABLES t WRITE, u WRITE, journal WRITE".to_owned()];
        for _ in 0..1 + self.dice.below(3) {
            let sql = match self.dice.below(3) {
                0 => self.insert(table),
                1 => self.update(table),
                _ => self.delete(table),
            };
            all.push(sql);
        }
        all.push("UNLOCK TABLES".into());
        all
    }

    /// A cursor of a procedure, which changes the rows that it has passed.
    fn walked(&mut self, table: &Table) -> Vec<String> {
        let name = &table.name;
        let Some(order) = table.whole_order() else {
            return vec![self.select(table)];
        };
        let columns: Vec<&Column> = table
            .settable()
            .into_iter()
            .filter(|c| !c.is_in_unique)
            .collect();
        let change = match columns.is_empty() || table.has_period {
            true => "DELETE FROM".to_owned() + &format!(" {name} WHERE id = v AND v % 3 = 0"),
            false => {
                let column = (*one_of(self.dice, &columns)).clone();
                format!(
                    "UPDATE {name} SET {} = {} WHERE id = v",
                    column.name,
                    self.constant(&column)
                )
            }
        };
        vec![
            format!(
                "CREATE OR REPLACE PROCEDURE walk() BEGIN DECLARE is_done INT DEFAULT 0; DECLARE v INT; \
                 DECLARE c CURSOR FOR SELECT id FROM {name}{order}; \
                 DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_done = 1; OPEN c; \
                 walking: LOOP FETCH c INTO v; IF is_done THEN LEAVE walking; END IF; {change}; END LOOP; CLOSE c; END"
            ),
            "CALL walk()".into(),
        ]
    }
}
