//! The table as a file for `LOAD DATA`: one line a row, tabs between the fields, `\N` for NULL.
//!
//! No generated value holds a tab, a line end or a backslash, so nothing needs escaping.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::generator::{date, Generator, Row};
use crate::error::{PathContext, Result, SuiteError};

/// Makes sure that the file for this table is in `dir`, and returns its path. A file that is there
/// already is used again: its name says seed, rows and form.
///
/// `progress` is told the number of rows written so far, and says whether to go on.
///
/// # Errors
/// When the file can't be written; [`SuiteError::Interrupted`] when `progress` says to stop.
pub fn prepare(
    dir: &Path,
    seed: u64,
    generator: &Generator,
    mut progress: impl FnMut(u32) -> bool,
) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).at("cannot create", dir)?;
    let path = dir.join(format!("normal-1-{seed}-{}.tsv", generator.rows()));
    if path.is_file() {
        return Ok(path);
    }
    // Written beside its place and then moved, so that half a file is never taken for a whole.
    let making = path.with_extension(format!("{}.new", std::process::id()));
    let file = File::create(&making).at("cannot create", &making)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut row = Row::default();
    for id in 1..=generator.rows() {
        generator.row(id, &mut row);
        write_row(&mut out, &row).at("cannot write", &making)?;
        if id % 10_000 == 0 && !progress(id) {
            drop(out);
            let _ = std::fs::remove_file(&making);
            return Err(SuiteError::Interrupted);
        }
    }
    out.flush().at("cannot write", &making)?;
    std::fs::rename(&making, &path).at("cannot move into place", &path)?;
    Ok(path)
}

fn write_row(out: &mut impl Write, row: &Row) -> std::io::Result<()> {
    write!(
        out,
        "{}\t{}\t{}\t{}\t",
        row.id, row.name, row.email, row.password
    )?;
    match row.birth_day {
        Some(days) => {
            let (year, month, day) = date(days);
            write!(out, "{year:04}-{month:02}-{day:02}")?;
        }
        None => out.write_all(b"\\N")?,
    }
    writeln!(
        out,
        "\t{}\t{}\t{}\t{}\t{}",
        row.address, row.city, row.state_id, row.zip, row.country_id
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_line_of_ten_fields_and_the_file_is_made_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let generator = Generator::new(5, 2_000);
        let path = prepare(dir.path(), 5, &generator, |_| true).expect("written");
        let text = std::fs::read_to_string(&path).expect("read");
        assert_eq!(text.lines().count(), 2_000);
        let mut row = Row::default();
        for (line, id) in text.lines().zip(1..) {
            generator.row(id, &mut row);
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), 10, "{line}");
            assert_eq!(fields[0], id.to_string());
            assert_eq!(fields[1], row.name);
            assert_eq!(fields[4] == "\\N", row.birth_day.is_none());
            assert_eq!(fields[9], row.country_id.to_string());
            assert!(!line.replace("\\N", "").contains('\\'));
        }
        let again = prepare(dir.path(), 5, &generator, |_| false).expect("used again");
        assert_eq!(again, path);
    }

    #[test]
    fn an_interrupted_file_is_not_left_behind() {
        let dir = tempfile::tempdir().expect("a directory");
        let generator = Generator::new(5, 50_000);
        let result = prepare(dir.path(), 5, &generator, |rows| rows < 20_000);
        assert!(matches!(result, Err(SuiteError::Interrupted)));
        assert_eq!(std::fs::read_dir(dir.path()).expect("read").count(), 0);
    }
}
