//! Tables: their definitions and their initial rows.

use super::document::{Node, Section};
use super::values::distribution;
use super::values::expression::{Expression, Slot};
use super::values::generator::{Alone, Draw, Generator};
use super::values::scope::{is_name, Scope};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::Datum;

/// The streams of tables' random numbers begin here; those of parameters are below.
const FIRST_STREAM: u64 = 1 << 63;

/// The maximum number of columns from one definition: no server allows more in a table.
const MOST_COPIES: u32 = 4_096;

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The columns of the primary key; empty if there is none.
    pub primary_key: Vec<String>,
    /// Its other indexes.
    pub indexes: Vec<Index>,
    /// The source of its rows.
    pub source: Source,
    number: u64,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type in SQL, including `NOT NULL` and the like.
    pub sql_type: String,
    /// Whether rows are loaded with a value; else the column gets its default.
    pub is_loaded: bool,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its columns, with the length of a prefix if there is one, such as `title(20)`.
    pub columns: Vec<String>,
    /// Whether no two rows may have the same values.
    pub unique: bool,
}

/// The source of a table's rows.
#[derive(Debug, Clone)]
pub enum Source {
    /// The generators of the columns.
    Generated(Box<Generated>),
    /// The generator of table `normal`, with this many rows.
    Normal(u32),
}

/// Rows made by generators.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The number of rows; for a table with a parent, the number for each row of the parent.
    rows: Expression,
    /// The parent table, if there is one.
    parent: Option<Box<Table>>,
    row: Slot,
    draws: Vec<Draw>,
    /// The loaded columns: their variables and generators.
    values: Vec<(Slot, Generator)>,
    scope: Scope,
}

impl Table {
    /// Reads `[[table]]`; `before` are the tables before it.
    pub fn read(mut section: Section<'_, '_>, before: &[Table], scope: &Scope) -> Option<Self> {
        let name = section.needed_text("name");
        if let Some(text) = name.filter(|text| !is_name(text.text)) {
            section.complain(format!("'{}' is no name of a table", text.text));
        } else if let Some(text) = name.filter(|text| before.iter().any(|t| t.name == text.text)) {
            section.complain(format!("there is a table '{}' already", text.text));
        }
        let built_in = section.take("built_in");
        let parent_node = section.take("per");
        let parent = parent_node.and_then(|node| parent(&node, before));
        let mut inner = match parent.map(|table| &table.source) {
            Some(Source::Generated(generated)) => generated.scope.clone(),
            _ => scope.clone(),
        };
        // The number of rows may depend on the parent's row, but not on the table's own rows.
        let rows_node = section.need("rows");
        let rows = rows_node.and_then(|node| inner.expression(&node, "'rows'"));
        let row = inner.fresh("row");
        let draws = distribution::draws(&mut section, &mut inner);
        let (columns, values) = columns(&mut section, &mut inner);
        let primary_key = section
            .take("primary_key")
            .and_then(|node| names(&node, "'primary_key'", &columns))
            .unwrap_or_default();
        let indexes: Vec<Index> = section
            .sections("indexes", "an index")
            .into_iter()
            .filter_map(|index| read_index(index, &columns))
            .collect();
        for (place, index) in indexes.iter().enumerate() {
            if indexes[..place]
                .iter()
                .any(|other| other.name == index.name)
            {
                section.complain(format!("there are two indexes '{}'", index.name));
            }
        }
        if built_in.is_none() && !columns.is_empty() && values.is_empty() {
            section.complain("no column of this table has a generator, so it can have no rows");
        }
        section.end();
        if let (Some(node), Some(count)) = (rows_node, rows.as_ref().and_then(Expression::constant))
        {
            if count.integer().is_none_or(|count| count < 0) {
                node.complain("'rows' must be a whole number of at least 0");
                return None;
            }
        }
        let rows = rows?;
        if built_in.is_none() && !columns.iter().any(|column| column.is_loaded) {
            return None;
        }
        let source = match built_in {
            None => Source::Generated(Box::new(Generated {
                rows,
                parent: parent.cloned().map(Box::new),
                row,
                draws,
                values,
                scope: inner,
            })),
            Some(node) => normal(&node, &rows)?,
        };
        Some(Self {
            name: name?.text.to_owned(),
            columns,
            primary_key,
            indexes,
            source,
            number: before.len() as u64,
        })
    }

    /// Returns the statement that creates the table in the current schema.
    #[must_use]
    pub fn create(&self, engine: &str) -> String {
        let with_indexes = self.indexes.iter().map(Index::definition);
        self.create_with(engine, with_indexes)
    }

