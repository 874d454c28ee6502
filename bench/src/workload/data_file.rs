//! A table's rows as a file for `LOAD DATA`: one line a row, tabs between the fields, `\N` for NULL.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::table::{Source, Table};
use crate::normal::{data_file as normal_file, Generator};
use peregrine_harness::error::{HarnessError, PathContext, Result};

/// Writes the rows of `table` to `path` and returns their number; calls `goes_on` now and then.
///
/// # Errors
/// When the file can't be written; [`HarnessError::Interrupted`] when `goes_on` returned false.
pub fn write(table: &Table, seed: u64, path: &Path, goes_on: &dyn Fn() -> bool) -> Result<u64> {
    let file = File::create(path).at("cannot create", path)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut written = 0_u64;
    let mut failed = None;
    match table.source {
        Source::Normal(rows) => {
            let generator = Generator::new(seed, rows);
            written = normal_file::write(&mut out, &generator, goes_on)
                .at("cannot write", path)?
                .ok_or(HarnessError::Interrupted)?;
        }
        Source::Generated(_) => {
            let mut line = String::new();
            table.rows(seed, &mut |values| {
                line.clear();
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        line.push('\t');
                    }
                    value.write_field(&mut line);
                }
                line.push('\n');
                written += 1;
                let result = out.write_all(line.as_bytes()).at("cannot write", path);
                let interrupted = written.is_multiple_of(10_000) && !goes_on();
                failed = match result {
                    Err(error) => Some(error),
                    Ok(()) if interrupted => Some(HarnessError::Interrupted),
                    Ok(()) => None,
                };
                failed.is_none()
            });
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    out.flush().at("cannot write", path)?;
    Ok(written)
}
