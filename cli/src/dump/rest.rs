//! The rest of a CREATE TABLE besides columns and keys, as the server's plug-in stores it with a table.

use std::collections::BTreeMap;

/// The rest of a table's definition; `mariadb/capi/include/peregrine.h` describes the parts.
#[derive(Debug, Default)]
pub struct Rest {
    /// Columns that the engine does not store, by their number in the table.
    pub columns: BTreeMap<usize, String>,
    /// Lines after the columns and keys.
    pub lines: Vec<String>,
    /// Table options.
    pub options: Vec<String>,
    /// Notes for the reader of the dump.
    pub comments: Vec<String>,
    keys: BTreeMap<String, String>,
    overlaps: BTreeMap<String, String>,
}

impl Rest {
    /// Reads the parts.
    ///
    /// A kind of a newer version becomes a comment that it is left out.
    pub fn new(parts: &[&str]) -> Rest {
        let mut rest = Rest::default();
        for part in parts.chunks_exact(3) {
            let (of, text) = (part[1].to_owned(), part[2].to_owned());
            match (part[0], of.parse()) {
                ("column", Ok(number)) => drop(rest.columns.insert(number, text)),
                ("line", _) => rest.lines.push(text),
                ("option", _) => rest.options.push(text),
                ("key", _) => drop(rest.keys.insert(of, text)),
                ("overlaps", _) => drop(rest.overlaps.insert(of, text)),
                ("comment", _) => rest.comments.push(text),
                (kind, _) => rest.comments.push(format!("left out: {kind} {of} {text}")),
            }
        }
        rest
    }

    /// Returns the text after the parts of a key.
    pub fn key(&self, name: &str) -> &str {
        self.keys.get(name).map_or("", String::as_str)
    }

    /// Returns the text that replaces a key's last two parts, which are a period's columns.
    pub fn overlaps(&self, name: &str) -> Option<&str> {
        self.overlaps.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_other_kinds_are_told() {
        let rest = Rest::new(&["line", "", "CHECK (1)", "moon", "of", "cheese", "cut"]);
        assert_eq!(rest.lines, ["CHECK (1)"]);
        assert_eq!(rest.comments, ["left out: moon of cheese"]);
        assert_eq!(rest.key("k"), "");
    }
}
