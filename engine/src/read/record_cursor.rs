//! A position among the visible records of one tree, which moves in both directions.
//!
//! A record cursor copies a leaf at a time and reads the copy without a latch. If every change of the leaf is older
//! than the reader's snapshot, the cursor does not check the versions of records. Comments call its movement the walk.

mod key;
mod locked;

use std::cell::{Cell, OnceCell};

use crate::error::Result;
use crate::mvcc::{live_payload, Header, ReadView};
use crate::planted::{is_planted, PlantedFault};
use crate::row::{NumberPlace, Text, TextPlace};
use crate::tree::{LeafImage, Position, Tree};
use crate::txn::{Copied, RangeLocker, TreeTransaction};

/// The direction of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// A position in a tree, with a copy of the leaf around it.
pub(super) struct RecordCursor {
    image: Option<LeafImage>,
    copied: Copied,
    at: usize,
    all_visible: bool,
    /// The last step led behind the last record.
    ///
    /// The copied leaf may then be another than that of the last record, and `at` has no meaning.
    ended: bool,
    /// The walk had ended when its bounds were changed: more records may follow now.
    reopened: bool,
    /// Keys from here on are not wanted; `None`: no such bound.
    ///
    /// [`RecordCursor::step_within`] ends here, and the walk does not read leaves behind it.
    stop: Option<Vec<u8>>,
    /// For a walk backward: keys below are not wanted, and the walk does not read leaves before it.
    floor: Vec<u8>,
    /// The first record of the leaf that is not below `stop`.
    limit: usize,
    pub view: ReadView,
    /// The current key, once a caller has asked for it: a scan that reads only other columns never needs it.
    key: OnceCell<Vec<u8>>,
    /// The buffer for the next key.
    spare: Cell<Vec<u8>>,
    /// The upper or lower fence of the leaf that the walk left.
    fence: Vec<u8>,
    /// The current key when the walk left the previous leaf.
    left: Vec<u8>,
    /// The last step has left the previous leaf.
    has_left: bool,
    /// Locks the ranges that the walk reads; `None`: the walk reads a snapshot, or committed records.
    locker: Option<RangeLocker>,
    /// Whether the walk leaves records of running writers to [`crate::txn::TreeTransaction::decided_payload`], which
    /// waits for them.
    waits_for_writers: bool,
    /// With `locker`, going forward: the end of the locked range.
    ///
    /// `None`: the end of the tree.
    ///
    /// The walk treats records from here on as records of the next leaf.
    locked_until: Option<Vec<u8>>,
    /// Whether the current record may be of a running writer.
    maybe_uncommitted: bool,
    /// Whether the leaf was copied too early to judge the last record:
    /// [`crate::txn::VersionResolver::deleted_since`].
    outdated: bool,
    /// See [`RecordCursor::set_meets_uncommitted`].
    meets_uncommitted: bool,
    /// See [`RecordCursor::is_uncommitted`].
    uncommitted: bool,
    /// An older version that was read from undo.
    older: Vec<u8>,
    payload: Payload,
}

/// Where the payload of the current record is stored.
#[derive(Clone, Copy)]
enum Payload {
    /// The image's record, from this byte on.
    Image(usize),
    /// `older`, from this byte on.
    Older(usize),
}

impl RecordCursor {
    pub fn new() -> Self {
        RecordCursor {
            image: None,
            copied: Copied::default(),
            at: 0,
            all_visible: false,
            ended: false,
            reopened: false,
            stop: None,
            floor: Vec::new(),
            limit: 0,
            view: ReadView {
                csn: crate::ids::Csn(0),
                low: crate::ids::TxId(0),
                own: crate::ids::TxId(0),
            },
            key: OnceCell::new(),
            spare: Cell::default(),
            fence: Vec::new(),
            left: Vec::new(),
            has_left: false,
            locker: None,
            waits_for_writers: false,
            locked_until: None,
            maybe_uncommitted: false,
            outdated: false,
            meets_uncommitted: false,
            uncommitted: false,
            older: Vec::new(),
            payload: Payload::Older(0),
        }
    }

    /// The copied leaf, if the walk is on a record of it.
    #[inline]
    fn leaf(&self) -> Option<&LeafImage> {
        self.image.as_ref().filter(|image| self.at < image.count())
    }

