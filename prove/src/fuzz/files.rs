//! Fuzzes whole files: damages a small database, mostly with right checksums, and opens, checks, dumps and reads it.

use std::path::PathBuf;

use peregrine::check::{check_on, Report};
use peregrine::dump::Dump;
use peregrine::store::{Part, PartKind, Store};
use peregrine::{
    Column, ColumnType, Database, Durability, Index, Isolation, Key, Options, TableSchema, Value,
};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

use super::mutation::{change, pick};
use crate::corruption::disk::Disk;
use crate::corruption::world;
use peregrine_harness::error::{HarnessError, Result};

/// Bytes in a block of the log, and in a header.
const BLOCK: u64 = 4096;

/// The database before it is damaged.
pub struct Sound {
    /// Its files.
    pub disk: Disk,
    parts: Vec<Part>,
    log: Vec<PathBuf>,
}

fn options() -> Options {
    Options {
        pool_bytes: 2 << 20,
        log_bytes: 1 << 20,
        log_segment_bytes: Some(1 << 16),
        durability: Durability::SyncAtCommit,
        background: false,
        ..Options::default()
    }
}

fn make() -> peregrine::Result<Sound> {
    let disk = Disk::new(1);
    let db = Database::open_on(disk.os(), world::dir(), options())?;
    let schema = TableSchema {
        columns: vec![
            Column::new(
                "id",
                ColumnType::Int {
                    bytes: 4,
                    signed: false,
                },
            ),
            Column::new("name", ColumnType::VarBytes { max: 500 }).nullable(),
            Column::new("body", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_name", &[1])],
        user: vec![1, 2, 3],
    };
    let table = db.create_table("rows", &schema)?;
    let heap = TableSchema {
        primary: None,
        ..schema.clone()
    };
    db.create_table("heap", &heap)?;
    let fill = |from: u64, to: u64| -> peregrine::Result<()> {
        let mut txn = db.begin(Isolation::ReadCommitted);
        for id in from..to {
            let name = vec![id as u8; (id * 37 % 400) as usize];
            let body = vec![(id * 7) as u8; if id % 10 == 0 { 6000 } else { 9 }];
            let row = [Value::UInt(id), Value::Bytes(&name), Value::Bytes(&body)];
            txn.insert(&table, &row)?;
        }
        txn.commit()
    };
    fill(0, 120)?;
    // This transaction is open at the checkpoint, so the checkpoint has undo.
    let mut running = db.begin(Isolation::ReadCommitted);
    for id in 10..30 {
        let key = table.encode_key(0, &[Value::UInt(id)])?;
        if id % 3 == 0 {
            running.delete(&table, &key)?;
        } else {
            let row = [Value::UInt(id), Value::Null, Value::Bytes(b"changed")];
            running.update(&table, &key, &row)?;
        }
    }
    db.checkpoint()?;
    fill(120, 150)?;
    let copy = disk.copy();
    drop(running);
    let (store, _) = Store::open_read_only(copy.os(), world::dir())?;
    let log_dir = world::dir().join("log");
    let log = copy.os().list(&log_dir)?;
    Ok(Sound {
        parts: store.parts(),
        log: log
            .into_iter()
            .filter(|name| name.starts_with('0'))
            .map(|name| log_dir.join(name))
            .collect(),
        disk: copy,
    })
}

impl Sound {
    /// Makes the database.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn make() -> Result<Sound> {
        make().map_err(|error| HarnessError::Server(error.to_string()))
    }

    fn file(&self, number: usize) -> PathBuf {
        match number.checked_sub(1) {
            None => world::dir().join("data"),
            Some(number) => self.log[number % self.log.len().max(1)].clone(),
        }
    }
}

/// A place in a file: the file's number (1 byte), the offset (4 bytes), the length (2 bytes), then the new bytes.
type Place<'a> = (usize, u64, &'a [u8]);

fn places(mut damage: &[u8]) -> Vec<Place<'_>> {
    let mut places = Vec::new();
    while let Some((head, rest)) = damage.split_first_chunk::<7>() {
        let offset = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let len = usize::from(u16::from_le_bytes([head[5], head[6]])).min(rest.len());
        let (bytes, rest) = rest.split_at(len);
        places.push((usize::from(head[0]), u64::from(offset), bytes));
        damage = rest;
    }
    places
}

fn put_place(file: usize, offset: u64, bytes: &[u8], damage: &mut Vec<u8>) {
    damage.push(file as u8);
    damage.extend_from_slice(&(offset as u32).to_le_bytes());
    damage.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    damage.extend_from_slice(bytes);
}

fn seal(bytes: &mut [u8], at: usize, from: usize, to: usize) {
    if to <= bytes.len() && at + 4 <= bytes.len() {
        let checksum = crc32c::crc32c(&bytes[from..to]);
        bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Returns some damage, most of it with right checksums.
pub fn damage(sound: &Sound, random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut damage = Vec::new();
    for _ in 0..=pick(random, 3) {
        if pick(random, 5) == 0 {
            let file = 1 + pick(random, sound.log.len());
            let offset = pick(random, 1 << 14) as u64;
            let mut bytes = sound.disk.read(&sound.file(file), offset, BLOCK);
            change(&mut bytes, &[], random);
            bytes.truncate(BLOCK as usize);
            if offset == 0 {
                seal(&mut bytes, 4092, 0, 4092);
            }
            put_place(file, offset, &bytes, &mut damage);
            continue;
        }
        let part = sound.parts[pick(random, sound.parts.len())];
        let mut bytes = sound.disk.read(&sound.file(0), part.offset, part.len);
        let len = bytes.len();
        change(&mut bytes, &[], random);
        bytes.resize(len, 0);
        if !random.next_u32().is_multiple_of(8) {
            match part.kind {
                PartKind::Header(_) => seal(&mut bytes, 4092, 0, 4092),
                PartKind::Record => {
                    let end = 48 + pick(random, len.saturating_sub(48));
                    seal(&mut bytes, 4, 8, end);
                }
                _ => seal(&mut bytes, 4, 8, len),
            }
        }
        put_place(0, part.offset, &bytes, &mut damage);
    }
    damage
}

/// Checks, dumps, opens and reads the damaged database; returns whether it opened.
pub fn try_out(sound: &Sound, damage: &[u8]) -> bool {
    let disk = sound.disk.copy();
    for (file, offset, bytes) in places(damage) {
        disk.overwrite(&sound.file(file), offset, bytes);
    }
    let mut report = Report::default();
    // Errors are expected here. The engine must only return them instead of panicking.
    let _ = check_on(disk.os(), world::dir(), &mut report);
    if let Ok(dump) = Dump::open_on(disk.os(), world::dir()) {
        let names: Vec<String> = dump.table_names().map(str::to_owned).collect();
        for name in names {
            let _ = dump.rows(&name, &mut |_| Ok(()), &mut |_| {});
        }
    }
    let Ok(db) = Database::open_on(disk.os(), world::dir(), options()) else {
        return false;
    };
    for name in db.table_names() {
        let indexes = db
            .table(&name)
            .map_or(0, |table| table.schema().indexes.len());
        for index in 0..=indexes {
            let _ = world::read(&db, &name, index);
        }
    }
    let _ = db.close();
    true
}
