//! The table of knobs.

#[cfg(any(test, feature = "shaken"))]
use super::Knob;
use crate::ids::PAGE_SIZE;
use std::time::Duration;

/// A knob's value as what it is used for.
macro_rules! typed {
    (Duration, $value:expr) => {
        Duration::from_micros($value)
    };
    ($type:tt, $value:expr) => {
        $value as $type
    };
}

macro_rules! knobs {
    ($($(#[doc = $why:literal])+ $name:ident: $type:tt = $default:expr, $unit:ident, $least:expr => $most:expr;)+) => {
        /// What is known of all knobs.
        #[cfg(any(test, feature = "shaken"))]
        pub(super) const TABLE: &[Knob] = &[$(Knob {
            name: stringify!($name),
            unit: stringify!($unit),
            default: ($default) as u64,
            least: ($least) as u64,
            most: ($most) as u64,
            why: concat!($($why),+),
        }),+];

        $(
            $(#[doc = $why])+
            #[cfg(not(feature = "shaken"))]
            #[inline(always)]
            #[must_use]
            pub const fn $name() -> $type {
                typed!($type, $default)
            }

            $(#[doc = $why])+
            #[cfg(feature = "shaken")]
            #[must_use]
            pub fn $name() -> $type {
                typed!($type, shaken::value(shaken::Index::$name))
            }
        )+

        #[cfg(feature = "shaken")]
        mod shaken {
            use std::sync::OnceLock;

            #[allow(non_camel_case_types)]
            pub enum Index {
                $($name),+
            }

            pub fn value(knob: Index) -> u64 {
                static DRAWN: OnceLock<Vec<u64>> = OnceLock::new();
                DRAWN.get_or_init(|| crate::knobs::draw::drawn(super::TABLE))[knob as usize]
            }
        }
    };
}

knobs! {
    // Pages, frames and nodes

    /// Threads that read ahead: as many reads as small devices do at once.
    read_ahead_threads: usize = 8, threads, 1 => 8;
    /// Read-ahead requests that wait at most; more are dropped, since nobody waits for them.
    read_ahead_requests: usize = 256, requests, 1 => 256;
    /// The most pages that are brought ahead of one cursor at a time.
    read_ahead_pages: usize = 32, pages, 1 => 32;
    /// Looks at a parent that somebody has latched, before a read ahead is given up.
    read_ahead_looks: usize = 64, looks, 1 => 64;
    /// Of the children in memory that a cursor passes, each so manieth makes it ask for more.
    read_ahead_every: usize = 4, children, 1 => 4;
    /// Leaves after which a cursor counts as one that passes through.
    leaves_to_pass_through: usize = 8, leaves, 1 => 8;
    /// One frame in so many is kept free. (All: what is not in use leaves memory at once.)
    free_frames_part: usize = 32, frames, 1 => 32;
    /// But at least so many.
    least_free_frames: usize = 4, frames, 1 => 4;
    /// And at most so many.
    most_free_frames: usize = 2_048, frames, 4 => 2_048;
    /// So many are made free at once, and no more than are wanted: what goes may be needed again.
    frames_at_once: usize = 16, frames, 1 => 16;
    /// A thread that finds no frame waits for this long, and tries again.
    frame_wait: Duration = 2_000, microseconds, 100 => 2_000;
    /// A descent that has brought so many pages more than its way has nodes makes frames free for all of them at once.
    brought_in_vain: usize = 16, pages, 0 => 16;
    /// The thread that provides free frames looks for itself at least this often.
    provider_poll_interval: Duration = 100_000, microseconds, 1_000 => 100_000;
    /// Where all frames are in use the provider of free frames lets this long pass.
    provider_all_in_use: Duration = 1_000, microseconds, 100 => 1_000;
    /// After a failed write the provider of free frames lets this long pass.
    provider_rest: Duration = 200_000, microseconds, 1_000 => 200_000;
    /// In a node with this many heads or more a search interpolates first; with fewer it only halves.
    heads_to_interpolate: usize = 32, heads, 16 => 128;
    /// Parts of the table of zone maps of leaves that have left memory, each with a mutex.
    evicted_zone_map_shards: usize = 64, shards, 1 => 64;
    /// Entries of that table for each frame of the pool, some 130 bytes each: so many times more leaves than
    /// it holds have one.
    evicted_zone_maps_a_frame: usize = 8, entries, 1 => 8;
    /// Where that table has no room, each so manieth newcomer takes the place of another.
    evicted_zone_map_turns: usize = 16, newcomers, 1 => 16;
    /// Parts of the table of mini-pages, each with a mutex.
    mini_page_shards: usize = 64, shards, 1 => 64;
    /// The longest mini-page. Of longer ones too few have room in place of a leaf.
    longest_mini_page: usize = PAGE_SIZE / 3, bytes, 256 => PAGE_SIZE / 3;
    /// Longest prefix that a node keeps beyond what its fences promise.
    longest_loose_prefix: usize = 64, bytes, 0 => 64;
    /// As many inserts in a row behind one another make an append.
    inserts_to_append: usize = 8, inserts, 1 => 64;
    /// A node is worth merging when it takes less than this.
    merge_below: usize = PAGE_SIZE * 2 / 5, bytes, 256 => PAGE_SIZE * 2 / 5;
    /// A node is split where the separator gets shortest, up to one part in so many of its records from the middle.
    split_reach: usize = 16, parts, 4 => 1 << 10;
    /// A merge must leave some room, lest the next insert splits again.
    most_of_merged_node: usize = PAGE_SIZE * 4 / 5, bytes, PAGE_SIZE * 2 / 5 => PAGE_SIZE * 9 / 10;
    /// Most records of the window of a leaf that is copied instead of the whole.
    window_records: usize = 16, records, 1 => 16;
    /// Most bytes of a window's records, and of either fence. Beyond, a copy of the whole leaf costs little
    /// more.
    window_bytes: usize = PAGE_SIZE / 3, bytes, 512 => PAGE_SIZE / 3;
    /// Parts of the table of pages in memory, each with a mutex.
    page_table_shards: usize = 64, shards, 1 => 64;
    /// Frames whose memory for zone maps comes together.
    zone_map_chunk: usize = 256, frames, 1 => 256;

    /// Looks at a latch that somebody holds before a thread goes to sleep. Latches are held for well under a
    /// microsecond, mostly.
    latch_spins: u32 = 60, looks, 0 => 60;

    /// The buffer pool gets one part in so many of what was asked for, and its least size at least.
    pool_part: usize = 1, parts, 1 => 64;

    // The log

    /// So much of the log's future is kept in spare segments.
    spare_log_time: Duration = 10_000_000, microseconds, 0 => 10_000_000;
    /// A pace of the log in bytes a second below which a segment lasts so long that a spare is not worth its space.
    log_slow_pace: f64 = 256 * 1024, bytes, 0 => 256 * 1024;
    /// Blocks (4 KiB) written ahead with zeros where a log segment was never written: a sync then finds the blocks
    /// allocated and their state on disk unchanged, which on ext4 halves its time.
    log_blocks_ahead: u64 = 256, blocks, 1 => 256;
    /// Most blocks of one write of the log: so much the writer's own buffer takes.
    log_write_blocks: usize = 512, blocks, 1 => 512;
    /// The log's pace is forgotten by half in this time: bursts that follow one another find their spares.
    log_pace_half_life: Duration = 2_000_000, microseconds, 10_000 => 2_000_000;
    /// Buffered bytes of log beyond which an appender writes.
    log_write_at: usize = 1 << 20, bytes, 1 => 1 << 20;
    /// Buffered bytes of log beyond which an appender waits for the writer.
    log_backpressure_at: usize = 8 << 20, bytes, 1 << 20 => 8 << 20;
    /// The longest that the leader of a group commit waits for more commits.
    longest_commit_delay: Duration = 500, microseconds, 0 => 2_000;
    /// How many syncs a leader does without waiting after it has waited in vain.
    syncs_without_wait: u32 = 16, syncs, 0 => 16;
    /// How often the log's thread makes durable what nobody waits for.
    log_sync_interval: Duration = 1_000_000, microseconds, 1_000 => 1_000_000;
    /// Spare segments that one look gives back to the file system: who waits for a sync is not to wait for
    /// the removal of many large files.
    spares_given_back: usize = 4, segments, 1 => 4;
    /// Bytes of log that are read at a time.
    log_read: usize = 256 * 1024, bytes, 64 => 256 * 1024;
    /// A new log is laid out in segments of about one part in so many of what comes together between two checkpoints.
    log_segments: u64 = 16, segments, 16 => 256;
    /// But of at least so many bytes.
    least_log_segment: u64 = 1 << 20, bytes, 16 << 10 => 1 << 20;
    /// And of at most so many.
    most_log_segment: u64 = 64 << 20, bytes, 1 << 20 => 64 << 20;

    // Transactions

    /// Redo that a transaction keeps to itself before a part of it goes to the log.
    redo_part: usize = 256 * 1024, bytes, 256 => 256 * 1024;
    /// Latches of the barrier: a thread that enters takes one of them shared.
    barrier_stripes: usize = 64, stripes, 1 => 64;
    /// Parts of the lock table, each with a mutex.
    lock_shards: usize = 256, shards, 1 => 256;
    /// Rows that a transaction locks without writing them, each with an entry of some 240 bytes, before ranges stand for
    /// further ones. The first is never one of these.
    rows_before_escalation: usize = 65_536, rows, 2 => 65_536;
    /// So many ranges of such rows a transaction has in a tree. Then each row more widens one of them.
    escalated_ranges: usize = 1_024, ranges, 1 => 1_024;
    /// So many ranges that it has searched a serializable transaction has in a tree, each of two keys and 64 bytes. Then each
    /// further one widens another.
    searched_ranges: usize = 65_536, ranges, 1_024 => 65_536;
    /// Parts of the table of locked ranges, each with a mutex.
    range_shards: usize = 64, shards, 1 => 64;
    /// An undo page takes no more once so many bytes of it are used.
    undo_page_full: usize = PAGE_SIZE, bytes, 1 => PAGE_SIZE;
    /// A snapshot that has stood for this long (and at most twice this) is old. What the others see is not pruned
    /// yet: they will soon be gone, and their versions would be moved for nothing.
    prune_old: Duration = 500_000, microseconds, 1 => 500_000;
    /// Survivors are looked through again at most this often.
    prune_recheck_interval: Duration = 1_000_000, microseconds, 1 => 1_000_000;
    /// Survivors in so few undo pages are not looked through again.
    prune_few: u64 = 16, pages, 0 => 16;
    /// Undo pages of its own stream that a committing transaction empties.
    prune_own_pages: usize = 2, pages, 0 => 2;
    /// The same, where its stream has many.
    prune_own_pages_behind: usize = 6, pages, 0 => 6;
    /// With so many undo pages a stream has many.
    prune_behind: u64 = 128, pages, 1 => 128;
    /// Undo pages that a step of purge empties, of each stream.
    prune_step_pages: usize = 8, pages, 1 => 8;
    /// Undo records that a committing transaction looks at for what purge has to do.
    prune_own_marks: usize = 64, records, 1 => 64;
    /// Undo records that a step of purge looks at for what it has to do.
    prune_step_marks: usize = 4096, records, 1 => 4096;
    /// How often a visit of pruning is tried again when undo pages had to be read, or records were moved.
    prune_tries: usize = 256, tries, 1 => 256;
    /// A chain of versions longer than this is left as it is by pruning.
    longest_pruned_chain: usize = 1 << 16, versions, 1 => 1 << 16;
    /// Undo records looked at in one step of purge.
    purge_step: usize = 256, records, 1 => 256;
    /// Transactions ended since the last time that make summarising their ends worth a look.
    purge_summarise: u64 = 16 * 1024, transactions, 1 => 16 * 1024;
    /// Pause of purge between looks while a snapshot holds the horizon back.
    purge_held_back: Duration = 20_000, microseconds, 100 => 20_000;
    /// Pause of purge when there is nothing to do, unless a transaction ends meanwhile; also after an error.
    purge_idle: Duration = 1_000_000, microseconds, 1_000 => 1_000_000;
    /// Transactions whose states stand in one chunk. A chunk goes, or becomes one number, as a whole.
    status_chunk: u64 = 8192, transactions, 64 => 8192;
    /// A chunk of transactions' states with more aborted ones than this has a bit for each transaction instead.
    most_aborted_in_chunk: usize = 1024, transactions, 0 => 1024;
    /// Places for snapshots that come into memory at once, and among which a thread has its first choice.
    snapshot_places: usize = 64, places, 1 => 64;

    // Trees

    /// In how many places the density of a tree, or of a part of it, is looked at.
    density_samples: usize = 5, places, 1 => 5;
    /// How often a range is estimated anew while other threads split or merge nodes of its two paths; after that the
    /// whole tree is estimated.
    estimate_attempts: usize = 4, attempts, 1 => 8;
    /// Freezing a full leaf must free this much to stand in for a split; else the leaf would be frozen again
    /// and again for a few bytes each time.
    frozen_enough: usize = 64, bytes, 1 => 1024;

    // The data file

    /// Units (KiB) of the page table's chunks that are written together.
    table_chunk_group: u64 = 256, units, 1 => 256;
    /// After so many checkpoints that could not make the data file shorter none begins for that alone.
    packing_attempts: u32 = 2, attempts, 1 => 2;
    /// One part in so many of the data file is moved after a checkpoint, to make the file shorter.
    moved_part: u64 = 16, parts, 1 => 16;
    /// But at least so many units (KiB), little beside what a checkpoint writes.
    least_moved: u64 = 8 << 10, units, 17 => 8 << 10;
    /// And at most so many units (KiB).
    most_moved: u64 = 64 << 10, units, 8 << 10 => 64 << 10;
    /// Units (KiB) between two images that are read together with them: these cost less to read than another
    /// call.
    read_gap: u64 = 24, units, 0 => 24;
    /// The most units (KiB) that one call reads: beyond 128 KiB devices bring hardly more a second.
    read_units: u64 = 128, units, 17 => 128;
    /// Buffers for such reads that are kept; one more is made for whoever finds none.
    read_buffers_kept: usize = 8, buffers, 0 => 8;
    /// The data file grows by so much at a time (in KiB), so that what is written together lies together.
    space_run: u64 = 512, units, 64 => 512;
    /// A free extent of the data file shorter than this (in KiB) is left to single images.
    shortest_run: u64 = 64, units, 17 => 64;
    /// A free tail of the data file shorter than this (in KiB) is not worth a change of the file's length.
    shortest_tail: u64 = 1024, units, 1 => 1024;
    /// The most units (KiB) of the data file that stay out of use because a write there has failed; the last such place
    /// does in any case.
    most_refused: u64 = 4 << 10, units, 0 => 4 << 10;
    /// Room in the data file for pages that become newer before anybody looks again: for one frame in so many.
    room_ahead_part: u64 = 32, frames, 1 => 32;
    /// But at least so many units (KiB). What operations that have begun change at the same moment must fit.
    least_room_ahead: u64 = 3 << 10, units, 2 << 10 => 3 << 10;
    /// And at most so many units (KiB).
    most_room_ahead: u64 = 256 << 10, units, 3 << 10 => 256 << 10;
    /// One part in so many of that room is given out page by page. The rest is for what is not counted: operations that
    /// have begun, rollbacks, and stretches of the file that somebody is filling.
    room_counted_part: u64 = 3, parts, 3 => 16;

    // Checkpoints

    /// A checkpoint starts at least this often, whatever was asked for, if anything was logged (default: 100 years).
    longest_checkpoint_interval: Duration = 3_155_760_000_000_000, microseconds, 1_000 => 3_155_760_000_000_000;

    /// How often the checkpointer looks at the log's length, and at the disk's room.
    checkpoint_poll_interval: Duration = 100_000, microseconds, 1_000 => 100_000;
    /// While the data file is much longer than it need be, and little is logged, a checkpoint starts this
    /// often, until the file is short. (Who writes much will want the space again.)
    checkpoint_to_shrink: Duration = 5_000_000, microseconds, 10_000 => 5_000_000;
    /// Less than this counts as little log.
    little_log: u64 = 1 << 20, bytes, 4096 => 1 << 20;
    /// Each time that so much was logged, it is reckoned how long replay would take.
    replay_reckoned_every: u64 = 1 << 20, bytes, 4096 => 1 << 20;
    /// How fast replay is, is told by a log of so much or more: at a shorter one, opening files takes most of the time.
    replay_told_from: u64 = 4 << 20, bytes, 1 => 4 << 20;
    /// When a segment's worth of log or more has come together, and then little in this time, a checkpoint
    /// starts: there is time for it, recovery gets short, and the log's space can be given back.
    checkpoint_idle_after: Duration = 5_000_000, microseconds, 10_000 => 5_000_000;
    /// While the disk is full, a checkpoint starts this often: it frees the log, and what it replaces.
    checkpoint_while_full: Duration = 500_000, microseconds, 10_000 => 500_000;
    /// How long the checkpointer waits after a failed checkpoint before it tries again by itself.
    checkpoint_retry: Duration = 2_000_000, microseconds, 10_000 => 2_000_000;
    /// Pages written between two syncs of the data file: about 16 MiB, so that the last sync, and the log's
    /// syncs beside it, don't wait for everything at once.
    checkpoint_sync_pages: u64 = 2048, pages, 1 => 2048;
    /// Pages written between two looks at whether to go on, and at whether to sync.
    checkpoint_pages_a_look: u64 = 64, pages, 1 => 64;

    // Tables

    /// Most rows of a batch whose leaves are in memory.
    batch_rows: usize = 64, rows, 1 => 64;
    /// Most rows of a batch whose leaves must be read: more of them lie together then, and are read at once.
    batch_rows_away: usize = 512, rows, 1 => 512;
    /// Rows whose leaves are found before the first of them is read.
    batch_leaves_ahead: usize = 16, rows, 1 => 16;
    /// A row payload beyond this many bytes sends columns outside.
    in_row_limit: usize = 3500, bytes, 64 => 3500;
    /// A column shorter than this stays inside: its reference would take nearly as much.
    worth_moving: usize = 64, bytes, 32 => 64;
    /// Chunks of a large value that are written in one stay inside the barrier.
    large_chunks_a_stay: usize = 64, chunks, 1 => 64;
    /// So many tables may be open that nobody has.
    most_tables_open: usize = 1024, tables, 1 => 1024;
    /// Where more are open, who opens one looks at so many whether they can be closed.
    tables_looked_at: usize = 8, tables, 1 => 8;
    /// Added for each row prefix that was too short; each short one that was long enough subtracts 1. At four and eight times this, the
    /// two lengths of prefixes are no longer tried.
    prefix_too_short: u32 = 16, points, 1 => 16;
    /// Leaves that statistics read from the beginning of an index, per key prefix.
    statistics_first_leaves: usize = 256, leaves, 1 => 256;
    /// Pieces of an index that are sampled when that did not reach its end.
    statistics_pieces: usize = 8, pieces, 1 => 8;
    /// Leaves of such a piece.
    statistics_piece_leaves: usize = 8, leaves, 1 => 8;
    /// A table's sizes are counted anew after this long.
    sizes_last: Duration = 10_000_000, microseconds, 1_000 => 10_000_000;
    /// Tables whose states a transaction object keeps at hand from one transaction to the next.
    states_remembered: usize = 16, tables, 0 => 16;
    /// The server's records that are filled in one call take so many bytes: more would leave the processor's first
    /// cache.
    row_batch_bytes: usize = 16 * 1024, bytes, 1 => 16 * 1024;
    /// Rows of a join's outer table that are read before those of the inner one are looked up.
    join_batch_rows: usize = 256, rows, 2 => 256;
    /// An INSERT of so many rows, or of nobody knows how many, defers index entries.
    bulk_insert_rows: u64 = 100, rows, 1 => 100;
    /// After so many meetings of two a table's users are counted apart.
    users_meetings: u32 = 32, meetings, 0 => 32;
    /// Places at which a table's users are counted apart, each a line of the cache.
    users_stripes: usize = 16, places, 1 => 16;
    /// Leaves that one thread reads before helpers come: some 0.1 to 0.3 ms of work, more than it takes to
    /// start a thread.
    leaves_alone: usize = 128, leaves, 1 => 128;
    /// Parts of a scan for each thread, so that all end at about the same time, also where one is kept
    /// waiting for its processor. A part costs one more descent.
    parts_a_thread: usize = 32, parts, 1 => 32;
    /// Leaves of a scan between two looks at whether to stop.
    leaves_a_look: u32 = 64, leaves, 1 => 64;
    /// The most leaves that a scan leaves mini-pages of. It is for ranges of a few leaves that are asked
    /// for again and again; a longer scan would push others' copies out.
    mini_pages_kept: usize = 8, leaves, 0 => 8;
    /// Rows of a scan between two looks at whether the transaction has been killed.
    rows_a_look: u32 = 256, rows, 1 => 256;
    /// Entries that all transactions defer take up to one part in so many of the pool's size, in memory
    /// of their own.
    deferred_part_of_pool: usize = 8, parts, 8 => 1 << 20;
    /// But at least so many bytes.
    deferred_least: usize = 1 << 20, bytes, 256 => 1 << 20;
    /// And at most so many.
    deferred_most: usize = 1 << 30, bytes, 1 << 20 => 1 << 30;
    /// Those of a transaction and table are counted with those of all in steps of so many bytes.
    deferred_step: usize = 64 << 10, bytes, 64 => 64 << 10;
    /// Deferred entries between two looks at whether the transaction was killed.
    entries_a_look: usize = 256, entries, 1 => 256;

    // Memory

    /// Memory for large values above this many bytes is given back at the end of a statement.
    kept_value_memory: usize = 64 << 10, bytes, 0 => 64 << 10;

    /// Bytes from which on a buffer is made just as long as it must be, and given back after use: whoever
    /// keeps buffers from row to row keeps none beyond this.
    large_buffer: usize = 64 << 10, bytes, 64 => 64 << 10;
}
