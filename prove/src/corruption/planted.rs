//! Plants a fault, then tests the whole database: checks it, dumps it, opens and reads it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use peregrine::check::{check_on, Report};
use peregrine::ids::PAGE_SIZE;
use peregrine::store::{Part, PartKind};
use peregrine::{Database, Error, Isolation, OwnedValue, Value};

use super::disk::Disk;
use super::flips::{data, parts, tree_of};
use super::outcome::Outcome;
use super::world::{
    Content, Rows, Tree, World, TABLES, TREES, {self},
};
use super::{dump, interrupted, sampled, store, unexpected, Request};
use peregrine_harness::error::{HarnessError, Result};

/// The effect that a fault may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The older header: no effect.
    Nothing,
    /// A part that all tables need: the whole database can't be opened.
    All,
    /// A page in a tree of one table (an index into [`TABLES`]).
    Table(usize, Tree),
    /// Undo: recovery can't roll back the transactions that ran at the last checkpoint.
    Undo,
    /// The definitions of tables.
    Definitions,
}

/// The most messages about one fault; the first ones say enough.
const MOST_SAID: usize = 5;

struct Fault {
    what: String,
    reach: Reach,
    offset: u64,
    bytes: Vec<u8>,
    /// The most rows that a dump may lack.
    most_missing: usize,
}

/// Tests that all rows are there without any fault.
///
/// # Errors
/// [`HarnessError::Server`] if they are not.
pub fn sound(world: &World) -> Result<()> {
    let fault = Fault {
        what: "without any fault".into(),
        reach: Reach::Nothing,
        offset: 0,
        bytes: Vec::new(),
        most_missing: 0,
    };
    let mut wrong = Vec::new();
    look(world, &fault, &mut wrong);
    match wrong.first() {
        Some(wrong) => Err(HarnessError::Server(wrong.clone())),
        None => Ok(()),
    }
}

/// Plants faults in sampled parts of each kind, one at a time.
///
/// # Errors
/// [`HarnessError::Interrupted`]; errors of the engine on undamaged data.
pub fn run(
    request: &Request,
    world: &World,
    told: &(impl Fn(&str) + Sync),
    outcome: &mut Outcome,
) -> Result<()> {
    let mut faults = Vec::new();
    for (kind, parts) in parts(&world.crashed)? {
        for (n, part) in sampled(&parts, request.planted, request.seed)
            .iter()
            .enumerate()
        {
            faults.extend(plant(world, kind, part, n as u64 + request.seed)?);
        }
    }
    told(&format!(
        "looking at the whole database after {} faults",
        faults.len()
    ));
    let wrong = Mutex::new(Vec::new());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let ended = Mutex::new(Ok(()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(fault) = faults.get(at) else { return };
                if let Err(error) = interrupted() {
                    *ended
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner) = Err(error);
                    return;
                }
                let mut found = Vec::new();
                look(world, fault, &mut found);
                if let Ok(mut wrong) = wrong.lock() {
                    wrong.append(&mut found);
                }
                if at > 0 && at.is_multiple_of(100) {
                    told(&format!("{at} of {} faults looked at", faults.len()));
                }
            });
        }
    });
    ended
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)?;
    outcome.planted += faults.len() as u64;
    outcome.wrong.append(
        &mut wrong
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner),
    );
    Ok(())
}

/// Returns a fault that flips a bit of a part and, if a page had other bytes before, a fault that restores these.
fn plant(world: &World, kind: &str, part: &Part, n: u64) -> Result<Vec<Fault>> {
    let disk = &world.crashed;
    let file = data();
    let now = disk.read(&file, part.offset, part.len);
    let (reach, most_missing) = reach(world, part)?;
    let mut flipped = now.clone();
    // The rest of the record's last unit is unused.
    let within = match part.kind {
        PartKind::Record => 48,
        _ => part.len,
    };
    let at = (n * 7919 % within) as usize;
    flipped[at] ^= 1 << (n % 8);
    let mut faults = vec![(format!("bit {} of byte {at} flipped", n % 8), flipped)];
    if let PartKind::Page(_) = part.kind {
        let mut older = world.older.read(&file, part.offset, part.len);
        older.resize(now.len(), 0);
        if older != now {
            faults.push(("a lost write".into(), older));
        }
    }
    Ok(faults
        .into_iter()
        .map(|(what, bytes)| Fault {
            what: format!("{kind} at {}: {what}", part.offset),
            reach,
            offset: part.offset,
            bytes,
            most_missing,
        })
        .collect())
}

