//! All undo streams of a database.

use std::sync::Arc;

use crate::buffer::PoolWithThreads;
use crate::error::Result;
use crate::mvcc::undo_reclamation::UndoReclamation;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Mutex;
use crate::undo::stream::{Stream, StreamWriter};

/// All streams.
#[derive(Default)]
pub(crate) struct UndoStreams {
    state: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    all: Vec<Arc<Stream>>,
    /// Streams to which no transaction appends; the one released last is taken first.
    idle: Vec<Arc<Stream>>,
}

impl Streams {
    fn add(&mut self, apart: bool) -> Arc<Stream> {
        let stream = Arc::new(Stream::new(apart));
        self.all.push(stream.clone());
        stream
    }
}

impl UndoStreams {
    /// Takes an idle stream, or makes a new one.
    pub fn acquire(&self) -> StreamWriter {
        let mut state = self.state.lock();
        let stream = state.idle.pop().unwrap_or_else(|| state.add(false));
        drop(state);
        StreamWriter::new(stream)
    }

    /// Takes an idle, empty stream, or makes a new one, for the survivors of another stream.
    pub fn acquire_apart(&self) -> StreamWriter {
        let mut state = self.state.lock();
        let looks = !is_planted(PlantedFault::LeaveStreams);
        let mut idle = state.idle.iter();
        let found = idle.position(|stream| looks && stream.turn_apart());
        let stream = match found {
            Some(at) => state.idle.remove(at),
            None => state.add(true),
        };
        drop(state);
        StreamWriter::new(stream)
    }

    /// Gives a stream back. If anything was appended, [`StreamWriter::finish`] must come before.
    pub fn release(&self, writer: StreamWriter) {
        let stream = writer.keep_detached();
        self.state.lock().idle.push(stream);
    }

    /// All streams.
    pub fn all(&self) -> Vec<Arc<Stream>> {
        self.state.lock().all.clone()
    }

    /// Frees the pages of idle streams that no reader can need.
    pub fn trim(&self, pool: &PoolWithThreads, reclamation: &UndoReclamation) -> Result<()> {
        let mut freed = Vec::new();
        {
            let state = self.state.lock();
            for stream in &state.idle {
                stream.trim(&mut freed);
            }
        }
        reclamation.free_all(pool, freed)
    }
}
