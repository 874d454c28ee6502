//! The names of tables: decoded from the server's spelling of files, made valid for MariaDB, and made into file names.

use std::collections::HashSet;

/// The letters that the server encodes as `@` and two characters.
const LETTERS: &str = include_str!("letters.txt");
/// The most letters of a name in MariaDB.
const NAME: usize = 64;
/// Letters with which no name may end in MariaDB.
const SPACES: [char; 6] = [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'];
/// The most bytes of a file's name.
const FILE: usize = 255;
/// The plug-in's prefix for temporary tables, which end with the server, even at a crash.
const TEMPORARY: &str = "#temporary/";

/// Returns whether the table is temporary: the server drops it at its start, because its session has ended.
pub fn is_temporary(table: &str) -> bool {
    table.starts_with(TEMPORARY)
}

/// Decodes the server's codes for characters that a file's name can't have.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        out.push_str(&rest[..at]);
        let code = &rest[at + 1..];
        match letter_of(code).or_else(|| number_of(code)) {
            Some((letter, length)) => {
                out.push(letter);
                rest = &code[length..];
            }
            None => {
                out.push('@');
                rest = code;
            }
        }
    }
    out + rest
}

/// Decodes a code of two characters; returns the letter and the code's length.
fn letter_of(code: &str) -> Option<(char, usize)> {
    let &[first, second, ..] = code.as_bytes() else {
        return None;
    };
    LETTERS.lines().find_map(|line| {
        let (begin, letters) = line.split_once(' ')?;
        let &[its_first, its_second] = begin.as_bytes() else {
            return None;
        };
        let place = second.checked_sub(its_second)?;
        let letter = letters.chars().nth(place.into())?;
        (first == its_first && letter != '.').then_some((letter, 2))
    })
}

/// Decodes a code of four lowercase hexadecimal digits; returns the letter and the code's length.
fn number_of(code: &str) -> Option<(char, usize)> {
    let digits = code.get(..4)?;
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    if !digits.as_bytes().iter().all(is_digit) {
        return None;
    }
    let letter = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    Some((letter, 4))
}

/// A table's name in MariaDB.
#[derive(Debug, PartialEq)]
pub struct Named {
    /// The database; only the server's tables have one.
    pub database: Option<String>,
    /// The table's name in it.
    pub own: String,
    /// Whether the name differs from the table's own.
    pub is_new: bool,
}

/// The names in use, so that no two tables get the same name.
#[derive(Default)]
pub struct Names {
    taken: HashSet<(String, String)>,
}

impl Names {
    /// Returns the name of a table, made valid for MariaDB.
    pub fn in_server(&mut self, table: &str) -> Named {
        let one: fn(char) -> usize = |_| 1;
        let (database, own) = match table.split_once('/') {
            Some((database, own)) => (Some(unescaped(database)), unescaped(own)),
            None => (None, table.to_owned()),
        };
        let its = database.map(|name| (possible(&cut(&possible(&name), NAME, one)), name));
        let has_new = its
            .as_ref()
            .is_some_and(|(database, name)| database != name);
        let database = its.map(|(database, _)| database);
        let within = database.as_deref().unwrap_or_default();
        let taken = self.take(within, &possible(&own), NAME, one);
        Named {
            is_new: has_new || taken != own,
            own: taken,
            database,
        }
    }

    /// Returns the names of a table's columns, or of its indexes, made valid for MariaDB: it ignores case, and does not
    /// allow `reserved`.
    pub fn in_table<'a>(names: impl Iterator<Item = &'a str>, reserved: &str) -> Vec<String> {
        let key = |name: &str| (String::new(), name.to_lowercase());
        let mut taken = Names::default();
        taken.taken.insert(key(reserved));
        let own: Vec<&str> = names.collect();
        // Valid names stay as they are, whatever the other names become.
        let mut stays = |name: &&str| {
            let is_possible = possible(name) == **name && name.chars().count() <= NAME;
            is_possible && taken.taken.insert(key(name))
        };
        let staying: Vec<bool> = own.iter().map(&mut stays).collect();
        let names = own.into_iter().zip(staying);
        let given = names.map(|(name, stays)| match stays {
            true => name.to_owned(),
            false => taken.take_folded("", &possible(name), NAME, |_| 1, str::to_lowercase),
        });
        given.collect()
    }

    /// Returns the folder of a table's file, if it has a database, and the file's name.
    pub fn file(&mut self, table: &str, ending: &str) -> (Option<String>, String) {
        let part = |text: &str| text.replace(['/', '\\', '\0'], ".");
        let (folder, own) = match table.split_once('/') {
            Some((database, own)) => {
                let folder = cut(&part(database), FILE, char::len_utf8);
                let is_elsewhere = matches!(&folder[..], "" | "." | "..");
                let folder = if is_elsewhere { "_".to_owned() } else { folder };
                (Some(folder), part(own))
            }
            None => (None, part(table)),
        };
        let within = folder.as_deref().unwrap_or_default();
        let own = self.take(within, &own, FILE - ending.len(), char::len_utf8);
        (folder, own + ending)
    }

    /// Returns the name if it is free and not longer than `most`; otherwise a cut name with a number.
    fn take(&mut self, within: &str, name: &str, most: usize, length: fn(char) -> usize) -> String {
        self.take_folded(within, name, most, length, str::to_owned)
    }

    /// Like `take`, where two names are equal if `fold` makes them equal.
    fn take_folded(
        &mut self,
        within: &str,
        name: &str,
        most: usize,
        length: fn(char) -> usize,
        fold: fn(&str) -> String,
    ) -> String {
        let mut number = 0;
        loop {
            let end = match number {
                0 => String::new(),
                number => format!("~{number}"),
            };
            let taken = cut(name, most.saturating_sub(end.len()), length) + &end;
            // A name that is cut always has a number.
            let is_whole = number > 0 || taken == name;
            if is_whole && self.taken.insert((within.to_owned(), fold(&taken))) {
                return taken;
            }
            number += 1;
        }
    }
}

