//! `peregrine dump`: writes the readable data of a database as SQL or CSV.

mod characters;
mod compressed;
mod create;
mod csv;
mod decimal;
mod literals;
mod names;
mod rest;
mod sql;
mod times;
mod types;

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use peregrine::dump::Dump;
use peregrine::{OwnedValue, TableSchema};
use peregrine_harness::error::{HarnessError, PathContext, Result};

use self::names::Names;
use crate::arguments::{DumpArguments, DumpFormat};

/// Writes the readable rows, and reports the missing ones on standard error; exit status 1 when data are missing.
///
/// # Errors
/// When the database can't be read (it does not exist, is in use, or has another format), or the output can't be
/// written.
pub fn run(arguments: &DumpArguments) -> Result<ExitCode> {
    let dump = Dump::open(&arguments.dir).map_err(read_error)?;
    let mut state = dump.state().to_owned();
    let names: Vec<String> = match &arguments.table {
        Some(name) => {
            if dump.schema(name).is_err() {
                // The table's definition may be among the missing data.
                for missing in dump.missing() {
                    eprintln!("missing: {missing}");
                }
                let known: Vec<&str> = dump.table_names().collect();
                return Err(HarnessError::Usage(format!(
                    "no table {name} can be found; the tables are: {}",
                    known.join(", ")
                )));
            }
            vec![name.clone()]
        }
        None => {
            let all = dump.table_names();
            let (ended, names): (Vec<_>, Vec<_>) = all.partition(|name| names::is_temporary(name));
            if !ended.is_empty() {
                state += &format!(
                    "; left out: {} temporary tables of sessions that have ended",
                    ended.len()
                );
            }
            names.into_iter().map(str::to_owned).collect()
        }
    };
    if arguments.format == DumpFormat::Csv && names.len() > 1 && arguments.output.is_none() {
        return Err(HarnessError::Usage(
            "CSV of several tables goes into a directory: --output DIR; or take one with --table"
                .into(),
        ));
    }
    let output = arguments.output.as_deref();
    if let Some(output) = output {
        refuse_inside(output, &arguments.dir)?;
    }
    let mut writer = Writing {
        dump: &dump,
        state: &state,
        missing: 0,
        rows: 0,
    };
    match (arguments.format, output) {
        (DumpFormat::Sql, output) => {
            let mut out = create(output)?;
            writer
                .sql(&names, &mut *out)
                .at("cannot write", shown(output))?;
        }
        (DumpFormat::Csv, Some(dir)) if arguments.table.is_none() => {
            std::fs::create_dir(dir).at("cannot create", dir)?;
            let mut taken = Names::default();
            for name in &names {
                if let Err(error) = writer.csv_file(name, dir, &mut taken) {
                    // Other tables may still fit on the disk, and have names that are valid for files.
                    writer.told(&format!("table {name}: {error}"));
                }
            }
        }
        (DumpFormat::Csv, output) => {
            let mut out = create(output)?;
            for name in &names {
                writer
                    .csv(name, &mut *out)
                    .at("cannot write", shown(output))?;
            }
        }
    }
    for missing in dump.missing() {
        writer.told(missing);
    }
    eprintln!(
        "{} rows of {} tables; {state}; {}",
        writer.rows,
        names.len(),
        match writer.missing {
            0 => "nothing is missing".to_owned(),
            1 => "1 part is missing".to_owned(),
            n => format!("{n} parts are missing"),
        }
    );
    Ok(ExitCode::from(u8::from(writer.missing > 0)))
}

fn read_error(error: peregrine::Error) -> HarnessError {
    HarnessError::Usage(error.to_string())
}

fn shown(output: Option<&Path>) -> &Path {
    output.unwrap_or(Path::new("standard output"))
}

