//! Loads the tables into an engine, and measures the time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::disk;
use super::kept::Kept;
use super::load::insert::insert;
use super::quiesce::{bring_to_rest, settle};
use crate::results::record::Load;
use crate::workload::{Table, Workload};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::server::process::Process;

/// A table's rows, ready to be loaded.
#[derive(Debug, Clone)]
pub struct TableFile {
    /// The file with the rows, by its absolute path.
    pub path: PathBuf,
    /// The number of rows.
    pub rows: u64,
}

/// The tables to load and their server.
#[derive(Debug, Clone)]
pub struct Loading<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The files of the workload's tables, in their order.
    pub files: &'a [TableFile],
    /// The server.
    pub place: Place<'a>,
    /// The engine's durability and cache size.
    pub kept: Kept,
}

/// The place of the server.
#[derive(Debug, Clone)]
pub enum Place<'a> {
    /// A private server on this machine.
    Private {
        /// Its data directory.
        data_dir: PathBuf,
        /// Its process.
        process: Process,
    },
    /// A server that the benchmark did not start.
    Elsewhere {
        /// Whether it accepts `LOAD DATA LOCAL`; else rows are inserted.
        local_infile: bool,
        /// The character set of the tables.
        charset: &'a str,
    },
}

/// The times of the parts of loading, in seconds.
struct Times {
    /// `LOAD DATA` alone.
    load_data: f64,
    /// `LOAD DATA`, and the time until the rows are durable.
    durable: f64,
    analyze: f64,
    settle: f64,
}

