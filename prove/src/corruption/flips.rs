//! Flips every bit of a part, one at a time, and replaces parts by stale or misplaced bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use peregrine::ids::{Lsn, PageId, PAGE_SIZE};
use peregrine::log::{Log, LogRecord};
use peregrine::store::{Part, PartKind, Store};
use peregrine::Error;

use super::disk::Disk;
use super::outcome::{Count, Outcome};
use super::world::{
    World, {self},
};
use super::{interrupted, sampled, store, unexpected, Request};
use peregrine_harness::error::{HarnessError, Result};

/// Bytes in a block of the log.
const BLOCK: u64 = 4096;
/// The number of damaged unused log blocks; each flip there costs a search for marks up to the log's end.
const UNUSED_BLOCKS: u64 = 1;

/// Returns the kind of a part, in words.
pub(super) fn kind_of(store: &Store, part: &Part) -> &'static str {
    match part.kind {
        PartKind::Header(_) => "header",
        PartKind::Record => "checkpoint record",
        PartKind::Chunk(_) => "chunk of the place table",
        PartKind::Page(id) => {
            let mut page = vec![0; PAGE_SIZE];
            match store.read_page(id, &mut page) {
                Ok(()) => page_kind(&page),
                Err(_) => "page that can't be read",
            }
        }
        _ => "other part",
    }
}

/// Returns the number of a page's tree; 0 for undo.
pub(super) fn tree_of(page: &[u8]) -> u32 {
    u32::from_le_bytes([page[16], page[17], page[18], page[19]])
}

fn page_kind(page: &[u8]) -> &'static str {
    let tree = tree_of(page);
    match (page[20], tree, world::owner(tree)) {
        (3, ..) => "undo page",
        (_, world::CATALOG, _) => "page of the catalog",
        (2, ..) => "inner node",
        (1, _, Some((_, world::Tree::Clustered))) => "leaf of rows",
        (1, _, Some((_, world::Tree::Index))) => "leaf of an index",
        (1, _, Some((_, world::Tree::Large))) => "leaf of large values",
        _ => "page of no known tree",
    }
}

/// Returns the parts of a disk by kind.
pub(super) fn parts(disk: &Disk) -> Result<BTreeMap<&'static str, Vec<Part>>> {
    let store = store(disk).map_err(|error| unexpected(&error))?;
    let mut parts: BTreeMap<&'static str, Vec<Part>> = BTreeMap::new();
    for part in store.parts() {
        parts.entry(kind_of(&store, &part)).or_default().push(part);
    }
    Ok(parts)
}

pub(super) fn data() -> PathBuf {
    world::dir().join("data")
}

