//! The end of the log, where its one writer writes.

use super::segment_header::BLOCK;
use super::segments::Segments;
use crate::error::Result;
use crate::knobs;

/// The writer's position in the stream. Writes are whole blocks. The last block, partly filled, is kept, and written
/// again with the next bytes, so that it need not be read back.
#[derive(Debug)]
pub struct Tail {
    position: u64,
    /// The bytes of the last block before `position`.
    block: Vec<u8>,
    /// All blocks before this position have been written before.
    written_before: u64,
    out: Vec<u8>,
}

impl Tail {
    /// At `position`, where the stream ends.
    pub fn at(segments: &Segments, position: u64) -> Result<Tail> {
        let within = position % segments.capacity() % BLOCK;
        let mut block = vec![0; within as usize];
        let found = segments.read(position - within, &mut block)?;
        debug_assert_eq!(found, block.len());
        Ok(Tail {
            position,
            block,
            written_before: position,
            out: Vec::new(),
        })
    }

    /// Writes `bytes` at the end. `ahead`: the caller will sync them. A small write into a segment whose blocks were
    /// never written then writes zeros ahead, too.
    pub fn write(&mut self, segments: &Segments, bytes: &[u8], ahead: bool) -> Result<()> {
        let capacity = segments.capacity();
        let mut rest = bytes;
        while !rest.is_empty() {
            let number = self.position / capacity;
            let file = segments.segment(number)?;
            let segment_end = (number + 1) * capacity;
            if segments.is_recycled(number) {
                self.written_before = segment_end;
            }
            let room = (segment_end - self.position) as usize;
            let piece = knobs::log_write_blocks() * BLOCK as usize - self.block.len();
            let (now, later) = rest.split_at(rest.len().min(room).min(piece));
            let start = self.position - self.block.len() as u64;
            let end = self.position + now.len() as u64;

            self.out.clear();
            self.out.extend_from_slice(&self.block);
            self.out.extend_from_slice(now);
            let zeros = knobs::log_blocks_ahead() * BLOCK;
            let mut padded = self.out.len().next_multiple_of(BLOCK as usize);
            if ahead
                && (now.len() as u64) < zeros / 4
                && start + padded as u64 > self.written_before
            {
                let target = (start % capacity + padded as u64).next_multiple_of(zeros);
                padded = (target.min(capacity) - start % capacity) as usize;
            }
            self.out.resize(padded, 0);
            file.write_at(&self.out, BLOCK + start % capacity)?;

            self.written_before = self.written_before.max(start + padded as u64);
            let kept = (end - start) as usize % BLOCK as usize;
            let at = (end - start) as usize - kept;
            self.block.clear();
            self.block.extend_from_slice(&self.out[at..at + kept]);
            self.position = end;
            rest = later;
        }
        Ok(())
    }
}
