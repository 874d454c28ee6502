//! Pages and their places in the one data file; copy-on-write checkpoints.
//!
//! No page is ever overwritten in place: an image goes to free space, and the place table, which
//! maps page ids to places, changes. The table as of the last complete checkpoint is on disk; the
//! current one is in memory only. So whatever is lost in a crash, the last checkpoint stands.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::os::{Os, StopFlag};

/// The data file and its place table. All methods may be called from many threads.
#[derive(Debug)]
pub struct Store {
    stop: Arc<StopFlag>,
}

impl Store {
    /// Whether `dir` holds a database.
    pub fn exists(os: &dyn Os, dir: &Path) -> Result<bool> {
        os.exists(&dir.join("data"))
    }

    /// Creates the data file in `dir` (which is created too, when missing) and locks `dir`.
    pub fn create(_os: Arc<dyn Os>, _dir: &Path) -> Result<Store> {
        Err(unfinished())
    }

    /// Opens the data file of `dir`, and locks `dir`. Returns with it the `meta` bytes given to
    /// the last complete checkpoint (empty when there was none yet).
    pub fn open(_os: Arc<dyn Os>, _dir: &Path) -> Result<(Store, Vec<u8>)> {
        Err(unfinished())
    }

    /// As [`Store::open`], but never writes; the directory's lock is shared.
    pub fn open_read_only(_os: Arc<dyn Os>, _dir: &Path) -> Result<(Store, Vec<u8>)> {
        Err(unfinished())
    }

    /// The random number given to the database when it was created; the log carries it too.
    pub fn database_id(&self) -> u64 {
        0
    }

    /// The flag that a failed sync sets; the log shares it.
    pub fn stop_flag(&self) -> &Arc<StopFlag> {
        &self.stop
    }

    /// A page id that no page has. In memory only: it becomes durable with the page's place.
    pub fn allocate_page(&self) -> PageId {
        PageId(1)
    }

    /// Gives a page id and its current place back. A running checkpoint keeps its own place.
    pub fn free_page(&self, _page: PageId) {}

    /// Reads a page from its current place into `buf` (`PAGE_SIZE` bytes); the hole reads as zeros.
    pub fn read_page(&self, _page: PageId, _buf: &mut [u8]) -> Result<()> {
        Err(unfinished())
    }

    /// The number of the newest checkpoint that has begun. See [`Store::write_page_seen`].
    pub fn epoch(&self) -> u64 {
        0
    }

    /// Writes a page (eviction) to a new place, which becomes its current one.
    ///
    /// The caller makes sure that no checkpoint begins between its decision that the running
    /// checkpoint does not need this image and this call; or uses [`Store::write_page_seen`].
    pub fn write_page(&self, _page: PageId, _image: &[u8]) -> Result<()> {
        Err(unfinished())
    }

    /// As [`Store::write_page`]; `seen` is [`Store::epoch`] as read before the page's latch was
    /// taken and the decision made. When a checkpoint has begun since, this image is the page's
    /// state at its gate, and becomes the checkpoint's too.
    pub fn write_page_seen(&self, _page: PageId, _image: &[u8], _seen: u64) -> Result<()> {
        Err(unfinished())
    }

    /// Begins a checkpoint, inside the gate: from now on the table has two versions, pending
    /// (as of now) and current. Returns the checkpoint's number.
    pub fn begin_checkpoint(&self) -> u64 {
        0
    }

    /// Writes a page's image as of the gate; `still_current`: it is also the page's newest state.
    pub fn write_checkpoint_page(
        &self,
        _page: PageId,
        _image: &[u8],
        _still_current: bool,
    ) -> Result<()> {
        Err(unfinished())
    }

    /// Makes the pending table durable together with `meta`, then frees superseded places.
    pub fn complete_checkpoint(&self, _meta: &[u8]) -> Result<()> {
        Err(unfinished())
    }

    /// Gives the running checkpoint up (disk full, …): its places that nothing else uses are freed.
    pub fn abandon_checkpoint(&self) {}
}

fn unfinished() -> Error {
    Error::Internal("the store is being built".into())
}