    /// Returns the statement that creates it without its secondary indexes.
    #[must_use]
    pub fn create_without_indexes(&self, engine: &str) -> String {
        self.create_with(engine, std::iter::empty())
    }

    /// Returns the statement that adds its secondary indexes; `None` if it has none.
    #[must_use]
    pub fn add_indexes(&self) -> Option<String> {
        let added: Vec<String> = self
            .indexes
            .iter()
            .map(|index| format!("ADD {}", index.definition()))
            .collect();
        (!added.is_empty()).then(|| format!("ALTER TABLE {} {}", self.name, added.join(", ")))
    }

    fn create_with(&self, engine: &str, indexes: impl Iterator<Item = String>) -> String {
        let columns = self
            .columns
            .iter()
            .map(|column| format!("{} {}", column.name, column.sql_type));
        let key = (!self.primary_key.is_empty())
            .then(|| format!("PRIMARY KEY ({})", self.primary_key.join(", ")));
        let parts: Vec<String> = columns.chain(key).chain(indexes).collect();
        format!(
            "CREATE TABLE {} ({}) ENGINE={engine}",
            self.name,
            parts.join(", ")
        )
    }

    /// Returns the names of the columns that rows are loaded with.
    #[must_use]
    pub fn loaded_columns(&self) -> Vec<&str> {
        let loaded = self.columns.iter().filter(|column| column.is_loaded);
        loaded.map(|column| column.name.as_str()).collect()
    }

    /// Makes every row in order and passes the values of the loaded columns to `take`, until `take` returns false.
    ///
    /// The same seed gives the same rows.
    pub fn rows(&self, seed: u64, take: &mut dyn FnMut(&[Datum]) -> bool) {
        let Source::Generated(generated) = &self.source else {
            return;
        };
        let mut variables = vec![Datum::Null; generated.scope.slots];
        let mut row = Vec::with_capacity(generated.values.len());
        self.each(seed, &mut variables, &mut |variables| {
            row.clear();
            let values = generated.values.iter();
            row.extend(values.map(|(slot, _)| variables.get(*slot).cloned().unwrap_or_default()));
            take(&row)
        });
    }

    /// Fills the variables for every row in turn; returns whether to continue.
    fn each(
        &self,
        seed: u64,
        variables: &mut Vec<Datum>,
        take: &mut dyn FnMut(&mut Vec<Datum>) -> bool,
    ) -> bool {
        let Source::Generated(generated) = &self.source else {
            return true;
        };
        let mut dice = Dice::new(seed, FIRST_STREAM | self.number);
        match &generated.parent {
            None => generated.block(&mut dice, variables, take),
            Some(parent) => parent.each(seed, variables, &mut |variables| {
                generated.block(&mut dice, variables, take)
            }),
        }
    }
}

impl Generated {
    /// Makes the rows of one parent's row, or all rows of a table without a parent.
    fn block(
        &self,
        dice: &mut Dice,
        variables: &mut Vec<Datum>,
        take: &mut dyn FnMut(&mut Vec<Datum>) -> bool,
    ) -> bool {
        let count = self.rows.integer(variables).unwrap_or(0);
        let slots = self.scope.slots;
        if variables.len() < slots {
            variables.resize(slots, Datum::Null);
        }
        for number in 1..=count {
            set(variables, self.row, Datum::Integer(number));
            let draws = self.draws.iter().map(|draw| (draw.slot, &draw.generator));
            let values = self
                .values
                .iter()
                .map(|(slot, generator)| (*slot, generator));
            for (slot, generator) in draws.chain(values) {
                let value = generator.draw(dice, variables, &mut Alone);
                set(variables, slot, value);
            }
            if !take(variables) {
                return false;
            }
        }
        true
    }
}

fn set(variables: &mut [Datum], slot: Slot, value: Datum) {
    if let Some(place) = variables.get_mut(slot) {
        *place = value;
    }
}

impl Index {
    fn definition(&self) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        format!("{unique}KEY {} ({})", self.name, self.columns.join(", "))
    }
}

fn parent<'t>(node: &Node<'_, '_>, before: &'t [Table]) -> Option<&'t Table> {
    let name = node.text("'per'")?.text;
    let found = before
        .iter()
        .find(|table| table.name == name && matches!(table.source, Source::Generated(_)));
    if found.is_none() {
        let known: Vec<&str> = before.iter().map(|table| table.name.as_str()).collect();
        node.complain(format!(
            "'per' names a table above this one, which this one has rows for each row of; there {}",
            if known.is_empty() {
                "is none".to_owned()
            } else {
                format!("are {}", known.join(", "))
            }
        ));
    }
    found
}