/// Runs `work` on every item, on all processors, each thread with its own copy of the disk.
fn everywhere<T: Sync>(
    disk: &Disk,
    items: &[T],
    work: impl Fn(&Disk, &T) -> Result<Count> + Sync,
) -> Result<Count> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let total: Mutex<Result<Count>> = Mutex::new(Ok(Count::default()));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                let own = disk.copy();
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = interrupted().and_then(|()| work(&own, item));
                    let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                    match (&mut *total, count) {
                        (Ok(total), Ok(count)) => total.add(count),
                        (Ok(_), Err(error)) => {
                            *total = Err(error);
                            return;
                        }
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Flips every bit of sampled parts, and replaces sampled parts by other bytes.
///
/// # Errors
/// [`HarnessError::Interrupted`]; errors of the engine on undamaged data.
pub fn run(
    request: &Request,
    world: &World,
    told: &(impl Fn(&str) + Sync),
    outcome: &mut Outcome,
) -> Result<()> {
    let disk = &world.crashed;
    for (kind, parts) in parts(disk)? {
        let chosen = sampled(&parts, request.samples, request.seed);
        told(&format!(
            "flipping every bit: {kind}, {} of {}",
            chosen.len(),
            parts.len()
        ));
        let count = match chosen.first().map(|part| part.kind) {
            Some(PartKind::Page(_)) => everywhere(disk, &chosen, flip_page)?,
            _ => everywhere(disk, &chosen, flip_part)?,
        };
        outcome.flips.insert(kind, count);
        if let Some(PartKind::Page(_)) = chosen.first().map(|part| part.kind) {
            move_pages(world, &chosen, &parts, outcome)?;
        }
    }
    flip_log(request, world, told, outcome)
}

/// Flips every bit of a page's image and reads the page as a statement reads it.
fn flip_page(disk: &Disk, part: &Part) -> Result<Count> {
    let PartKind::Page(id) = part.kind else {
        return Ok(Count::default());
    };
    let store = store(disk).map_err(|error| unexpected(&error))?;
    let (file, mut page) = (data(), vec![0; PAGE_SIZE]);
    let mut count = Count {
        parts: 1,
        ..Count::default()
    };
    for bit in part.offset * 8..(part.offset + part.len) * 8 {
        disk.flip(&file, bit);
        let found = is_reported(&store.read_page(id, &mut page), id, part.offset);
        disk.flip(&file, bit);
        count.faults += 1;
        count.detected += u64::from(found);
        count.undetected += u64::from(!found);
    }
    Ok(count)
}

/// Returns whether the error names the damaged page, its file and its offset `at`.
pub(super) fn is_reported(read: &peregrine::Result<()>, id: PageId, at: u64) -> bool {
    matches!(read, Err(Error::Corrupt { file, offset, page: Some(page), .. })
        if *page == id && *offset == at && *file == data())
}

/// Flips every bit of a header, of the checkpoint record, or of a chunk of the place table, and opens the store.
fn flip_part(disk: &Disk, part: &Part) -> Result<Count> {
    let file = data();
    let (_, meta) =
        Store::open_read_only(disk.os(), world::dir()).map_err(|error| unexpected(&error))?;
    let mut count = Count {
        parts: 1,
        ..Count::default()
    };
    for bit in part.offset * 8..(part.offset + part.len) * 8 {
        if bit % (1 << 15) == 0 {
            interrupted()?;
        }
        disk.flip(&file, bit);
        let opened = Store::open_read_only(disk.os(), world::dir());
        count.faults += 1;
        match opened {
            Err(Error::Corrupt { .. } | Error::Format { .. }) => count.detected += 1,
            Ok((store, _)) if !store.damaged_headers().is_ok_and(|d| d.is_empty()) => {
                count.detected += 1;
            }
            // The bit is behind the record's end, in the unused rest of its last unit.
            Ok((_, found)) if part.kind == PartKind::Record && found == meta => count.harmless += 1,
            _ => count.undetected += 1,
        }
        disk.flip(&file, bit);
    }
    Ok(count)
}

/// Replaces pages by other bytes and reads them.
///
/// The bytes are those at the same offset in the older database (a lost write) and an older image of the same page.
/// They are also the image of another page (a misplaced write), and zeros.
fn move_pages(world: &World, chosen: &[Part], all: &[Part], outcome: &mut Outcome) -> Result<()> {
    let older = store(&world.older).map_err(|error| unexpected(&error))?;
    let older_parts: BTreeMap<u64, Part> = older
        .parts()
        .into_iter()
        .filter_map(|part| match part.kind {
            PartKind::Page(id) => Some((id.0, part)),
            _ => None,
        })
        .collect();
    let disk = world.crashed.copy();
    let store = store(&disk).map_err(|error| unexpected(&error))?;
    let (file, mut page) = (data(), vec![0; PAGE_SIZE]);
    for (n, part) in chosen.iter().enumerate() {
        let PartKind::Page(id) = part.kind else {
            continue;
        };
        let now = disk.read(&file, part.offset, part.len);
        let other = &all[(n * 31 + 1) % all.len()];
        let faults = [
            ("lost write", world.older.read(&file, part.offset, part.len)),
            (
                "stale page in the right place",
                older_parts.get(&id.0).map_or_else(Vec::new, |part| {
                    world.older.read(&file, part.offset, part.len)
                }),
            ),
            (
                "page in the wrong place",
                disk.read(&file, other.offset, other.len),
            ),
            ("zeros", vec![0; now.len()]),
        ];
        for (fault, mut bytes) in faults {
            if bytes.is_empty() {
                continue;
            }
            bytes.resize(now.len(), 0);
            if bytes == now {
                continue;
            }
            disk.overwrite(&file, part.offset, &bytes);
            let found = is_reported(&store.read_page(id, &mut page), id, part.offset);
            disk.overwrite(&file, part.offset, &now);
            outcome.moved.entry(fault).or_default().add(Count {
                parts: 1,
                faults: 1,
                detected: u64::from(found),
                undetected: u64::from(!found),
                ..Count::default()
            });
        }
    }
    Ok(())
}

/// The log that recovery reads: its place and its records.
struct LogPlace {
    database: u64,
    /// The position from which recovery reads.
    from: u64,
    records: Vec<LogRecord>,
    /// Bytes of the log's stream in a segment.
    capacity: u64,
}

impl LogPlace {
    fn of(disk: &Disk) -> Result<LogPlace> {
        let opened = Store::open_read_only(disk.os(), world::dir());
        let (store, _) = opened.map_err(|error| unexpected(&error))?;
        let from = peregrine::check::log_position(disk.os(), world::dir())
            .map_err(|error| unexpected(&error))?;
        let segment = disk.read(&segment_path(0), 0, u64::MAX >> 1).len() as u64;
        let mut place = LogPlace {
            database: store.database_id(),
            from: from.0,
            records: Vec::new(),
            capacity: 0,
        };
        let mut number = 0;
        // The log may have recycled its first segments; all segments have one size.
        let mut bytes = segment;
        while bytes == 0 && number < 10_000 {
            number += 1;
            bytes = disk.read(&segment_path(number), 0, u64::MAX >> 1).len() as u64;
        }
        place.capacity = bytes.saturating_sub(BLOCK);
        if place.capacity == 0 {
            return Err(HarnessError::Server("the database has no log".into()));
        }
        place.records = place
            .read(disk, place.from)
            .map_err(|error| unexpected(&error))?;
        Ok(place)
    }

    fn read(&self, disk: &Disk, from: u64) -> peregrine::Result<Vec<LogRecord>> {
        let dir = world::dir().join("log");
        Log::read_only(disk.os(), &dir, self.database, Lsn(from))?.collect()
    }

    /// Returns the file and the bit of a position.
    fn locate(&self, position: u64) -> (PathBuf, u64) {
        let (number, within) = (position / self.capacity, position % self.capacity);
        (segment_path(number), (BLOCK + within) * 8)
    }
}

fn segment_path(number: u64) -> PathBuf {
    world::dir().join("log").join(format!("{number:08}"))
}

fn flip_log(
    request: &Request,
    world: &World,
    told: &(impl Fn(&str) + Sync),
    outcome: &mut Outcome,
) -> Result<()> {
    let disk = &world.crashed;
    let log = LogPlace::of(disk)?;
    let end = log.records.last().map_or(log.from, |record| record.end.0);
    let blocks: Vec<u64> = (log.from / BLOCK..end.div_ceil(BLOCK) + UNUSED_BLOCKS)
        .map(|block| block * BLOCK)
        .filter(|&at| {
            let (file, bit) = log.locate(at);
            disk.read(&file, bit / 8, BLOCK).len() as u64 == BLOCK
        })
        .collect();
    let mut chosen = sampled(&blocks, request.samples, request.seed);
    // The log's first and last blocks are special, so they are always among the chosen ones.
    if request.samples > 0 {
        chosen.extend(blocks.iter().rev().take(UNUSED_BLOCKS as usize + 1));
        chosen.extend(blocks.first());
    }
    chosen.sort_unstable();
    chosen.dedup();
    told(&format!(
        "flipping every bit: block of the log, {} of {}",
        chosen.len(),
        blocks.len()
    ));
    let count = everywhere(disk, &chosen, |disk, &at| flip_block(disk, &log, at))?;
    outcome.flips.insert("block of the log", count);

    let headers: Vec<u64> =
        (log.from / log.capacity..=end.saturating_sub(1) / log.capacity).collect();
    let chosen = sampled(&headers, request.samples, request.seed);
    told(&format!(
        "flipping every bit: header of a log segment, {}",
        chosen.len()
    ));
    let count = everywhere(disk, &chosen, |disk, &number| {
        let mut count = Count {
            parts: 1,
            ..Count::default()
        };
        for bit in 0..BLOCK * 8 {
            disk.flip(&segment_path(number), bit);
            count.faults += 1;
            match log.read(disk, log.from) {
                Err(Error::Corrupt { .. } | Error::Format { .. }) => count.detected += 1,
                _ => count.undetected += 1,
            }
            disk.flip(&segment_path(number), bit);
        }
        Ok(count)
    })?;
    outcome.flips.insert("header of a log segment", count);
    move_blocks(request, world, &log, &blocks, outcome)
}

/// Reads the log from the record before a block on, and compares it with the undamaged log.
fn look(disk: &Disk, log: &LogPlace, block: u64) -> Verdict {
    // Damage in this block does not affect records before it.
    let first = log.records.partition_point(|record| record.end.0 <= block);
    let from = log
        .records
        .get(first.saturating_sub(1))
        .filter(|_| first > 0);
    let from = from.map_or(log.from, |record| record.start.0);
    let skipped = log.records.partition_point(|record| record.start.0 < from);
    match log.read(disk, from) {
        Err(Error::Corrupt { .. }) => Verdict::Detected,
        Err(_) => Verdict::Wrong,
        Ok(records) if records[..] == log.records[skipped..] => Verdict::Same,
        // The records are a prefix of the undamaged ones.
        Ok(records) if log.records[skipped..].starts_with(&records) => {
            match skipped + records.len() + 1 == log.records.len() {
                true => Verdict::LastLost,
                false => Verdict::Wrong,
            }
        }
        Ok(_) => Verdict::Wrong,
    }
}

enum Verdict {
    Detected,
    Same,
    /// The last record is gone.
    LastLost,
    Wrong,
}

impl Verdict {
    fn count(self, count: &mut Count) {
        count.faults += 1;
        match self {
            Verdict::Detected => count.detected += 1,
            Verdict::Same => count.harmless += 1,
            Verdict::LastLost => count.last_lost += 1,
            Verdict::Wrong => count.undetected += 1,
        }
    }
}

fn flip_block(disk: &Disk, log: &LogPlace, block: u64) -> Result<Count> {
    let mut count = Count {
        parts: 1,
        ..Count::default()
    };
    let (file, first) = log.locate(block);
    for bit in first..first + BLOCK * 8 {
        if bit % 1024 == 0 {
            interrupted()?;
        }
        disk.flip(&file, bit);
        look(disk, log, block).count(&mut count);
        disk.flip(&file, bit);
    }
    Ok(count)
}

/// Replaces blocks of the log by stale blocks, other blocks and zeros.
fn move_blocks(
    request: &Request,
    world: &World,
    log: &LogPlace,
    blocks: &[u64],
    outcome: &mut Outcome,
) -> Result<()> {
    let disk = world.crashed.copy();
    let read = |disk: &Disk, file: &Path, bit: u64| disk.read(file, bit / 8, BLOCK);
    for (n, &block) in sampled(blocks, request.samples, request.seed)
        .iter()
        .enumerate()
    {
        interrupted()?;
        let (file, bit) = log.locate(block);
        let now = read(&disk, &file, bit);
        let (other_file, other) = log.locate(blocks[(n * 31 + 1) % blocks.len()]);
        for (fault, bytes) in [
            (
                "log block in the wrong place",
                read(&disk, &other_file, other),
            ),
            ("lost write of a log block", read(&world.older, &file, bit)),
            ("zeros in the log", vec![0; now.len()]),
        ] {
            if bytes.len() != now.len() || bytes == now {
                continue;
            }
            disk.overwrite(&file, bit / 8, &bytes);
            let mut count = Count {
                parts: 1,
                ..Count::default()
            };
            look(&disk, log, block).count(&mut count);
            disk.overwrite(&file, bit / 8, &now);
            outcome.moved.entry(fault).or_default().add(count);
        }
    }
    Ok(())
}