/// Refuses an output inside the directory that is being read.
fn refuse_inside(output: &Path, dir: &Path) -> Result<()> {
    let above = match output.parent() {
        Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
        _ => PathBuf::from("."),
    };
    let above = above.canonicalize().at("cannot write into", &above)?;
    let dir = dir.canonicalize().at("cannot read", dir)?;
    if above.starts_with(&dir) {
        return Err(HarnessError::Usage(format!(
            "{} is within the database that is being read",
            output.display()
        )));
    }
    Ok(())
}

/// Opens a new file, or standard output.
fn create(output: Option<&Path>) -> Result<Box<dyn Write>> {
    Ok(match output {
        Some(path) => Box::new(BufWriter::new(
            File::create_new(path).at("cannot create", path)?,
        )),
        None => Box::new(BufWriter::new(std::io::stdout().lock())),
    })
}

/// The function that writes a row in a format.
type RowWriter<'a> = dyn FnMut(&mut dyn Write, &[OwnedValue]) -> std::io::Result<()> + 'a;

struct Writing<'a> {
    dump: &'a Dump,
    /// The state of the database that is read, in words.
    state: &'a str,
    missing: u64,
    rows: u64,
}

impl<'a> Writing<'a> {
    fn told(&mut self, missing: &dyn Display) {
        self.missing += 1;
        eprintln!("missing: {missing}");
    }

    fn schema(&self, name: &str) -> std::io::Result<&'a TableSchema> {
        self.dump.schema(name).map_err(std::io::Error::other)
    }

    /// Passes a table's rows to `write`; returns the missing data of it, in words.
    fn rows(
        &mut self,
        name: &str,
        out: &mut dyn Write,
        write: &mut RowWriter<'_>,
    ) -> std::io::Result<Vec<String>> {
        let mut failed = None;
        let mut found = Vec::new();
        let rows = self.dump.rows(
            name,
            &mut |row| {
                write(out, row).map_err(|error| {
                    let text = error.to_string();
                    failed = Some(error);
                    peregrine::Error::Internal(text)
                })
            },
            &mut |missing| found.push(missing.to_string()),
        );
        if let Some(error) = failed {
            return Err(error);
        }
        match rows {
            Ok(rows) => self.rows += rows,
            // The definition is invalid: no row of the table can be shown.
            Err(error) => found.push(format!("table {name}: {error}")),
        }
        for missing in &found {
            self.told(missing);
        }
        Ok(found)
    }

    fn sql(&mut self, names: &[String], out: &mut dyn Write) -> std::io::Result<()> {
        sql::begin(out, self.state)?;
        for missing in self.dump.missing() {
            sql::comment(out, &format!("missing: {missing}"))?;
        }
        let mut taken = Names::default();
        for name in names {
            let options = self.dump.options(name).map_err(std::io::Error::other)?;
            let mut table = sql::Table::new(name, self.schema(name)?, options, &mut taken);
            table.create(out)?;
            let mut missing = self.rows(name, out, &mut |out, row| table.row(out, row))?;
            table.end(out)?;
            for lost in table.lost() {
                self.told(&lost);
                missing.push(lost);
            }
            for missing in missing {
                sql::comment(out, &format!("missing: {missing}"))?;
            }
        }
        sql::end(out)?;
        out.flush()
    }

    fn csv(&mut self, name: &str, out: &mut dyn Write) -> std::io::Result<()> {
        let schema = self.schema(name)?;
        let types = types::types(schema);
        csv::head(out, schema, &types)?;
        self.rows(name, out, &mut |out, row| {
            csv::row(out, schema, &types, row)
        })?;
        out.flush()
    }

    /// Writes a table into a file of its own, in the folder of its database.
    fn csv_file(&mut self, name: &str, dir: &Path, taken: &mut Names) -> Result<()> {
        let (folder, file) = taken.file(name, ".csv");
        let dir = folder.map_or(dir.to_owned(), |folder| dir.join(folder));
        std::fs::create_dir_all(&dir).at("cannot create", &dir)?;
        let path = dir.join(file);
        let mut out = create(Some(&path))?;
        self.csv(name, &mut *out).at("cannot write", &path)
    }
}