fn normal(node: &Node<'_, '_>, rows: &Expression) -> Option<Source> {
    let name = node.text("'built_in'")?.text;
    if name != "normal" {
        node.complain(format!(
            "there is no built-in table '{name}': there is normal"
        ));
        return None;
    }
    let count = rows.constant().and_then(|value| value.integer());
    match count.and_then(|count| u32::try_from(count).ok()) {
        Some(count) if count > 0 => Some(Source::Normal(count)),
        _ => {
            node.complain("the built-in table normal has from 1 to 4294967295 rows");
            None
        }
    }
}

fn columns(
    section: &mut Section<'_, '_>,
    scope: &mut Scope,
) -> (Vec<Column>, Vec<(Slot, Generator)>) {
    let mut columns: Vec<Column> = Vec::new();
    let mut values = Vec::new();
    let found = section.sections("columns", "a column");
    if found.is_empty() {
        section.complain(
            "a table needs 'columns', an array of tables with name, type and a generator",
        );
    }
    for mut column in found {
        let name = column.need("name");
        let text = name.and_then(|name| name.text("'name'"));
        let sql_type = column.needed_text("type");
        let generator = distribution::generator(&mut column, scope);
        let copies = column.take("copies").map(|node| copies(&node));
        if generator.is_some() {
            column.end();
        }
        let (Some(name), Some(text), Some(sql_type), Some(generator)) =
            (name, text, sql_type, generator)
        else {
            continue;
        };
        let names = match copies {
            None => vec![text.text.to_owned()],
            Some(None) => continue,
            Some(Some(count)) => (1..=count)
                .map(|copy| format!("{}{copy}", text.text))
                .collect(),
        };
        for own in &names {
            if columns.iter().any(|other| other.name == *own) {
                name.complain(format!("there is a column '{own}' already"));
                break;
            }
            columns.push(Column {
                name: own.clone(),
                sql_type: sql_type.text.to_owned(),
                is_loaded: generator.is_some(),
            });
            if let Some(generator) = &generator {
                let slot = if copies.is_none() {
                    scope.declare(&text, &name)
                } else {
                    scope.fresh(own)
                };
                values.push((slot, generator.clone()));
            }
        }
    }
    (columns, values)
}

/// Reads the number of columns from one definition.
fn copies(node: &Node<'_, '_>) -> Option<u32> {
    let count = node.integer("'copies'")?;
    let count = u32::try_from(count).ok();
    let count = count.filter(|count| (1..=MOST_COPIES).contains(count));
    if count.is_none() {
        node.complain(format!("'copies' is a number from 1 to {MOST_COPIES}"));
    }
    count
}

/// Reads names of columns, with the prefixes of an index: a string or an array of strings.
fn names(node: &Node<'_, '_>, what: &str, columns: &[Column]) -> Option<Vec<String>> {
    let nodes = if node.as_text().is_some() {
        vec![*node]
    } else {
        node.array(what)?
    };
    let mut found = Vec::new();
    for node in &nodes {
        let text = node.text("a column's name")?;
        let (name, length) = match text.text.split_once('(') {
            None => (text.text, None),
            Some((name, length)) => (name, Some(length)),
        };
        let is_length = |length: &str| {
            let digits = length.strip_suffix(')').unwrap_or_default();
            !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
        };
        if !columns.iter().any(|column| column.name == name) {
            let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            node.complain(format!(
                "there is no column '{name}': there are {}",
                known.join(", ")
            ));
            return None;
        }
        if length.is_some_and(|length| !is_length(length)) {
            node.complain("a prefix is written as in \"title(20)\"");
            return None;
        }
        found.push(text.text.to_owned());
    }
    if found.is_empty() {
        node.complain(format!("{what} must name a column"));
        return None;
    }
    Some(found)
}

fn read_index(mut section: Section<'_, '_>, columns: &[Column]) -> Option<Index> {
    let name = section.needed_text("name");
    let unique = section
        .take("unique")
        .map_or(Some(false), |node| node.boolean("'unique'"));
    let columns = section
        .need("columns")
        .and_then(|node| names(&node, "'columns'", columns));
    if let Some(text) = name.filter(|text| !is_name(text.text)) {
        section.complain(format!("'{}' is no name of an index", text.text));
    }
    section.end();
    Some(Index {
        name: name?.text.to_owned(),
        columns: columns?,
        unique: unique?,
    })
}

#[cfg(test)]
mod tests;