impl Loading<'_> {
    /// Creates the engine's tables again and loads them.
    ///
    /// The measured time ends when the rows are durable: the statements have committed, the tables are flushed and
    /// their files are synced.
    ///
    /// # Errors
    /// When a statement fails, or rows are missing afterwards.
    pub fn load(&self, connection: &mut mysql::Conn, engine: Engine) -> Result<Load> {
        let schema = self.new_schema(connection, engine)?;
        let all: Vec<(&Table, &TableFile)> = self.workload.tables.iter().zip(self.files).collect();
        let times = self.tables(connection, engine, &all)?;
        let (data_bytes, index_bytes, free_bytes) = told_sizes(connection, &schema)?;
        Ok(Load {
            workload: self.workload.name.clone(),
            engine,
            run: 1,
            rows: self.files.iter().map(|file| file.rows).sum(),
            seconds: times.durable,
            load_data_s: times.load_data,
            insert_s: None,
            index_s: None,
            settle_s: times.settle,
            analyze_s: times.analyze,
            disk_bytes: match &self.place {
                Place::Private { data_dir, .. } => {
                    disk::allocated_bytes(&disk::data_files(data_dir, engine)?)
                }
                Place::Elsewhere { .. } => data_bytes + index_bytes,
            },
            data_bytes,
            index_bytes,
            free_bytes,
            log_bytes: match &self.place {
                Place::Private { data_dir, .. } => {
                    disk::allocated_bytes(&disk::log_files(data_dir, engine)?)
                }
                Place::Elsewhere { .. } => 0,
            },
            durability: self.kept.durability.clone(),
            cache_bytes: self.kept.cache_bytes,
            used: None,
            server_peak_rss_bytes: match &self.place {
                Place::Private { process, .. } => process.peak_resident_bytes(),
                Place::Elsewhere { .. } => None,
            },
        })
    }

    /// Loads the engine's tables in every way, each time into new tables, and leaves them loaded.
    ///
    /// The ways are `LOAD DATA`; `INSERT`; and `LOAD DATA` without indexes, which `ALTER TABLE` then adds. The time of
    /// each way ends when all is durable.
    ///
    /// # Errors
    /// As [`Loading::load`].
    pub fn in_every_way(
        &self,
        connection: &mut mysql::Conn,
        engine: Engine,
        run: u32,
    ) -> Result<Load> {
        let load = self.load(connection, engine)?;
        Ok(Load {
            run,
            insert_s: Some(self.by_insert(connection, engine)?),
            index_s: self.by_index(connection, engine)?,
            ..load
        })
    }

    /// Seconds for loading the tables by `INSERT`.
    fn by_insert(&self, connection: &mut mysql::Conn, engine: Engine) -> Result<f64> {
        self.new_schema(connection, engine)?;
        let mut time = Duration::ZERO;
        for (table, file) in self.workload.tables.iter().zip(self.files) {
            run(connection, &table.create(engine.sql_name()))?;
            time += insert(connection, table, &file.path)?;
        }
        let begun = Instant::now();
        self.make_durable(connection, engine)?;
        let seconds = (time + begun.elapsed()).as_secs_f64();
        self.quiesce(connection, engine)?;
        Ok(seconds)
    }

    /// Seconds for adding the indexes to tables that were loaded without them; `None` when there are no indexes.
    fn by_index(&self, connection: &mut mysql::Conn, engine: Engine) -> Result<Option<f64>> {
        let tables = &self.workload.tables;
        let additions: Vec<String> = tables.iter().filter_map(Table::add_indexes).collect();
        if additions.is_empty() {
            return Ok(None);
        }
        self.new_schema(connection, engine)?;
        for (table, file) in tables.iter().zip(self.files) {
            run(connection, &table.create_without_indexes(engine.sql_name()))?;
            self.fill(connection, table, file)?;
        }
        self.make_durable(connection, engine)?;
        self.quiesce(connection, engine)?;
        let begun = Instant::now();
        for addition in &additions {
            run(connection, addition)?;
        }
        self.make_durable(connection, engine)?;
        let seconds = begun.elapsed().as_secs_f64();
        self.quiesce(connection, engine)?;
        Ok(Some(seconds))
    }

    /// Makes all tables of the workload durable.
    fn make_durable(&self, connection: &mut mysql::Conn, engine: Engine) -> Result<()> {
        let all: Vec<&Table> = self.workload.tables.iter().collect();
        self.flush(connection, engine, &all)
    }

    /// Flushes tables and syncs their files.
    ///
    /// On a server that the benchmark did not start, a commit's own durability must be enough.
    fn flush(&self, connection: &mut mysql::Conn, engine: Engine, tables: &[&Table]) -> Result<()> {
        let Place::Private { data_dir, .. } = &self.place else {
            return Ok(());
        };
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        run(connection, &format!("FLUSH TABLES {}", names.join(", ")))?;
        disk::sync(&disk::data_files(data_dir, engine)?)
    }

    /// Checks that every row is in the tables, and waits until no background work is left.
    fn quiesce(&self, connection: &mut mysql::Conn, engine: Engine) -> Result<()> {
        for (table, file) in self.workload.tables.iter().zip(self.files) {
            count(connection, &table.name, file.rows)?;
        }
        self.settle(connection, engine)
    }

    /// Creates tables of the engine again, by their numbers, and loads them.
    ///
    /// # Errors
    /// As [`Loading::load`].
    pub fn load_again(
        &self,
        connection: &mut mysql::Conn,
        engine: Engine,
        tables: &[usize],
    ) -> Result<()> {
        let schema = engine.schema();
        run(connection, &format!("USE {schema}"))?;
        let all = self.workload.tables.iter().zip(self.files).enumerate();
        let meant: Vec<(&Table, &TableFile)> = all
            .filter(|(at, _)| tables.contains(at))
            .map(|(_, table)| table)
            .collect();
        for (table, _) in &meant {
            run(connection, &format!("DROP TABLE IF EXISTS {}", table.name))?;
        }
        self.tables(connection, engine, &meant)?;
        Ok(())
    }

    /// Creates tables in the current schema and loads them.
    fn tables(
        &self,
        connection: &mut mysql::Conn,
        engine: Engine,
        tables: &[(&Table, &TableFile)],
    ) -> Result<Times> {
        for (table, _) in tables {
            run(connection, &table.create(engine.sql_name()))?;
        }
        let names: Vec<&str> = tables.iter().map(|(t, _)| t.name.as_str()).collect();
        let names = names.join(", ");

        let mut time = Duration::ZERO;
        for (table, file) in tables {
            time += self.fill(connection, table, file)?;
        }
        let load_data = time.as_secs_f64();
        let begun = Instant::now();
        let all: Vec<&Table> = tables.iter().map(|(table, _)| *table).collect();
        self.flush(connection, engine, &all)?;
        let durable = (time + begun.elapsed()).as_secs_f64();

        let begun = Instant::now();
        run(connection, &format!("ANALYZE TABLE {names}"))?;
        let analyze = begun.elapsed().as_secs_f64();

        let begun = Instant::now();
        self.settle(connection, engine)?;
        let settle = begun.elapsed().as_secs_f64();

        for (table, file) in tables {
            count(connection, &table.name, file.rows)?;
        }
        Ok(Times {
            load_data,
            durable,
            analyze,
            settle,
        })
    }

    /// Loads a table's rows and returns the time.
    fn fill(
        &self,
        connection: &mut mysql::Conn,
        table: &Table,
        file: &TableFile,
    ) -> Result<Duration> {
        let local = match &self.place {
            Place::Private { .. } => "",
            Place::Elsewhere {
                local_infile: true, ..
            } => {
                connection.set_local_infile_handler(Some(only(&file.path)));
                "LOCAL "
            }
            Place::Elsewhere { .. } => return insert(connection, table, &file.path),
        };
        let begun = Instant::now();
        run(connection, &self.load_data(local, table, file))?;
        Ok(begun.elapsed())
    }

    fn load_data(&self, local: &str, table: &Table, file: &TableFile) -> String {
        let path = file.path.display().to_string().replace('\'', "''");
        // Names a character set only where one is needed, to avoid useless conversions.
        let charset = if self.workload.text.is_ascii() {
            ""
        } else {
            " CHARACTER SET utf8mb4"
        };
        let columns = table.loaded_columns();
        let columns = if columns.is_empty() {
            String::new()
        } else {
            format!(" ({})", columns.join(", "))
        };
        format!(
            "LOAD DATA {local}INFILE '{path}' INTO TABLE {}{charset}{columns}",
            table.name
        )
    }

    /// Makes the engine do its deferred work and waits until the server is idle, so that the work is not charged to the
    /// next engine.
    ///
    /// Does nothing on a server that the benchmark did not start.
    fn settle(&self, connection: &mut mysql::Conn, engine: Engine) -> Result<()> {
        let Place::Private { process, .. } = &self.place else {
            return Ok(());
        };
        bring_to_rest(connection, engine)?;
        settle(*process);
        Ok(())
    }

    /// Creates an engine's schema again and makes it the current one; returns its name.
    fn new_schema(&self, connection: &mut mysql::Conn, engine: Engine) -> Result<String> {
        let schema = engine.schema();
        let charset = match &self.place {
            Place::Private { .. } => String::new(),
            Place::Elsewhere { charset, .. } => format!(" CHARACTER SET {charset}"),
        };
        run(connection, &format!("DROP DATABASE IF EXISTS {schema}"))?;
        run(connection, &format!("CREATE DATABASE {schema}{charset}"))?;
        run(connection, &format!("USE {schema}"))?;
        Ok(schema)
    }
}

