//! Reading several pages together: those that a cursor will need next, and the leaves of many rows.
//!
//! A request names children of a parent. The thread that serves it first enters load claims for these pages, as every
//! loader does. It reads the parent only *then*. If the parent still refers to a page by its id, no other thread has
//! loaded the page or is loading it. No thread waits for a page that is read ahead, and its read errors are dropped:
//! a thread that needs the page reads it again, and gets the error.
//!
//! Leaves that were loaded for a cursor become scan victims when a long scan passes them
//! ([`crate::buffer::scan_victims`]). So a scan of a table larger than the pool does not evict the pages that were in
//! the pool before.

use std::collections::hash_map::Entry as Slot;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use crate::buffer::buffer_pool::BufferPool;
use crate::buffer::guard::SharedGuard;
use crate::buffer::page_table::Entry;
use crate::buffer::read_requests::{Children, Countdown, Request, Wanted, WITHOUT_MEMORY};
use crate::buffer::residency::load::ChildPlace;
use crate::buffer::swip;
use crate::buffer::swip::Child;
use crate::ids::{FrameId, PageId};
use crate::knobs;
use crate::node::header::*;
use crate::planted::{is_planted, PlantedFault};
use crate::store::ImageRun;
use crate::sync::atomic::Ordering;
use crate::sync::{Condvar, Mutex};

/// How far a scan has come, and how far it will go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanExtent<'a> {
    /// The number of leaves that the scan has passed.
    pub passed: usize,
    /// Whether the scan will continue to its end whatever it finds.
    pub whole: bool,
    /// The key before which the scan ends; `None` if the scan has no end.
    pub until: Option<&'a [u8]>,
    /// The columns whose zone maps let the scan skip a leaf that is wholly in its range, if any.
    pub zone_map_columns: Option<&'a [usize]>,
    /// The columns whose mini-pages let the scan skip a leaf, if any.
    pub mini_page_columns: Option<u64>,
}

impl ScanExtent<'_> {
    /// Returns how many leaves are read together for the scan: more, the further it has come.
    fn leaves(self) -> usize {
        match self.whole {
            true => knobs::read_ahead_pages(),
            false => knobs::read_ahead_pages().min(2 << self.passed.min(8)),
        }
    }

    /// Returns whether the scan has passed so many leaves that the pool should not keep them.
    #[inline]
    pub fn is_long(self) -> bool {
        self.passed >= knobs::leaves_to_pass_through()
    }
}

/// This thread's load claims; those left at the drop are released.
struct LoadClaims<'a> {
    pool: &'a BufferPool,
    /// The claims' entry in the page table.
    claim: Entry,
    ids: SmallVec<[u64; WITHOUT_MEMORY]>,
}

impl LoadClaims<'_> {
    /// Ends a claim: the page is in the frame, or was not loaded.
    fn end(&mut self, id: u64, frame: Option<FrameId>) {
        self.ids.retain(|claimed| *claimed != id);
        self.pool.end_claim(id, self.claim, frame);
    }
}

impl Drop for LoadClaims<'_> {
    fn drop(&mut self) {
        for id in &self.ids {
            self.pool.end_claim(*id, self.claim, None);
        }
    }
}

impl BufferPool {
    /// Notes that a cursor has reached the leaf in a frame.
    #[inline]
    pub fn note_pass(&self, frame: FrameId, extent: ScanExtent<'_>) {
        let state = self.frames.state(frame);
        if !state.passing.load(Ordering::Relaxed) {
            return state.note_use();
        }
        if state.passing.swap(false, Ordering::Relaxed) && extent.is_long() {
            // The evictor has spared the leaf so far, so that it stays until the cursor comes.
            self.pass(frame);
        }
    }

    /// Makes a frame's page a scan victim: it is evicted first, unless it is used again.
    pub(crate) fn pass(&self, frame: FrameId) {
        let state = self.frames.state(frame);
        state.used.store(false, Ordering::Relaxed);
        let page = state.page.load(Ordering::Relaxed);
        self.passed.push(frame, page, self.frames.count());
    }

