//! What a CREATE TABLE has besides columns and keys, as the server's plug-in keeps it with a table.

use std::collections::BTreeMap;

/// What a table has. `mariadb/capi/include/peregrine.h` says what the parts are.
#[derive(Debug, Default)]
pub struct Rest {
    /// Columns that the engine has not, by their number in the table.
    pub columns: BTreeMap<usize, String>,
    /// What stands beside columns and keys.
    pub lines: Vec<String>,
    /// What stands behind them.
    pub options: Vec<String>,
    /// What who reads the dump is to know.
    pub comments: Vec<String>,
    keys: BTreeMap<String, String>,
    overlaps: BTreeMap<String, String>,
}

impl Rest {
    /// From parts. Of kinds that a newer version knows only a comment says that they are left out.
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

    /// What follows the parts of a key.
    pub fn key(&self, name: &str) -> &str {
        self.keys.get(name).map_or("", String::as_str)
    }

    /// What stands for a key's last two parts, which are a period's.
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
