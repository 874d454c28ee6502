//! Walking the visible records of one tree, in both directions.
//!
//! A walk copies a leaf at a time and reads the copy without any latch. When every change of the
//! leaf is older than the reader's snapshot, records need no look at their versions.

mod locked;

use std::cell::{Cell, OnceCell};

use crate::error::Result;
use crate::mvcc::{live_payload, Header, ReadView};
use crate::planted::{is_planted, PlantedFault};
use crate::row::key_bytes::KeyInPieces;
use crate::row::{NumberPlace, Text, TextPlace};
use crate::tree::{LeafImage, Position, Tree};
use crate::txn::{Copied, RangeLocker, TreeTransaction};

/// Which way a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// A position in a tree, with the leaf around it.
pub(super) struct RecordCursor {
    image: Option<LeafImage>,
    copied: Copied,
    at: usize,
    all_visible: bool,
    /// The last step led behind the last record: the leaf at hand may then be another than the one
    /// that the walk last stood in, and `at` says nothing about it.
    ended: bool,
    /// It had ended when its bounds were set anew: there may be more now.
    reopened: bool,
    /// Keys from here on are not wanted: [`RecordCursor::step_within`] ends there, and leaves behind it are not
    /// looked at. `None`: nowhere.
    stop: Option<Vec<u8>>,
    /// Going backward: keys below are not wanted, and leaves before it are not looked at.
    floor: Vec<u8>,
    /// The first record of the leaf that is not below `stop`.
    limit: usize,
    pub view: ReadView,
    /// The key that the walk stands on, once somebody has asked for it: a scan that reads other
    /// columns than those of the key has no use for it.
    key: OnceCell<Vec<u8>>,
    /// The buffer for the next key.
    spare: Cell<Vec<u8>>,
    /// Where the leaf left behind ended.
    fence: Vec<u8>,
    /// The key that the walk stood on when it left the leaf at hand before.
    left: Vec<u8>,
    /// The last step has left that leaf.
    has_left: bool,
    /// Locks what the walk sees; `None`: it reads a snapshot, or what is committed.
    locker: Option<RangeLocker>,
    /// Whether the records of running writers are not judged, but left to
    /// [`crate::txn::TreeTransaction::decided_payload`], which waits for them.
    waits_for_writers: bool,
    /// With `locker`, going forward: what was copied is locked up to here, and records from here on
    /// are as if they stood in the next leaf. `None`: to the end of the tree.
    locked_until: Option<Vec<u8>>,
    /// Whether the record that the walk stands on may be of a running writer.
    maybe_uncommitted: bool,
    /// Whether the leaf was copied too early for the record that the walk came to last: see
    /// [`crate::txn::VersionResolver::deleted_since`].
    outdated: bool,
    /// See [`RecordCursor::set_meets_uncommitted`].
    meets_uncommitted: bool,
    /// See [`RecordCursor::is_uncommitted`].
    uncommitted: bool,
    /// An older version that was fetched from undo.
    older: Vec<u8>,
    payload: Payload,
}