    /// Returns the most pages that one reader may load at a time, so that a few readers can't fill the pool.
    pub fn most_at_once(&self) -> usize {
        (self.frames.count() / 32).clamp(1, knobs::read_ahead_pages())
    }

    /// Loads the child at `place`, which is not in memory, and the leaves that follow it, for a scan.
    ///
    /// It also requests further leaves that the scan will soon need. The caller must hold no latch.
    pub fn read_ahead(&self, place: ChildPlace, id: u64, extent: ScanExtent<'_>, forward: bool) {
        let most = self.most_at_once().min(extent.leaves());
        let known = |id: u64| self.table.lock(id).contains_key(&id);
        let is_known = known(id);
        if most < 2 || is_known && place.at % knobs::read_ahead_every() != 0 {
            return;
        }
        let Some((parent_page, children)) = self.children_from(place, extent, forward, 2 * most)
        else {
            return;
        };
        let group = |part: &[(u16, u64)]| Wanted {
            parent: place.parent,
            parent_page,
            passing: true,
            children: part.iter().copied().take(most).collect(),
        };
        if is_known {
            let ready = children.iter().take_while(|(_, id)| known(*id)).count();
            if ready < most && ready < children.len() {
                self.ask(group(&children[ready..]));
            }
            return;
        }
        // This thread reads the run that has the cursor's leaf; reader threads read the other runs meanwhile.
        let mut reads = self.split(group(&children), most);
        let has_it = |read: &Wanted| read.children.iter().any(|(_, child)| *child == id);
        let own = reads.iter().position(has_it).map(|n| reads.swap_remove(n));
        for read in reads {
            self.ask(read);
        }
        if children.len() > most {
            self.ask(group(&children[most..]));
        }
        if let Some(own) = own {
            self.bring(&own);
        }
    }

    /// Splits a request into one for each run of pages that the store reads with one call.
    fn split(&self, wanted: Wanted, most: usize) -> Vec<Wanted> {
        let ids = wanted.children.iter().map(|(_, id)| PageId(*id));
        let runs = self.store.runs(ids, most);
        let of_run = |run: &ImageRun| Wanted {
            children: wanted
                .children
                .iter()
                .copied()
                .filter(|(_, id)| run.pages().any(|page| page.0 == *id))
                .collect(),
            ..wanted
        };
        runs.iter().map(of_run).collect()
    }

    /// Returns the parent's page, and which of the next `most` children that are not in memory the scan needs.
    ///
    /// Children behind the scan's end do not count. `None` if the parent has changed since `place` was read.
    fn children_from(
        &self,
        place: ChildPlace,
        extent: ScanExtent<'_>,
        forward: bool,
        most: usize,
    ) -> Option<(u64, Children)> {
        let parent = SharedGuard::try_lock(self, place.parent)?;
        let state = self.frames.state(place.parent);
        if !state.latch.still(place.version) {
            return None;
        }
        let parent_page = state.page.load(Ordering::Relaxed);
        let tree = get_u32(parent.bytes(), TREE_ID);
        let node = parent.node();
        let away = |i: usize| match swip::child(node.child(i)) {
            Child::Page(id) => Some((i as u16, id)),
            Child::Frame(_) => None,
        };
        let mut children: Children;
        if forward {
            let last = match extent.until {
                // A cursor that finds no visible record before its end continues behind it, in nodes with no key
                // below the end. There it needs this leaf only.
                Some(until)
                    if until <= node.lower_fence()
                        && !is_planted(PlantedFault::ReadAheadBehindEnd) =>
                {
                    place.at
                }
                Some(until) if node.upper_fence().is_none_or(|upper| until < upper) => {
                    node.lower_bound(until).0
                }
                _ => node.count(),
            };
            children = (place.at..=last).filter_map(away).take(most).collect();
            drop(parent);
            // The cursor can't skip its own leaf. The last leaf may have records behind the cursor's end.
            let is_needed =
                |i: usize, id: u64| i == place.at || !self.is_spared((id, tree), &extent, i < last);
            children.retain(|(i, id)| is_needed(usize::from(*i), *id));
        } else {
            let first = match extent.until {
                Some(until) if until > node.lower_fence() => node.child_for(until),
                _ => 0,
            };
            children = (first..=place.at)
                .rev()
                .filter_map(away)
                .take(most)
                .collect();
        }
        Some((parent_page, children))
    }

