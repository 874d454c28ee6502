//! The table as a file for `LOAD DATA`: one line a row, tabs between the fields, `\N` for NULL.
//!
//! No generated value holds a tab, a line end or a backslash, so nothing needs escaping.

use std::io::Write;

use super::generator::{date, Generator, Row};

/// Writes every row to `out` and returns their number.
///
/// Calls `goes_on` every 10,000 rows. Returns `None` when `goes_on` returns false.
///
/// # Errors
/// When `out` fails.
pub fn write(
    out: &mut impl Write,
    generator: &Generator,
    goes_on: &dyn Fn() -> bool,
) -> std::io::Result<Option<u64>> {
    let mut row = Row::default();
    for id in 1..=generator.rows() {
        generator.row(id, &mut row);
        write_row(out, &row)?;
        if id % 10_000 == 0 && !goes_on() {
            return Ok(None);
        }
    }
    Ok(Some(u64::from(generator.rows())))
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
    fn every_row_is_a_line_of_ten_fields() {
        let generator = Generator::new(5, 2_000);
        let mut bytes = Vec::new();
        let written = write(&mut bytes, &generator, &|| true).expect("written");
        assert_eq!(written, Some(2_000));
        let text = String::from_utf8(bytes).expect("text");
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
    }

    #[test]
    fn it_ends_when_it_is_not_to_go_on() {
        let generator = Generator::new(5, 50_000);
        let written = write(&mut Vec::new(), &generator, &|| false).expect("written");
        assert_eq!(written, None);
    }
}