/// Sends the server this file when it asks for it, and no other.
fn only(path: &Path) -> mysql::LocalInfileHandler {
    let path = path.to_path_buf();
    mysql::LocalInfileHandler::new(move |asked, out| {
        if asked != path.as_os_str().as_encoded_bytes() {
            return Err(std::io::Error::new(
                std::io::ErrorKind::PermissionDenied,
                "the server asked for a file that it was not offered",
            ));
        }
        std::io::copy(&mut std::fs::File::open(&path)?, out)?;
        Ok(())
    })
}

fn count(connection: &mut mysql::Conn, table: &str, rows: u64) -> Result<()> {
    let statement = format!("SELECT count(*) FROM {table}");
    let count: Option<u64> = connection.query_first(&statement).running(&statement)?;
    if count == Some(rows) {
        Ok(())
    } else {
        Err(HarnessError::Server(format!(
            "{rows} rows were loaded into {table}, but the table has {}",
            count.map_or_else(|| "none".to_owned(), |count| count.to_string())
        )))
    }
}

/// Bytes of data, indexes and free space, as the engine reports them.
fn told_sizes(connection: &mut mysql::Conn, schema: &str) -> Result<(u64, u64, u64)> {
    let statement = format!(
        "SELECT CAST(coalesce(sum(data_length), 0) AS UNSIGNED), \
         CAST(coalesce(sum(index_length), 0) AS UNSIGNED), \
         CAST(coalesce(sum(data_free), 0) AS UNSIGNED) \
         FROM information_schema.tables WHERE table_schema = '{schema}'"
    );
    let sizes: Option<(u64, u64, u64)> = connection.query_first(&statement).running(&statement)?;
    Ok(sizes.unwrap_or_default())
}

fn run(connection: &mut mysql::Conn, statement: &str) -> Result<()> {
    connection.query_drop(statement).running(statement)
}