    /// Returns whether a scan can skip a leaf; `whole` says that the leaf is wholly in its range.
    fn is_spared(&self, (id, tree): (u64, u32), extent: &ScanExtent<'_>, whole: bool) -> bool {
        let zone_map_columns = extent.zone_map_columns.filter(|_| whole);
        zone_map_columns.is_some_and(|columns| self.evicted_zone_maps.has(id, tree, columns))
            || (extent.mini_page_columns)
                .is_some_and(|columns| self.has_mini_page(id, tree, columns))
    }

    /// Loads the children at these places, which are not in memory, and returns when they have been read.
    ///
    /// The caller must hold no latch.
    pub fn bring_children(&self, places: impl Iterator<Item = (ChildPlace, u64)>) {
        let most = self.most_at_once();
        let mut groups: Vec<Wanted> = Vec::new();
        for (place, id) in places {
            let page = self.frames.state(place.parent).page.load(Ordering::Relaxed);
            let child = (place.at as u16, id);
            match groups.last_mut() {
                Some(last) if last.parent == place.parent && last.parent_page == page => {
                    if last.children.last() != Some(&child) {
                        last.children.push(child);
                    }
                }
                _ => groups.push(Wanted {
                    parent: place.parent,
                    parent_page: page,
                    passing: false,
                    children: SmallVec::from_slice(&[child]),
                }),
            }
        }
        let mut reads: Vec<Wanted> = groups
            .into_iter()
            .flat_map(|group| self.split(group, most))
            .collect();
        let readers = self.requests.queue.lock().readers;
        let Some(own) = reads.pop() else {
            return;
        };
        if readers == 0 || reads.is_empty() {
            for wanted in reads {
                self.bring(&wanted);
            }
            return self.bring(&own);
        }
        let done = Arc::new(Countdown {
            left: Mutex::new(reads.len()),
            none: Condvar::new(),
        });
        {
            let mut queue = self.requests.queue.lock();
            queue
                .requests
                .extend(reads.into_iter().map(|wanted| Request {
                    wanted,
                    done: Some(done.clone()),
                }));
        }
        self.requests.more.notify_all();
        self.bring(&own);
        // Serves queued requests, also those of other threads, until its own are done.
        while *done.left.lock() > 0 {
            let request = self.requests.queue.lock().requests.pop_front();
            let Some(request) = request else {
                break;
            };
            self.bring(&request.wanted);
        }
        let mut left = done.left.lock();
        while *left > 0 {
            done.none.wait(&mut left);
        }
    }

    /// Queues a read for which no thread waits.
    fn ask(&self, wanted: Wanted) {
        let mut queue = self.requests.queue.lock();
        if queue.readers == 0 || queue.requests.len() >= knobs::read_ahead_requests() {
            return;
        }
        queue.requests.push_back(Request { wanted, done: None });
        drop(queue);
        self.requests.more.notify_one();
    }

    /// Loads the wanted pages that are neither in memory nor being loaded.
    fn bring(&self, wanted: &Wanted) {
        let mut claims = LoadClaims {
            pool: self,
            claim: self.table.loading(),
            ids: SmallVec::new(),
        };
        for (_, id) in &wanted.children {
            if let Slot::Vacant(slot) = self.table.lock(*id).entry(*id) {
                slot.insert(claims.claim);
                claims.ids.push(*id);
            }
        }
        if claims.ids.is_empty() {
            return;
        }
        let away = self.still_away(wanted);
        let given_up: SmallVec<[u64; WITHOUT_MEMORY]> = claims
            .ids
            .iter()
            .copied()
            .filter(|id| !away.contains(id))
            .collect();
        for id in given_up {
            claims.end(id, None);
        }
        let ids: SmallVec<[PageId; WITHOUT_MEMORY]> =
            claims.ids.iter().map(|id| PageId(*id)).collect();
        for run in self.store.runs(ids.into_iter(), knobs::read_ahead_pages()) {
            self.bring_run(&run, wanted, &mut claims);
        }
    }

