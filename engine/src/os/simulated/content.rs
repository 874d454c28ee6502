//! A file's bytes: as the process sees them, as the device has them, and the changes between.

use std::sync::{Arc, OnceLock};

use crate::random;

/// Bytes of a block; copies of a disk share a block until one of them writes to it.
const BLOCK: usize = 4096;

type Block = [u8; BLOCK];

/// Bytes in shared blocks: a copy costs one pointer per block. The last block has zeros beyond the end.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    blocks: Vec<Arc<Block>>,
    len: usize,
}

fn zeros() -> Arc<Block> {
    static ZEROS: OnceLock<Arc<Block>> = OnceLock::new();
    Arc::clone(ZEROS.get_or_init(|| Arc::new([0; BLOCK])))
}

impl Bytes {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies from `offset` until `buf` is full or the bytes end; returns the number of bytes copied.
    pub fn read(&self, offset: usize, buf: &mut [u8]) -> usize {
        let start = offset.min(self.len);
        let wanted = buf.len().min(self.len - start);
        let mut done = 0;
        while done < wanted {
            let at = start + done;
            let within = at % BLOCK;
            let n = (BLOCK - within).min(wanted - done);
            buf[done..done + n].copy_from_slice(&self.blocks[at / BLOCK][within..within + n]);
            done += n;
        }
        wanted
    }

    pub fn write(&mut self, offset: usize, data: &[u8]) {
        if self.len < offset + data.len() {
            self.resize(offset + data.len());
        }
        let mut done = 0;
        while done < data.len() {
            let at = offset + done;
            let within = at % BLOCK;
            let n = (BLOCK - within).min(data.len() - done);
            let block = Arc::make_mut(&mut self.blocks[at / BLOCK]);
            block[within..within + n].copy_from_slice(&data[done..done + n]);
            done += n;
        }
    }

    pub fn resize(&mut self, len: usize) {
        self.blocks.resize_with(len.div_ceil(BLOCK), zeros);
        if len < self.len && len % BLOCK != 0 {
            if let Some(last) = self.blocks.last_mut() {
                Arc::make_mut(last)[len % BLOCK..].fill(0);
            }
        }
        self.len = len;
    }

    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }
}

/// A process's change of a file.
#[derive(Clone, Debug)]
pub enum Change {
    Write { offset: usize, data: Arc<[u8]> },
    Length(usize),
}

impl Change {
    pub fn apply(&self, to: &mut Bytes) {
        match self {
            Change::Write { offset, data } => to.write(*offset, data),
            Change::Length(len) => to.resize(*len),
        }
    }

    /// Applies those parts of `unit` bytes, which a device writes whole, for which `survives` returns true.
    pub fn apply_parts(&self, to: &mut Bytes, unit: usize, mut survives: impl FnMut() -> bool) {
        let Change::Write { offset, data } = self else {
            return self.apply(to);
        };
        let mut at = 0;
        while at < data.len() {
            let end = ((offset + at) / unit * unit + unit - offset).min(data.len());
            if survives() {
                to.write(offset + at, &data[at..end]);
            }
            at = end;
        }
    }
}

/// A file.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// The bytes that the process reads.
    pub live: Bytes,
    /// The bytes that are certainly on the device.
    pub durable: Bytes,
    /// Changes that are not yet durable, in order.
    pub unsynced: Vec<Change>,
    /// Set when a sync has failed: `live` has bytes that no later sync will make durable.
    forgotten: bool,
}

impl Content {
    /// A file with all its bytes on the device.
    pub fn synced(bytes: Bytes) -> Content {
        Content {
            live: bytes.clone(),
            durable: bytes,
            ..Content::default()
        }
    }

    /// Returns whether `live` has bytes that no later sync will make durable.
    pub fn is_forgetful(&self) -> bool {
        self.forgotten
    }

    pub fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.unsynced.push(change);
    }

    pub fn sync(&mut self) {
        if self.forgotten {
            for change in self.unsynced.drain(..) {
                change.apply(&mut self.durable);
            }
        } else {
            self.unsynced.clear();
            self.durable = self.live.clone();
        }
    }

    /// Fails a sync as Linux does when a device refuses: the bytes count as written from then on, though only some of
    /// them are on the device.
    pub fn fail_sync(&mut self, state: &mut u64) {
        for change in self.unsynced.drain(..) {
            if random::one_of(state, 2) {
                change.apply(&mut self.durable);
            }
        }
        self.forgotten = true;
    }
}