/// Where the payload of the present record stands.
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

    /// The leaf at hand, if the walk stands on a record of it.
    #[inline]
    fn leaf(&self) -> Option<&LeafImage> {
        self.image.as_ref().filter(|image| self.at < image.count())
    }

    /// The key that the walk stands on.
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

    /// A number of the key that the walk stands on, without putting the key together.
    #[inline]
    pub fn number(&self, place: &NumberPlace) -> Option<u64> {
        let image = self.leaf()?;
        place
            .read_word(|from, n| image.key_number(self.at, from, n))
            .or_else(|| place.read(image.key_len(self.at), |i| image.key_byte(self.at, i)))
    }

    /// Puts a string of the entry that the walk stands on into `out`; `None` when it does not fit.
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

    /// Whether it has gone behind the last record, and stands on none.
    pub fn has_ended(&self) -> bool {
        self.ended && !is_planted(PlantedFault::StandAtEnd)
    }

    /// Whether it has ended within bounds that are others now: only a search tells what follows.
    pub fn may_have_more(&self) -> bool {
        self.reopened && !is_planted(PlantedFault::EndStaysEnd)
    }

    /// After a step that led to no record: the key of the one that the walk stood on before.
    pub fn last_key(&self) -> &[u8] {
        if self.has_left {
            &self.left
        } else {
            self.key()
        }
    }

    /// Remembers what the walk stands on: it is about to leave the leaf.
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

    /// Sets where a walk forward ends; [`RecordCursor::step_within`] from the leaf that is copied next.
    pub fn set_stop(&mut self, stop: Option<Vec<u8>>) {
        if let Some(image) = &mut self.image {
            image.set_end(stop.as_deref());
        }
        self.stop = stop;
        self.limit = 0;
        self.reopened = self.ended;
    }

    /// Sets where a walk backward ends: before keys below this; if it is empty, nowhere.
    pub fn set_floor(&mut self, floor: &[u8]) {
        self.floor.clear();
        self.floor.extend_from_slice(floor);
        self.reopened = self.ended;
    }

    /// Whether nothing is wanted of the leaves before one that begins there.
    fn ends_at(&self, lower: &[u8]) -> bool {
        lower.is_empty()
            || !self.floor.is_empty()
                && lower <= &self.floor[..]
                && !is_planted(PlantedFault::WalkBehindEnd)
    }

    /// Whether nothing is wanted of the leaves behind one that ends there.
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

    /// Goes to the next record, if that is in the leaf at hand, below the stop, and needs no look
    /// at versions; otherwise stays, and says false.
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

    /// The payload that the walk stands on.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        match (self.payload, &self.image) {
            (Payload::Image(skip), Some(image)) => image.value(self.at).get(skip..).unwrap_or(&[]),
            (Payload::Older(skip), _) => self.older.get(skip..).unwrap_or(&[]),
            (Payload::Image(_), None) => &[],
        }
    }

    /// Goes to the record at `position`, or the first visible one behind it in `direction`.
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

    /// Copies records around a position. Gives where in the copy the walk goes on: one past the record in walking
    /// direction, so that a step leads to it.
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

    /// Copies records anew from number `at` of the leaf at hand on, which was copied too early to judge that one. Gives
    /// where the walk goes on, as [`RecordCursor::copy_at`].
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

    /// Locks what the walk sees from the next seek on, or no longer does. With `waits_for_writers`, and with a
    /// locker anyway, records that others are writing are waited for; the view is then to be of the
    /// newest state.
    pub fn set_locker(&mut self, locker: Option<RangeLocker>, waits_for_writers: bool) {
        self.waits_for_writers = waits_for_writers || locker.is_some();
        self.locker = locker;
    }

    /// Whether the walk locks what it sees.
    pub fn locks(&self) -> bool {
        self.locker.is_some()
    }

    /// From the next seek on, a walk that sees the newest state stands on records, too, that others have put and
    /// not committed: see [`RecordCursor::is_uncommitted`].
    pub fn set_meets_uncommitted(&mut self, meets: bool) {
        self.meets_uncommitted = meets;
    }

    /// Whether the walk stands on a record that was put, and not committed, when the walk came to it.
    pub fn is_uncommitted(&self) -> bool {
        self.uncommitted
    }

    /// Whether the walk stands on a record that a running writer may have written, and that counts
    /// only as [`crate::txn::TreeTransaction::decided_payload`] says: see [`RecordCursor::set_payload`].
    pub fn maybe_uncommitted(&self) -> bool {
        self.maybe_uncommitted
    }

    /// What the record that the walk stands on holds.
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

    /// Goes to the next visible record in `direction`, which stays the same from seek to seek; false at
    /// the end, and from then on.
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

    /// The first visible record from `at` on.
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

    /// The last visible record before `at`.
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

    /// Records of the leaf at hand, as far as the walk may go in it.
    fn count(&self) -> usize {
        match (&self.image, &self.locker, &self.locked_until) {
            (None, ..) => 0,
            (Some(image), Some(_), Some(reach)) => image.lower_bound(reach).0,
            (Some(image), ..) => image.count(),
        }
    }

    /// Goes to the next leaf; `None` at the end. Gives where in it the walk goes on: the leaf may
    /// have taken in records that the walk has passed, when it was merged with its neighbour.
    fn next_leaf(
        &mut self,
        txn: &TreeTransaction,
        tree: &Tree,
        direction: Direction,
    ) -> Result<Option<usize>> {
        self.note_left();
        // Of a leaf there may be nothing to see, and of thousands behind it.
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

    /// Stands on record `at`, if the view sees it.
    #[inline]
    fn stand(&mut self, txn: &TreeTransaction, tree: &Tree, at: usize) -> Result<bool> {
        let Some(image) = &self.image else {
            return Ok(false);
        };
        let value = image.value(at);
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
        (self.uncommitted, self.outdated) = (false, false);
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

impl KeyInPieces for RecordCursor {
    fn whole(&self) -> &[u8] {
        self.key()
    }

    fn length(&self) -> usize {
        self.leaf().map_or(0, |image| image.key_len(self.at))
    }

    #[inline]
    fn copy_to(&self, from: usize, out: &mut [u8]) -> bool {
        self.leaf()
            .is_some_and(|image| image.copy_key(self.at, from, out))
    }

    #[inline]
    fn word(&self, from: usize, n: usize) -> Option<u128> {
        self.leaf()?.key_word(self.at, from, n)
    }
}