fn newer_header(disk: &Disk) -> u64 {
    let sequence = |slot: u64| {
        let bytes = disk.read(&data(), slot * 4096 + 32, 8);
        bytes
            .iter()
            .rev()
            .fold(0, |n, &byte| n << 8 | u64::from(byte))
    };
    u64::from(sequence(1) > sequence(0))
}

fn reach(world: &World, part: &Part) -> Result<(Reach, usize)> {
    let id = match part.kind {
        // Without the newer header the older one counts, and the log may have recycled the records that it needs.
        PartKind::Header(slot) if slot == newer_header(&world.crashed) => {
            return Ok((Reach::All, usize::MAX))
        }
        PartKind::Header(_) => return Ok((Reach::Nothing, 0)),
        PartKind::Page(id) => id,
        _ => return Ok((Reach::All, usize::MAX)),
    };
    let store = store(&world.crashed).map_err(|error| unexpected(&error))?;
    let mut page = vec![0; PAGE_SIZE];
    store
        .read_page(id, &mut page)
        .map_err(|error| unexpected(&error))?;
    let records = usize::from(u16::from_le_bytes([page[26], page[27]]));
    let tree = tree_of(&page);
    Ok(match (page[20], world::owner(tree)) {
        (3, _) => (Reach::Undo, TABLES.len() * world.in_flight),
        (_, None) => (Reach::Definitions, usize::MAX),
        (2, Some((table, use_of))) => (Reach::Table(table, use_of), 0),
        (_, Some((table, Tree::Index))) => (Reach::Table(table, Tree::Index), 0),
        (_, Some((table, use_of))) => (Reach::Table(table, use_of), records),
    })
}

fn look(world: &World, fault: &Fault, wrong: &mut Vec<String>) {
    let disk = world.crashed.copy();
    disk.overwrite(&data(), fault.offset, &fault.bytes);
    let mut said = 0;
    let mut say = |what: String| {
        said += 1;
        if said <= MOST_SAID {
            wrong.push(format!("{}: {what}", fault.what));
        }
    };
    checked(&disk, fault, &mut say);
    dumped(&disk, world, fault, &mut say);
    opened(&disk, world, fault, &mut say);
}

fn checked(disk: &Disk, fault: &Fault, say: &mut dyn FnMut(String)) {
    let mut report = Report::default();
    let finds = match check_on(disk.os(), world::dir(), &mut report) {
        Err(Error::Corrupt { .. } | Error::Format { .. }) => true,
        Err(error) => {
            say(format!("check ends with {error}"));
            return;
        }
        Ok(()) if fault.reach == Reach::Nothing => {
            if !report.is_sound() {
                say(format!("check finds {}", report.problems.join("; ")));
            }
            fault.bytes.is_empty() || !report.notes.is_empty()
        }
        Ok(()) => !report.is_sound(),
    };
    if !finds {
        say("check finds nothing".into());
    }
}

/// Compares found rows with the expected ones, reports wrong ones, and returns how many are missing.
fn compare(expected: &Rows, found: &Rows, how: &str, say: &mut dyn FnMut(String)) -> usize {
    for (id, row) in found
        .iter()
        .filter(|(id, row)| expected.get(id) != Some(row))
    {
        say(format!("{how}: row {id} is {row:?}"));
    }
    expected.keys().filter(|id| !found.contains_key(id)).count()
}

fn dumped(disk: &Disk, world: &World, fault: &Fault, say: &mut dyn FnMut(String)) {
    let dump = match dump(disk) {
        Ok(dump) => dump,
        Err(_) if fault.reach == Reach::All => return,
        Err(error) => return say(format!("dump ends with {error}")),
    };
    let mut told = !dump.missing().is_empty();
    let mut missing_rows = 0;
    for table in TABLES {
        let expected = &world.content[table];
        if dump.schema(table).is_err() {
            if !told || !matches!(fault.reach, Reach::Definitions | Reach::All) {
                say(format!("dump: table {table} is missing"));
            }
            continue;
        }
        let mut found = Rows::new();
        let mut told_of_table = false;
        let rows = dump.rows(
            table,
            &mut |row| {
                if let Some(OwnedValue::UInt(id)) = row.first() {
                    found.insert(*id, row.to_vec());
                }
                Ok(())
            },
            &mut |_| told_of_table = true,
        );
        if let Err(error) = rows {
            say(format!("dump of {table} ends with {error}"));
        }
        if fault.reach == Reach::All && told {
            // The dump may come from the previous checkpoint without its log. Any row that was once committed is right
            // then.
            found.retain(|id, row| !world.was(table, *id, row));
        }
        let missing = compare(expected, &found, &format!("dump of {table}"), say);
        if missing > 0 && !told_of_table && !told {
            say(format!(
                "dump of {table}: {missing} rows are missing, and it does not say so"
            ));
        }
        let own = match fault.reach {
            Reach::Table(owner, _) => TABLES[owner] == table,
            Reach::Nothing => false,
            _ => true,
        };
        if missing > 0 && !own {
            say(format!(
                "dump of {table}: {missing} rows are missing, their pages are whole"
            ));
        }
        told |= told_of_table;
        missing_rows += missing;
    }
    if missing_rows > fault.most_missing {
        say(format!(
            "dump: {missing_rows} rows are missing, the damaged page has {}",
            fault.most_missing
        ));
    }
}