    /// The current key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.key.get_or_init(|| {
            let mut key = self.spare.take();
            key.clear();
            if let Some(image) = self.leaf() {
                image.key(self.at, &mut key);
            }
            key
        })
    }

    /// A number in the current key, read without putting the key together.
    #[inline]
    pub fn number(&self, place: &NumberPlace) -> Option<u64> {
        let image = self.leaf()?;
        place
            .read_word(|from, n| image.key_number(self.at, from, n))
            .or_else(|| place.read(image.key_len(self.at), |i| image.key_byte(self.at, i)))
    }

    /// Puts a string of the current entry into `out`; `None` if it does not fit.
    #[inline]
    pub fn text(&self, place: &TextPlace, out: &mut [u8]) -> Option<Text> {
        place.read(self, self.payload(), out)
    }

    #[inline]
    fn move_to(&mut self, at: usize, payload: Payload) {
        self.at = at;
        self.payload = payload;
        if self.key.get().is_some() {
            self.spare.set(self.key.take().unwrap_or_default());
        }
    }

    /// Whether the walk has gone behind the last record, and is on none.
    pub fn has_ended(&self) -> bool {
        self.ended && !is_planted(PlantedFault::StandAtEnd)
    }

    /// Whether the walk has ended within bounds that have changed since: only a search finds what follows.
    pub fn may_have_more(&self) -> bool {
        self.reopened && !is_planted(PlantedFault::EndStaysEnd)
    }

    /// After a step that led to no record: the key of the record before.
    pub fn last_key(&self) -> &[u8] {
        if self.has_left {
            &self.left
        } else {
            self.key()
        }
    }

    /// Saves the current key before the walk leaves the leaf.
    fn note_left(&mut self) {
        if self.has_left {
            return;
        }
        self.has_left = true;
        self.left.clear();
        if let Some(image) = self.image.as_ref().filter(|image| self.at < image.count()) {
            image.key(self.at, &mut self.left);
        }
    }

    /// Sets where a walk forward ends; for [`RecordCursor::step_within`] only from the next copied leaf on.
    pub fn set_stop(&mut self, stop: Option<Vec<u8>>) {
        if let Some(image) = &mut self.image {
            image.set_end(stop.as_deref());
        }
        self.stop = stop;
        self.limit = 0;
        self.reopened = self.ended;
    }

    /// Sets where a walk backward ends: before keys below `floor`; an empty key is no bound.
    pub fn set_floor(&mut self, floor: &[u8]) {
        self.floor.clear();
        self.floor.extend_from_slice(floor);
        self.reopened = self.ended;
    }

    /// Whether the walk needs no leaf before one that begins at `lower`.
    fn ends_at(&self, lower: &[u8]) -> bool {
        lower.is_empty()
            || !self.floor.is_empty()
                && lower <= &self.floor[..]
                && !is_planted(PlantedFault::WalkBehindEnd)
    }

    /// Whether the walk needs no leaf behind one that ends at `upper`.
    fn stops_at(&self, upper: &[u8]) -> bool {
        let stop = self.stop.as_deref();
        stop.is_some_and(|stop| stop <= upper) && !is_planted(PlantedFault::WalkBehindEnd)
    }

    fn find_limit(&mut self) {
        self.limit = match (&self.image, &self.stop) {
            (Some(image), Some(stop)) => image.lower_bound(stop).0,
            (Some(image), None) => image.count(),
            (None, _) => 0,
        };
    }

    /// Goes to the next record if it is in the copied leaf, below the stop, and visible without a check of versions.
    ///
    /// Otherwise returns false and does not move.
    #[inline]
    pub fn step_within(&mut self) -> Result<bool> {
        let at = self.at + 1;
        if at >= self.limit || !self.all_visible {
            return Ok(false);
        }
        let Some(image) = &self.image else {
            return Ok(false);
        };
        let value = image.value(at);
        let Some(payload) = live_payload(value)? else {
            return Ok(false);
        };
        let skip = value.len() - payload.len();
        self.move_to(at, Payload::Image(skip));
        Ok(true)
    }

    /// The current payload.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        match (self.payload, &self.image) {
            (Payload::Image(skip), Some(image)) => image.value(self.at).get(skip..).unwrap_or(&[]),
            (Payload::Older(skip), _) => self.older.get(skip..).unwrap_or(&[]),
            (Payload::Image(_), None) => &[],
        }
    }

    /// Goes to the record at `position`, or to the first visible one behind it in `direction`.
    pub fn seek(
        &mut self,
        txn: &TreeTransaction,
        tree: &Tree,
        view: ReadView,
        position: Position<'_>,
        direction: Direction,
    ) -> Result<bool> {
        self.view = view;
        self.ended = false;
        self.reopened = false;
        self.maybe_uncommitted = false;
        let Some(ahead) = self.copy_at(txn, tree, position, direction)? else {
            return Ok(false);
        };
        match direction {
            Direction::Forward => self.forward(txn, tree, ahead),
            Direction::Backward => self.backward(txn, tree, ahead),
        }
    }

    /// Copies records around a position.
    ///
    /// Returns the place in the copy from which a step leads to the first record.
    fn copy_at(
        &mut self,
        txn: &TreeTransaction,
        tree: &Tree,
        position: Position<'_>,
        direction: Direction,
    ) -> Result<Option<usize>> {
        let copied = txn.versions().before_copy();
        let found = if self.locker.is_some() {
            self.copy_locked(tree, position, direction, true)?
        } else {
            let stop = self.stop.as_deref();
            let image = self.image.get_or_insert_with(|| {
                let mut image = LeafImage::one_by_one();
                image.set_end(stop);
                image
            });
            tree.copy_near(position, image)?
        };
        if !found {
            return Ok(None);
        }
        self.copied = copied;
        self.leaf_copied();
        Ok(self.image.as_ref().map(|image| match position {
            Position::First => 0,
            Position::Last => image.count(),
            Position::AtOrAfter(key) => image.lower_bound(key).0,
            Position::Before(key) => image.lower_bound(key).0,
            Position::After(key) | Position::AtOrBefore(key) => {
                let (at, equal) = image.lower_bound(key);
                at + usize::from(equal)
            }
        }))
    }

    /// Copies records anew from record `at` of the copied leaf on: the leaf was copied too early to judge that record.
    ///
    /// Returns where the walk goes on, as [`RecordCursor::copy_at`].
    #[cold]
    fn copy_again(
        &mut self,
        txn: &TreeTransaction,
        tree: &Tree,
        at: usize,
        direction: Direction,
    ) -> Result<Option<usize>> {
        self.note_left();
        let mut key = std::mem::take(&mut self.fence);
        key.clear();
        if let Some(image) = &self.image {
            image.key(at, &mut key);
        }
        let position = match direction {
            Direction::Forward => Position::AtOrAfter(&key),
            Direction::Backward => Position::AtOrBefore(&key),
        };
        let copied = self.copy_at(txn, tree, position, direction);
        self.fence = key;
        copied
    }

    /// Sets whether the walk locks what it reads, from the next seek on.
    ///
    /// With `waits_for_writers`, and always with a locker, the walk waits for records that others are writing; the view
    /// must then be of the newest state.
    pub fn set_locker(&mut self, locker: Option<RangeLocker>, waits_for_writers: bool) {
        self.waits_for_writers = waits_for_writers || locker.is_some();
        self.locker = locker;
    }

    /// Whether the walk locks the ranges that it reads.
    pub fn locks(&self) -> bool {
        self.locker.is_some()
    }

    /// From the next seek on, a walk with a view of the newest state also returns uncommitted records of other
    /// transactions.
    ///
    /// See [`RecordCursor::is_uncommitted`].
    pub fn set_meets_uncommitted(&mut self, meets: bool) {
        self.meets_uncommitted = meets;
    }

    /// Whether the current record was inserted, and not committed, when the walk came to it.
    pub fn is_uncommitted(&self) -> bool {
        self.uncommitted
    }

    /// Whether a running writer may have written the current record.
    ///
    /// [`crate::txn::TreeTransaction::decided_payload`] then decides what the record holds: see
    /// [`RecordCursor::set_payload`].
    pub fn maybe_uncommitted(&self) -> bool {
        self.maybe_uncommitted
    }

    /// Sets the payload of the current record.
    pub fn set_payload(&mut self, payload: &[u8]) {
        self.maybe_uncommitted = false;
        self.older.clear();
        self.older.extend_from_slice(payload);
        self.payload = Payload::Older(0);
    }

    fn leaf_copied(&mut self) {
        let newest = self.image.as_ref().map_or(0, LeafImage::max_txid);
        self.all_visible = newest < self.view.low.0;
        self.find_limit();
    }

    /// Goes to the next visible record in `direction`, which stays the same from seek to seek.
    ///
    /// Returns false at the end, and at each step after it.
    #[inline]
    pub fn step(
        &mut self,
        txn: &TreeTransaction,
        tree: &Tree,
        direction: Direction,
    ) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.has_left = false;
        match direction {
            Direction::Forward => self.forward(txn, tree, self.at + 1),
            Direction::Backward => self.backward(txn, tree, self.at),
        }
    }

    /// Goes to the first visible record from `at` on.
    fn forward(&mut self, txn: &TreeTransaction, tree: &Tree, mut at: usize) -> Result<bool> {
        loop {
            let mut count = self.count();
            while at < count {
                if self.stand(txn, tree, at)? {
                    return Ok(true);
                }
                at = match self.outdated {
                    true => {
                        let again = self.copy_again(txn, tree, at, Direction::Forward)?;
                        count = self.count();
                        again.unwrap_or(count)
                    }
                    false => at + 1,
                };
            }
            match self.next_leaf(txn, tree, Direction::Forward)? {
                Some(on) => at = on,
                None => {
                    self.ended = true;
                    return Ok(false);
                }
            }
        }
    }

    /// Goes to the last visible record before `at`.
    fn backward(&mut self, txn: &TreeTransaction, tree: &Tree, mut at: usize) -> Result<bool> {
        loop {
            while at > 0 {
                at -= 1;
                if self.stand(txn, tree, at)? {
                    return Ok(true);
                }
                if self.outdated {
                    let again = self.copy_again(txn, tree, at, Direction::Backward)?;
                    at = again.unwrap_or(0);
                }
            }
            match self.next_leaf(txn, tree, Direction::Backward)? {
                Some(on) => at = on,
                None => {
                    self.ended = true;
                    return Ok(false);
                }
            }
        }
    }

    /// The number of records of the copied leaf that the walk may read.
    fn count(&self) -> usize {
        match (&self.image, &self.locker, &self.locked_until) {
            (None, ..) => 0,
            (Some(image), Some(_), Some(reach)) => image.lower_bound(reach).0,
            (Some(image), ..) => image.count(),
        }
    }

    /// Goes to the next leaf; `None` at the end.
    ///
    /// Returns where in the leaf the walk goes on.
    ///
    /// The walk may have to go on behind the leaf's first record: the leaf may have been merged with a neighbour whose
    /// records the walk has passed.
    fn next_leaf(
        &mut self,
        txn: &TreeTransaction,
        tree: &Tree,
        direction: Direction,
    ) -> Result<Option<usize>> {
        self.note_left();
        // This leaf, and thousands behind it, may have no visible record: so check at each leaf.
        if !is_planted(PlantedFault::WalkOnKilled) {
            txn.check_killed()?;
        }
        if self.locker.is_some() {
            return self.next_locked_leaf(tree, direction);
        }
        let neighbour = self.image.as_ref().and_then(|image| match direction {
            Direction::Forward => image.upper_fence().filter(|upper| !self.stops_at(upper)),
            Direction::Backward => Some(image.lower_fence()).filter(|lower| !self.ends_at(lower)),
        });
        let Some(neighbour) = neighbour else {
            return Ok(None);
        };
        self.fence.clear();
        self.fence.extend_from_slice(neighbour);
        let Some(image) = &mut self.image else {
            return Ok(None);
        };
        let copied = txn.versions().before_copy();
        let more = match direction {
            Direction::Forward => tree.copy_next_leaf(image)?,
            Direction::Backward => tree.copy_previous_leaf(image)?,
        };
        if !more {
            return Ok(None);
        }
        self.copied = copied;
        self.leaf_copied();
        let Some(image) = &self.image else {
            return Ok(None);
        };
        let at = match direction {
            Direction::Forward if image.lower_fence() == self.fence => 0,
            _ => image.lower_bound(&self.fence).0,
        };
        Ok(Some(at))
    }

    /// Makes record `at` the current one if the view sees it; otherwise returns false.
    #[inline]
    fn stand(&mut self, txn: &TreeTransaction, tree: &Tree, at: usize) -> Result<bool> {
        let Some(image) = &self.image else {
            return Ok(false);
        };
        let value = image.value(at);
        (self.uncommitted, self.outdated) = (false, false);
        if self.waits_for_writers {
            let (header, _) = Header::decode(value)?;
            self.maybe_uncommitted = header.txid().is_some_and(|writer| writer >= self.view.low);
            if self.maybe_uncommitted {
                self.move_to(at, Payload::Older(0));
                return Ok(true);
            }
        }
        let found = if self.all_visible || self.waits_for_writers {
            live_payload(value)?
        } else {
            txn.versions().visible(
                &self.view,
                value,
                &mut self.older,
                self.copied,
                tree,
                |key| image.key(at, key),
            )?
        };
        let newest = self.view.is_newest();
        let put = match found {
            None if self.meets_uncommitted && newest => {
                let put = live_payload(value)?;
                self.uncommitted = put.is_some();
                put
            }
            found => found,
        };
        let Some(payload) = put else {
            if newest && !self.all_visible && !self.waits_for_writers {
                self.outdated = txn.versions().deleted_since(value, self.copied)?;
            }
            return Ok(false);
        };
        // The payload is the tail of the record, or of the buffer for older versions.
        let len = payload.len();
        let skip = value.len().wrapping_sub(len);
        let payload = if value.as_ptr().wrapping_add(skip) == payload.as_ptr() {
            Payload::Image(skip)
        } else {
            Payload::Older(self.older.len().saturating_sub(len))
        };
        self.move_to(at, payload);
        Ok(true)
    }
}
