//! Writers that update random rows as fast as they can, through the library or a server.

use std::path::Path;
use std::sync::Arc;

use mysql::prelude::Queryable;
use peregrine::{Column, ColumnType, Database, Isolation, Key, Options, TableSchema, Value};

use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::error::{HarnessError, Result, StatementContext};

/// The number of bytes in a row's text.
const TEXT: usize = 100;

/// The schema of a server's table.
pub const SCHEMA: &str = "stress";

/// The number of rows in a transaction that fills the table.
const AT_ONCE: u32 = 10_000;

/// A writer; each call is a transaction.
pub type Writer<'a> = Box<dyn FnMut() -> Result<()> + Send + 'a>;

/// A table for writers, and an engine that takes checkpoints.
pub trait WriteLoad: Sync {
    /// Its name for result lines.
    fn title(&self) -> String;

    /// Creates a writer; `number` is its seed.
    ///
    /// # Errors
    /// When the server returns an error.
    fn writer(&self, number: u64) -> Result<Writer<'_>>;

    /// Takes a checkpoint, and returns when the checkpoint is complete.
    ///
    /// # Errors
    /// When it fails.
    fn checkpoint(&self) -> Result<()>;
}

/// Writes through the library, in this process.
#[derive(Debug)]
pub struct Library {
    database: Database,
    rows: u32,
}

impl Library {
    /// Creates a database in `dir` and fills its table.
    ///
    /// # Errors
    /// When that fails.
    pub fn create(dir: &Path, options: Options, rows: u32) -> Result<Self> {
        let database = Database::open(dir, options).map_err(failed)?;
        let schema = TableSchema {
            columns: vec![
                Column::new(
                    "id",
                    ColumnType::Int {
                        bytes: 4,
                        signed: false,
                    },
                ),
                Column::new("text", ColumnType::VarBytes { max: TEXT as u32 }),
            ],
            primary: Some(Key::new(&[0])),
            indexes: vec![],
            user: vec![],
        };
        let table = database.create_table("load", &schema).map_err(failed)?;
        // Random text, which compression can't shorten much, so that the writes are worth measuring.
        let mut dice = Dice::new(1, u64::MAX);
        let mut text = [0; TEXT];
        for first in (1..=rows).step_by(AT_ONCE as usize) {
            let mut transaction = database.begin(Isolation::ReadCommitted);
            for id in first..=rows.min(first + AT_ONCE - 1) {
                for part in text.chunks_exact_mut(4) {
                    part.copy_from_slice(&dice.below(u32::MAX).to_le_bytes());
                }
                let row = [Value::UInt(id.into()), Value::Bytes(&text)];
                transaction.insert(&table, &row).map_err(failed)?;
            }
            transaction.commit().map_err(failed)?;
        }
        Ok(Self { database, rows })
    }
}

fn failed(error: peregrine::Error) -> HarnessError {
    HarnessError::Server(error.to_string())
}

impl WriteLoad for Library {
    fn title(&self) -> String {
        "Peregrine (library)".to_owned()
    }

    fn writer(&self, number: u64) -> Result<Writer<'_>> {
        let table: Arc<peregrine::Table> = self.database.table("load").map_err(failed)?;
        let mut dice = Dice::new(1, number);
        let mut text = [0; TEXT];
        Ok(Box::new(move || {
            let id = 1 + dice.below(self.rows);
            for part in text.chunks_exact_mut(4) {
                part.copy_from_slice(&dice.below(u32::MAX).to_le_bytes());
            }
            let row = [Value::UInt(id.into()), Value::Bytes(&text)];
            let mut transaction = self.database.begin(Isolation::ReadCommitted);
            let key = table.encode_key(0, &row[..1]).map_err(failed)?;
            transaction.update(&table, &key, &row).map_err(failed)?;
            transaction.commit().map_err(failed)
        }))
    }

    fn checkpoint(&self) -> Result<()> {
        self.database.checkpoint().map_err(failed)
    }
}

/// Writes through a server.
#[derive(Debug)]
pub struct Server<'a> {
    hosted: &'a Hosted,
    rows: u32,
    rows_a_statement: u32,
}

impl<'a> Server<'a> {
    /// Creates the table and fills it.
    ///
    /// # Errors
    /// When the server returns an error.
    pub fn create(hosted: &'a Hosted, rows: u32, rows_a_statement: u32) -> Result<Self> {
        let mut connection = hosted.connect(None)?;
        hosted::run_all(
            &mut connection,
            &[
                format!("CREATE DATABASE IF NOT EXISTS {SCHEMA}"),
                format!("USE {SCHEMA}"),
                format!(
                    "CREATE TABLE rows_of_load (id int unsigned primary key, n bigint not null, text varchar({TEXT}) \
                     not null) ENGINE=Peregrine"
                ),
                format!("INSERT INTO rows_of_load SELECT seq, 0, concat(md5(seq), md5(-seq), md5(seq / 7)) FROM seq_1_to_{rows}"),
            ],
        )?;
        Ok(Self {
            hosted,
            rows,
            rows_a_statement: rows_a_statement.clamp(1, rows),
        })
    }
}

impl WriteLoad for Server<'_> {
    fn title(&self) -> String {
        "Peregrine (server)".to_owned()
    }

    fn writer(&self, number: u64) -> Result<Writer<'_>> {
        let connection = self.hosted.connect(Some(SCHEMA))?;
        Ok(updates(
            connection,
            number,
            self.rows,
            self.rows_a_statement,
        ))
    }

    fn checkpoint(&self) -> Result<()> {
        let statement = "SET GLOBAL peregrine_checkpoint_now = ON";
        self.hosted
            .connect(None)?
            .query_drop(statement)
            .running(statement)
    }
}

/// A writer on a server's connection: each statement updates `many` neighbouring rows of `rows`.
#[must_use]
pub fn updates(mut connection: mysql::Conn, number: u64, rows: u32, many: u32) -> Writer<'static> {
    let mut dice = Dice::new(1, number);
    Box::new(move || {
        // Blocks that don't overlap, so that writers never deadlock.
        let first = 1 + dice.below(rows / many) * many;
        let statement = format!(
            "UPDATE rows_of_load SET n = n + 1 WHERE id BETWEEN {first} AND {}",
            first + many - 1
        );
        connection.query_drop(&statement).running(&statement)
    })
}