    fn bring_run(&self, run: &ImageRun, wanted: &Wanted, claims: &mut LoadClaims<'_>) {
        self.store.read_run(run, &mut |page, read| {
            let filled = self.fill(page.0, 0, wanted.passing, read);
            if let Err(error) = &filled {
                tracing::debug!(%error, "a page could not be read ahead");
            }
            claims.end(page.0, filled.ok());
        });
    }

    /// Returns which of the wanted pages the parent refers to by their ids.
    fn still_away(&self, wanted: &Wanted) -> SmallVec<[u64; WITHOUT_MEMORY]> {
        let mut away = SmallVec::new();
        if is_planted(PlantedFault::BringUnseen) {
            away.extend(wanted.children.iter().map(|(_, id)| *id));
            return away;
        }
        let guard = (0..knobs::read_ahead_looks()).find_map(|_| {
            let guard = SharedGuard::try_lock(self, wanted.parent);
            if guard.is_none() {
                crate::sync::spin_loop();
            }
            guard
        });
        let Some(guard) = guard else {
            return away;
        };
        // The references in a frame without a page are outdated. The parent may be in another frame by now, and its
        // child may be in memory and changed.
        let state = self.frames.state(wanted.parent);
        let page = match is_planted(PlantedFault::BringByFreedFrame) {
            false => state.holds(),
            true => Some(state.page.load(Ordering::Relaxed)),
        };
        if page != Some(wanted.parent_page) || guard.bytes()[KIND] != PageKind::Inner as u8 {
            return away;
        }
        let node = guard.node();
        for &(at, id) in &wanted.children {
            let refers =
                |at: usize| at <= node.count() && swip::child(node.child(at)) == Child::Page(id);
            // The reference is at its old place, unless the node has been split or merged.
            if refers(usize::from(at)) || (0..=node.count()).any(refers) {
                away.push(id);
            }
        }
        away
    }

    /// Ends the load claim of a page: the page is in the frame, or was not loaded.
    ///
    /// If it was not loaded, the page may have been freed, and its id given to a new page. So only an entry that is
    /// still this claim is removed.
    pub fn end_claim(&self, id: u64, claim: Entry, frame: Option<FrameId>) {
        let shard = self.table.shard(id);
        let mut entries = shard.lock();
        match frame {
            Some(frame) => entries.insert(id, Entry::Ready(frame)),
            None if entries.get(&id) == Some(&claim) => entries.remove(&id),
            None => None,
        };
        shard.notify();
    }

    /// Ends the reader threads.
    pub fn stop_readers(&self) {
        let mut queue = self.requests.queue.lock();
        queue.stop = true;
        queue.requests.clear();
        self.requests.more.notify_all();
    }
}

/// Starts the reader threads.
pub(crate) fn start_readers(
    pool: &Arc<BufferPool>,
) -> std::io::Result<Vec<crate::sync::thread::JoinHandle<()>>> {
    (0..knobs::read_ahead_threads())
        .map(|_| {
            let weak = Arc::downgrade(pool);
            pool.requests.queue.lock().readers += 1;
            crate::sync::thread::Builder::new()
                .name("peregrine-read".into())
                .spawn(move || read(&weak))
                .inspect_err(|_| pool.requests.queue.lock().readers -= 1)
        })
        .collect()
}

fn read(pool: &Weak<BufferPool>) {
    // `PoolWithThreads` joins its threads before it drops the pool.
    let Some(pool) = pool.upgrade() else {
        return;
    };
    loop {
        let request = {
            let mut queue = pool.requests.queue.lock();
            loop {
                if queue.stop {
                    return;
                }
                match queue.requests.pop_front() {
                    Some(request) => break request,
                    None => pool.requests.more.wait(&mut queue),
                }
            }
        };
        pool.bring(&request.wanted);
    }
}
