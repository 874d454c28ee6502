//! Loading the table into an engine, and what that takes.

use std::path::Path;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::disk;
use crate::error::{Result, StatementContext, SuiteError};
use crate::normal::schema;
use crate::results::record::Load;
use crate::server::process::Process;
use crate::target::Engine;

/// The longest that background work after a load is waited for.
const LONGEST_SETTLING: Duration = Duration::from_secs(60);

/// What to load and where.
#[derive(Debug, Clone, Copy)]
pub struct Loading<'a> {
    /// The file with the rows.
    pub file: &'a Path,
    /// How many there are.
    pub rows: u32,
    /// The server's data directory.
    pub data_dir: &'a Path,
    /// The server.
    pub process: Process,
    /// Each engine's cache, in bytes.
    pub cache_bytes: u64,
    /// The workload's name.
    pub workload: &'a str,
}

impl Loading<'_> {
    /// Creates the engine's table anew and loads it. The measured time ends when the rows are
    /// durable: the statement has committed, the table is flushed and its files are synced.
    ///
    /// # Errors
    /// When a statement fails, or rows are missing afterwards.
    pub fn load(&self, connection: &mut mysql::Conn, engine: Engine) -> Result<Load> {
        let schema = engine.schema();
        run(connection, &format!("DROP DATABASE IF EXISTS {schema}"))?;
        run(connection, &format!("CREATE DATABASE {schema}"))?;
        run(connection, &format!("USE {schema}"))?;
        run(connection, &schema::create_table(engine.sql_name()))?;

        let begun = Instant::now();
        let file = self.file.display().to_string().replace('\'', "''");
        run(
            connection,
            &format!("LOAD DATA INFILE '{file}' INTO TABLE {}", schema::TABLE),
        )?;
        let load_data_s = begun.elapsed().as_secs_f64();
        run(connection, &format!("FLUSH TABLES {}", schema::TABLE))?;
        disk::sync(&disk::data_files(self.data_dir, engine)?)?;
        let seconds = begun.elapsed().as_secs_f64();

        let begun = Instant::now();
        run(connection, &format!("ANALYZE TABLE {}", schema::TABLE))?;
        let analyze_s = begun.elapsed().as_secs_f64();

        let begun = Instant::now();
        bring_to_rest(connection, engine)?;
        self.settle();
        let settle_s = begun.elapsed().as_secs_f64();

        self.count(connection)?;
        let (data_bytes, index_bytes) = told_sizes(connection, &schema)?;
        Ok(Load {
            workload: self.workload.to_owned(),
            engine,
            rows: self.rows,
            seconds,
            load_data_s,
            settle_s,
            analyze_s,
            disk_bytes: disk::allocated_bytes(&disk::data_files(self.data_dir, engine)?),
            data_bytes,
            index_bytes,
            durability: engine.durability().to_owned(),
            cache_bytes: self.cache_bytes,
            server_peak_rss_bytes: self.process.peak_resident_bytes(),
        })
    }

    fn count(&self, connection: &mut mysql::Conn) -> Result<()> {
        let statement = format!("SELECT count(*) FROM {}", schema::TABLE);
        let count: Option<u64> = connection.query_first(&statement).running(&statement)?;
        if count == Some(u64::from(self.rows)) {
            Ok(())
        } else {
            Err(SuiteError::Server(format!(
                "{} rows were loaded, but the table has {}",
                self.rows,
                count.map_or_else(|| "none".to_owned(), |count| count.to_string())
            )))
        }
    }

    /// Waits until the server rests, so that what one engine left to do is not charged to the next.
    fn settle(&self) {
        let begun = Instant::now();
        let mut before = self.process.cpu_ticks();
        while begun.elapsed() < LONGEST_SETTLING {
            std::thread::sleep(Duration::from_millis(250));
            let now = self.process.cpu_ticks();
            match (before, now) {
                // A tick is a hundredth of a second: at most 4 % of one processor.
                (Some(before), Some(now)) if now - before > 1 => {}
                _ => return,
            }
            before = now;
        }
    }
}

/// Asks an engine to do at once what it would otherwise do later in the background.
fn bring_to_rest(connection: &mut mysql::Conn, engine: Engine) -> Result<()> {
    match engine {
        Engine::MyRocks => run(
            connection,
            "SET GLOBAL rocksdb_force_flush_memtable_and_lzero_now = 1",
        ),
        // Until a checkpoint, changed pages are in memory and in the log only.
        Engine::Peregrine => run(connection, "SET GLOBAL peregrine_checkpoint_now = ON"),
        Engine::InnoDb | Engine::MyIsam | Engine::Aria => Ok(()),
    }
}

fn told_sizes(connection: &mut mysql::Conn, schema: &str) -> Result<(u64, u64)> {
    let statement = format!(
        "SELECT coalesce(data_length, 0), coalesce(index_length, 0) FROM information_schema.tables \
         WHERE table_schema = '{schema}' AND table_name = '{}'",
        schema::TABLE
    );
    let sizes: Option<(u64, u64)> = connection.query_first(&statement).running(&statement)?;
    Ok(sizes.unwrap_or_default())
}

fn run(connection: &mut mysql::Conn, statement: &str) -> Result<()> {
    connection.query_drop(statement).running(statement)
}
