//! Generates random statements with one right outcome, in whatever order an engine reads the rows.
//!
//! A `LIMIT` therefore has an order without ties. Statements move keys, and set values that a strict statement could
//! refuse, in such an order. An update of joined tables sets constants. Tables without a primary key have no such
//! order, so statements that need one are not generated for them.

use super::author::Author;
use super::schema::{Column, Table, ROOM};
use super::values::{one_of, Kind};

impl Author<'_> {
    /// Returns a statement, or several that belong together.
    pub fn unit(&mut self) -> Vec<String> {
        let unit = self.statements();
        self.as_sent(unit)
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
            64..=71 => vec![self.select(table)],
            72..=73 => self.of_a_level(),
            74 => self.by_xa(),
            75..=78 => vec![self.joined_select()],
            79..=80 => vec![self.portion(table).unwrap_or_else(|| self.update(table))],
            81..=88 => self.transaction(),
            89..=91 => vec![self.alter(table)],
            92..=93 => self.handler(table),
            94..=95 => self.prepared(table),
            96 => self.locked(table),
            97 => match self.chance(50) {
                true => self.walked(table),
                false => self.temporary(),
            },
            98 => vec![format!("TRUNCATE TABLE {}", table.name)],
            _ => vec![format!("SELECT COUNT(*) FROM {}", table.name)],
        }
    }

    /// Returns a query; some queries lock the rows that they return.
    pub(super) fn select(&mut self, table: &Table) -> String {
        let select = self.query(table);
        match self.dice.below(12) {
            0 => format!("{select} FOR UPDATE"),
            1 => format!("{select} LOCK IN SHARE MODE"),
            _ => select,
        }
    }

    fn query(&mut self, table: &Table) -> String {
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

    pub(super) fn joined_select(&mut self) -> String {
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

    pub(super) fn transaction(&mut self) -> Vec<String> {
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

    pub(super) fn alter(&mut self, table: &Table) -> String {
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
        // No statement changes rows in between, because the manual leaves open what a HANDLER reads then.
        all.push(format!("HANDLER {name} CLOSE"));
        all
    }

    pub(super) fn prepared(&mut self, table: &Table) -> Vec<String> {
        let sql = match self.dice.below(3) {
            0 => self.insert(table),
            1 => self.update(table),
            _ => self.select(table),
        };
        // These statements stay unprepared: their text tells that the manual decides their counts of changed rows.
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

    /// Returns a procedure with a cursor; it changes the rows that the cursor has passed.
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
