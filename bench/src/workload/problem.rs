//! The problems of a workload file and their places.

use std::fmt;

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The fault, and the allowed values.
    pub text: String,
}

/// All problems of a file, in the order of the file; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file's name in messages.
    pub file: String,
    /// The problems.
    pub all: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.all.iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            let Problem { line, column, text } = problem;
            write!(out, "{}:{line}:{column}: {text}", self.file)?;
        }
        Ok(())
    }
}

/// Returns line and column, both from 1, of the byte `offset` of `text`.
#[must_use]
pub fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[begin..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "a = 1\nüb = 2\n";
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, 4), (1, 5));
        assert_eq!(position(text, 6), (2, 1));
        assert_eq!(position(text, 8), (2, 2), "ü is two bytes and one column");
        assert_eq!(position(text, 7), (2, 1), "inside of a character");
        assert_eq!(position(text, 1_000), (3, 1));
    }

    #[test]
    fn problems_are_shown_as_compilers_do() {
        let problems = Problems {
            file: "shop.toml".to_owned(),
            all: vec![
                Problem {
                    line: 3,
                    column: 7,
                    text: "one".to_owned(),
                },
                Problem {
                    line: 9,
                    column: 1,
                    text: "two".to_owned(),
                },
            ],
        };
        assert_eq!(
            problems.to_string(),
            "shop.toml:3:7: one\nshop.toml:9:1: two"
        );
    }
}