/// Makes a name valid for MariaDB: not empty, without spaces at the end, NUL, and letters of four bytes.
fn possible(name: &str) -> String {
    let can_be = |letter: char| letter != '\0' && letter <= '\u{ffff}';
    let letters = name.trim_end_matches(SPACES).chars();
    let name: String = letters
        .map(|letter| if can_be(letter) { letter } else { '_' })
        .collect();
    match &name[..] {
        "" => "_".to_owned(),
        _ => name,
    }
}

/// Returns the longest prefix of a text that fits.
fn cut(text: &str, room: usize, length: fn(char) -> usize) -> String {
    let mut used = 0;
    let fits = |letter: &char| {
        used += length(*letter);
        used <= room
    };
    text.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_server_calls_them() {
        for (file, name) in [
            ("t", "t"),
            ("my@0020shop", "my shop"),
            ("t@00241", "t$1"),
            ("t@0k", "tä"),
            ("@1i@1o@1j@0p@0x", "öüßéñ"),
            ("@K1@l0@r1", "Шея"),
            ("@7P@6l", "Ωα"),
            ("@A@@a@@@Z", "ＡａⓏ"),
            ("@4e2d@3042", "中あ"),
            // None of these contains a code.
            ("@", "@"),
            ("@+123", "@+123"),
            ("@00E4", "@00E4"),
            ("@00é", "@00é"),
            ("a@d800@0ä", "a@d800@0ä"),
        ] {
            assert_eq!(unescaped(file), name);
        }
    }

    #[test]
    fn each_letter_has_one_code() {
        let mut letters = HashSet::new();
        let mut codes = HashSet::new();
        for line in LETTERS.lines().filter(|line| !line.starts_with('#')) {
            let (begin, run) = line.split_once(' ').unwrap();
            let &[first, second] = begin.as_bytes() else {
                panic!("{line}");
            };
            for (second, letter) in (second..).zip(run.chars()).filter(|(_, l)| *l != '.') {
                assert!(letters.insert(letter), "{letter}");
                assert!(codes.insert((first, second)), "{letter}");
                let code = format!("@{}{}", char::from(first), char::from(second));
                assert_eq!(unescaped(&code), letter.to_string());
            }
        }
        assert_eq!(letters.len(), 1511);
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_numbered() {
        let mut names = Names::default();
        let mut of = |table: &str| {
            let named = names.in_server(table);
            (named.database.unwrap_or_default(), named.own, named.is_new)
        };
        let long = format!("d@0k/{}@0k#P#p0", "@m0".repeat(60));
        let letters = "ж".repeat(60);
        let cut = |number| {
            let own = format!("{letters}ä#~{number}");
            (String::from("dä"), own, true)
        };
        assert_eq!(of(&long), cut(1));
        assert_eq!(of(&format!("{long}x")), cut(2));
        assert_eq!(of("a/b"), ("a".into(), "b".into(), false));
        assert_eq!(of("a/@0062"), ("a".into(), "b~1".into(), true));
        assert_eq!(of("a.b@0k"), (String::new(), "a.b@0k".into(), false));
    }

    #[test]
    fn names_within_a_table_are_such_as_the_server_takes() {
        let long = "ж".repeat(65);
        let cut = "ж".repeat(62) + "~1";
        let given = |names: &[&str]| Names::in_table(names.iter().copied(), "PRIMARY");
        assert_eq!(
            given(&["", "x ", "x", "X", "a`b", "😀\0", &long, " y", "primary", "_"]),
            [
                "_~1",
                "x~1",
                "x",
                "X~2",
                "a`b",
                "__",
                &cut,
                " y",
                "primary~1",
                "_"
            ]
        );
        let named = Names::default().in_server("d /t ");
        assert_eq!(named.database.as_deref(), Some("d"));
        assert!(named.own == "t" && named.is_new);
    }

    #[test]
    fn each_table_has_a_file_of_its_own() {
        let mut names = Names::default();
        let mut of = |table: &str| names.file(table, ".csv");
        assert_eq!(of("a/b"), (Some("a".into()), "b.csv".into()));
        assert_eq!(of("a.b"), (None, "a.b.csv".into()));
        assert_eq!(of("a/b/c"), (Some("a".into()), "b.c.csv".into()));
        assert_eq!(of("a/b.c"), (Some("a".into()), "b.c~1.csv".into()));
        assert_eq!(of("../b"), (Some("_".into()), "b.csv".into()));
        assert_eq!(of("/b"), (Some("_".into()), "b~1.csv".into()));
        for _ in 0..2 {
            let (folder, file) = of(&format!("{0}/{0}", "ж".repeat(300)));
            assert!(folder.unwrap().len() <= FILE && file.len() <= FILE);
        }
    }
}
