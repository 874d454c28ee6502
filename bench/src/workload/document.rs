//! Reads a TOML document by hand, so that every value has its place in the file and all problems are reported at once.

use std::cell::RefCell;
use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::problem::{position, Problem};

/// Collects the problems of a file.
#[derive(Debug)]
pub struct Complaints<'a> {
    text: &'a str,
    all: RefCell<Vec<Problem>>,
}

impl<'a> Complaints<'a> {
    /// Creates an empty collection for a file with this text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            all: RefCell::new(Vec::new()),
        }
    }

    /// Adds a problem at this byte of the text.
    pub fn add(&self, offset: usize, text: impl Into<String>) {
        let (line, column) = position(self.text, offset);
        self.all.borrow_mut().push(Problem {
            line,
            column,
            text: text.into(),
        });
    }

    /// Returns the problems in the order of the file, without duplicates.
    #[must_use]
    pub fn into_problems(self) -> Vec<Problem> {
        let mut all = self.all.into_inner();
        all.sort();
        all.dedup();
        all
    }
}

/// Parses the text, and adds its TOML errors to the problems.
pub fn parse<'a>(text: &'a str, complaints: &Complaints<'a>) -> Option<Spanned<DeTable<'a>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let offset = error.span().map_or(0, |span| span.start);
        complaints.add(offset, error.message().trim_end().replace('\n', "; "));
    }
    errors.is_empty().then_some(table)
}

/// A value and its place.
#[derive(Debug, Clone, Copy)]
pub struct Node<'d, 'a> {
    value: &'d Spanned<DeValue<'a>>,
    complaints: &'d Complaints<'a>,
}

/// A string and the place of its first character.
#[derive(Debug, Clone, Copy)]
pub struct Text<'d> {
    /// The string.
    pub text: &'d str,
    /// The byte of the file where the string begins, if the file has all its characters unchanged; else the byte where
    /// its value begins.
    pub offset: usize,
    exact: bool,
}

impl Text<'_> {
    /// Returns the place in the file of a byte of the string.
    #[must_use]
    pub fn at(&self, inside: usize) -> usize {
        if self.exact {
            self.offset + inside
        } else {
            self.offset
        }
    }
}

impl<'d, 'a> Node<'d, 'a> {
    /// The byte of the file where the value begins.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.value.span().start
    }

    /// Adds a problem at this value.
    pub fn complain(&self, text: impl Into<String>) {
        self.complaints.add(self.offset(), text);
    }

    /// Adds a problem at a place inside of a string.
    pub fn complain_at(&self, offset: usize, text: impl Into<String>) {
        self.complaints.add(offset, text);
    }

    /// Describes the kind of the value.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with decimals",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        }
    }

    /// Returns the string, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<Text<'d>> {
        let DeValue::String(text) = self.value.get_ref() else {
            return None;
        };
        let Range { start, end } = self.value.span();
        let written = self.complaints.text.get(start..end).unwrap_or_default();
        // A string begins with one quote or three. TOML drops a line end after three.
        let begin = [1, 3, 4, 5]
            .into_iter()
            .find(|begin| written.get(*begin..begin + text.len()) == Some(text.as_ref()));
        Some(Text {
            text: text.as_ref(),
            offset: start + begin.unwrap_or(0),
            exact: begin.is_some(),
        })
    }

    /// Returns the whole number, if it is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self.value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    /// Returns the number, if it is one, whole or with decimals.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self.value.get_ref() {
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => self.as_integer().map(|number| number as f64),
        }
    }

    /// Returns a number as it is written, with its decimals.
    #[must_use]
    pub fn as_written_number(&self) -> Option<String> {
        match self.value.get_ref() {
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            _ => self.as_integer().map(|number| number.to_string()),
        }
    }

    /// Returns the string, or adds a problem.
    #[must_use]
    pub fn text(&self, what: &str) -> Option<Text<'d>> {
        let text = self.as_text();
        if text.is_none() {
            self.complain(format!(
                "{what} must be a string, and this is {}",
                self.kind()
            ));
        }
        text
    }

    /// Returns the whole number, or adds a problem.
    #[must_use]
    pub fn integer(&self, what: &str) -> Option<i64> {
        let number = self.as_integer();
        if number.is_none() {
            self.complain(format!(
                "{what} must be a whole number, and this is {}",
                self.kind()
            ));
        }
        number
    }

    /// Returns the boolean, or adds a problem.
    #[must_use]
    pub fn boolean(&self, what: &str) -> Option<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => {
                self.complain(format!(
                    "{what} must be true or false, and this is {}",
                    self.kind()
                ));
                None
            }
        }
    }

    /// Returns the elements, or adds a problem.
    #[must_use]
    pub fn array(&self, what: &str) -> Option<Vec<Node<'d, 'a>>> {
        match self.value.get_ref() {
            DeValue::Array(array) => Some(
                array
                    .iter()
                    .map(|value| Node {
                        value,
                        complaints: self.complaints,
                    })
                    .collect(),
            ),
            _ => {
                self.complain(format!(
                    "{what} must be an array, and this is {}",
                    self.kind()
                ));
                None
            }
        }
    }

    /// Returns the table, or adds a problem.
    #[must_use]
    pub fn section(&self, what: &'static str) -> Option<Section<'d, 'a>> {
        match self.value.get_ref() {
            DeValue::Table(table) => {
                Some(Section::new(table, self.offset(), what, self.complaints))
            }
            _ => {
                self.complain(format!(
                    "{what} must be a table, and this is {}",
                    self.kind()
                ));
                None
            }
        }
    }
}