fn opened(disk: &Disk, world: &World, fault: &Fault, say: &mut dyn FnMut(String)) {
    let db = match Database::open_on(disk.os(), world::dir(), world::options()) {
        Ok(db) => db,
        Err(Error::Corrupt { .. } | Error::Format { .. })
            if matches!(fault.reach, Reach::All | Reach::Undo | Reach::Definitions) =>
        {
            return
        }
        Err(error) => return say(format!("opening ends with {error}")),
    };
    if fault.reach != Reach::All {
        // Recovery's writes must not make rows wrong. They may lose only the rows that recovery could not roll back.
        let left = Fault {
            what: String::new(),
            bytes: Vec::new(),
            most_missing: (fault.most_missing).saturating_add(TABLES.len() * world.in_flight),
            ..*fault
        };
        dumped(&disk.copy(), world, &left, &mut |what| {
            say(format!("after opening: {what}"));
        });
    }
    let own = match fault.reach {
        Reach::Table(owner, _) => Some(owner),
        _ => None,
    };
    let errors: BTreeMap<usize, Error> = (0..TABLES.len())
        .filter_map(|n| Some((n, tables_error(&db, &world.content, n, say)?)))
        .collect();
    for (n, error) in &errors {
        let table = TABLES[*n];
        match error {
            _ if own != Some(*n) && fault.reach != Reach::Undo => {
                say(format!(
                    "table {table} is whole, and reading it ends with {error}"
                ));
            }
            Error::Corrupt {
                page: Some(_),
                file,
                ..
            } if *file == data() => {}
            error => say(format!("reading {table} ends with {error}")),
        }
    }
    // The undamaged tables stay usable.
    for (n, table) in TABLES.into_iter().enumerate() {
        if own == Some(n) || errors.contains_key(&n) {
            if let Err(error) = db.drop_table(table) {
                say(format!("dropping the damaged table ends with {error}"));
            }
        } else if let Err(error) = write(&db, table) {
            say(format!("writing into {table} ends with {error}"));
        }
    }
    if let Err(error) = db.close() {
        say(format!("closing ends with {error}"));
        return;
    }
    let again = Database::open_on(disk.os(), world::dir(), world::options());
    match again {
        Err(error) => say(format!("opening again ends with {error}")),
        Ok(db) => {
            for (n, table) in TABLES.into_iter().enumerate() {
                if own != Some(n) && fault.reach != Reach::Undo {
                    let (rows, error) = world::read(&db, table, 0);
                    if error.is_some() || rows.len() != world.content[table].len() + 1 {
                        say(format!(
                            "table {table} is not what it was, after opening again"
                        ));
                    }
                }
            }
        }
    }
}

/// Reads a table by every index, reports wrong rows, and returns the first error.
fn tables_error(
    db: &Database,
    content: &Content,
    table: usize,
    say: &mut dyn FnMut(String),
) -> Option<Error> {
    let name = TABLES[table];
    let indexes = TREES[table].iter().filter(|&&tree| tree != Tree::Large);
    let mut first = None;
    for index in 0..indexes.count() {
        let (rows, error) = world::read(db, name, index);
        let missing = compare(
            &content[name],
            &rows,
            &format!("{name} by index {index}"),
            say,
        );
        if missing > 0 && error.is_none() {
            say(format!(
                "{name} by index {index}: {missing} rows are missing, without an error"
            ));
        }
        first = first.or(error);
    }
    first
}

/// Inserts a row with a new id.
fn write(db: &Database, table: &str) -> peregrine::Result<()> {
    let open = db.table(table)?;
    let mut txn = db.begin(Isolation::ReadCommitted);
    let row: Vec<Value<'_>> = match table {
        "letters" => vec![Value::UInt(999_999), Value::Bytes(b"new"), Value::Null],
        "numbers" => vec![Value::UInt(999_999), Value::Int(1), Value::Bytes(b"")],
        _ => vec![Value::UInt(999_999), Value::Bytes(b"")],
    };
    txn.insert(&open, &row)?;
    txn.commit()
}