/// A table whose keys a reader takes one after another; the keys that it does not take are problems.
#[derive(Debug)]
pub struct Section<'d, 'a> {
    table: &'d DeTable<'a>,
    offset: usize,
    what: &'static str,
    known: Vec<&'static str>,
    complaints: &'d Complaints<'a>,
}

impl<'d, 'a> Section<'d, 'a> {
    /// Creates a section for the table `what`, which begins at `offset`.
    #[must_use]
    pub fn new(
        table: &'d DeTable<'a>,
        offset: usize,
        what: &'static str,
        complaints: &'d Complaints<'a>,
    ) -> Self {
        Self {
            table,
            offset,
            what,
            known: Vec::new(),
            complaints,
        }
    }

    /// The byte of the file where the table begins.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Adds a problem of the table as a whole.
    pub fn complain(&self, text: impl Into<String>) {
        self.complaints.add(self.offset, text);
    }

    /// Adds a problem at this byte of the file.
    pub fn complain_at(&self, offset: usize, text: impl Into<String>) {
        self.complaints.add(offset, text);
    }

    /// Returns the value of a key, if the table has it.
    pub fn take(&mut self, key: &'static str) -> Option<Node<'d, 'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table
            .iter()
            .find(|(name, _)| name.get_ref().as_ref() == key)
            .map(|(_, value)| Node {
                value,
                complaints: self.complaints,
            })
    }

    /// Returns the value of a required key, or adds a problem.
    pub fn need(&mut self, key: &'static str) -> Option<Node<'d, 'a>> {
        let found = self.take(key);
        if found.is_none() {
            self.complain(format!("{} has no '{key}', which it needs", self.what));
        }
        found
    }

    /// Returns an optional string.
    pub fn text(&mut self, key: &'static str) -> Option<Text<'d>> {
        self.take(key)?.text(&format!("'{key}'"))
    }

    /// Returns a required string, or adds a problem.
    pub fn needed_text(&mut self, key: &'static str) -> Option<Text<'d>> {
        self.need(key)?.text(&format!("'{key}'"))
    }

    /// Returns every key with its place and value, for tables whose keys are names.
    #[must_use]
    pub fn entries(&self) -> Vec<(Text<'d>, Node<'d, 'a>)> {
        self.table
            .iter()
            .map(|(name, value)| {
                let text = Text {
                    text: name.get_ref().as_ref(),
                    offset: name.span().start,
                    exact: false,
                };
                let node = Node {
                    value,
                    complaints: self.complaints,
                };
                (text, node)
            })
            .collect()
    }

    /// Returns the tables of an array of tables, such as `[[table]]`; none if the key is missing.
    pub fn sections(&mut self, key: &'static str, what: &'static str) -> Vec<Section<'d, 'a>> {
        let Some(node) = self.take(key) else {
            return Vec::new();
        };
        let nodes = node.array(&format!("'{key}'")).unwrap_or_default();
        nodes.iter().filter_map(|node| node.section(what)).collect()
    }

    /// Adds a problem for every key that was not taken.
    pub fn end(self) {
        for (name, _) in self.table {
            let key = name.get_ref().as_ref();
            if !self.known.contains(&key) {
                self.complaints.add(
                    name.span().start,
                    format!(
                        "unknown key '{key}': {} has {}",
                        self.what,
                        self.known.join(", ")
                    ),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str, read: impl Fn(&mut Section<'_, '_>)) -> Vec<(usize, usize, String)> {
        let complaints = Complaints::new(text);
        if let Some(table) = parse(text, &complaints) {
            let mut section = Section::new(table.get_ref(), 0, "a file", &complaints);
            read(&mut section);
            section.end();
        }
        complaints
            .into_problems()
            .into_iter()
            .map(|problem| (problem.line, problem.column, problem.text))
            .collect()
    }

    #[test]
    fn unknown_keys_are_told_with_the_known_ones() {
        let found = problems("name = 'a'\nwieght = 3\n", |section| {
            assert_eq!(section.text("name").map(|text| text.text), Some("a"));
            assert!(section.take("weight").is_none());
        });
        assert_eq!(
            found,
            [(
                2,
                1,
                "unknown key 'wieght': a file has name, weight".to_owned()
            )]
        );
    }

    #[test]
    fn wrong_kinds_and_missing_keys_are_told() {
        let found = problems("name = 3\n", |section| {
            assert!(section.text("name").is_none());
            assert!(section.need("rows").is_none());
        });
        assert_eq!(found.len(), 2);
        assert!(found[0].2.contains("'rows'"), "{found:?}");
        assert_eq!((found[1].0, found[1].1), (1, 8));
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_place() {
        let found = problems("name = \n[x\n", |_| ());
        assert!(found.len() >= 2, "{found:?}");
        assert_eq!(found[0].0, 1);
        assert_eq!(found[1].0, 2);
    }

    #[test]
    fn places_inside_of_strings_are_known() {
        for (text, at) in [
            ("a = \"xyz\"", 5),
            ("a = 'xyz'", 5),
            ("a = \"\"\"xyz\"\"\"", 7),
            ("a = '''\nxyz'''", 8),
        ] {
            let complaints = Complaints::new(text);
            let table = parse(text, &complaints).expect("TOML");
            let mut section = Section::new(table.get_ref(), 0, "a file", &complaints);
            let found = section.text("a").expect("a string");
            assert_eq!((found.text, found.at(1)), ("xyz", at + 1), "{text}");
        }
        let text = "a = \"x\\ty\"";
        let complaints = Complaints::new(text);
        let table = parse(text, &complaints).expect("TOML");
        let mut section = Section::new(table.get_ref(), 0, "a file", &complaints);
        assert_eq!(section.text("a").expect("a string").at(2), 4);
    }
}
