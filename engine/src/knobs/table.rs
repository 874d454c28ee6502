//! The table of knobs.

#[cfg(any(test, feature = "shaken"))]
use super::Knob;
use crate::ids::PAGE_SIZE;
use std::time::Duration;

/// Converts a knob's value to the type that its users need.
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
        /// The descriptions of all knobs.
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

    /// Threads that read ahead: as many as the reads that small devices serve at once. With fewer, fewer reads overlap.
    read_ahead_threads: usize = 8, threads, 1 => 8;
    /// Length of the read-ahead queue at which the pool drops further requests for which no thread waits.
    read_ahead_requests: usize = 256, requests, 1 => 256;
    /// Most pages that are read ahead of one cursor at a time. The pool also limits this to a 32nd of its frames.
    read_ahead_pages: usize = 32, pages, 1 => 32;
    /// Attempts of a read-ahead thread to latch the parent of the pages. If another thread holds the latch all the
    /// time, the read-ahead is dropped.
    read_ahead_looks: usize = 64, looks, 1 => 64;
    /// While the leaves of a scan are in memory, the scan requests read-ahead at one child in this many of a parent. A
    /// larger value costs less work for each leaf, and requests later.
    read_ahead_every: usize = 4, children, 1 => 4;
    /// Leaves after which a scan counts as long. From then on, leaves that were loaded ahead of it become scan victims
    /// when it reaches them.
    leaves_to_pass_through: usize = 8, leaves, 1 => 8;
    /// The evictor keeps one frame in this many free. With 1, a small pool evicts each page as soon as no thread uses
    /// it.
    free_frames_part: usize = 32, frames, 1 => 32;
    /// Least number of frames that the evictor keeps free.
    least_free_frames: usize = 4, frames, 1 => 4;
    /// Greatest number of frames that the evictor keeps free.
    most_free_frames: usize = 2_048, frames, 4 => 2_048;
    /// Most frames that the evictor makes free before it counts the free frames again. A larger value evicts more pages
    /// than are wanted, and an evicted page may be needed again.
    frames_at_once: usize = 16, frames, 1 => 16;
    /// Time that a thread without a free frame waits for one before it tries again to evict a page.
    frame_wait: Duration = 2_000, microseconds, 100 => 2_000;
    /// A descent makes frames free for its whole path once it has loaded this many pages more than the path has nodes:
    /// its pages then evict one another.
    brought_in_vain: usize = 16, pages, 0 => 16;
    /// Longest time between two checks by the evictor of how many frames are free. Threads that take frames also wake
    /// it.
    provider_poll_interval: Duration = 100_000, microseconds, 1_000 => 100_000;
    /// Pause of the evictor after it has found no page that it can evict, because all frames are in use.
    provider_all_in_use: Duration = 1_000, microseconds, 100 => 1_000;
    /// Pause of the evictor after a failed write of a page.
    provider_rest: Duration = 200_000, microseconds, 1_000 => 200_000;
    /// A search in a node with at least this many heads begins with an interpolation. In a node with fewer heads, it
    /// only halves.
    heads_to_interpolate: usize = 32, heads, 16 => 128;
    /// Shards of the table of zone maps of evicted leaves, each with a mutex. With fewer, more threads wait for one
    /// another.
    evicted_zone_map_shards: usize = 64, shards, 1 => 64;
    /// Entries of the table of zone maps of evicted leaves for each frame of the pool, of about 130 bytes each. So the
    /// table has zone maps of this many times as many leaves as the pool holds.
    evicted_zone_maps_a_frame: usize = 8, entries, 1 => 8;
    /// If a shard of the table of zone maps of evicted leaves is full, one new leaf in this many replaces an entry. The
    /// zone maps of the others are dropped.
    evicted_zone_map_turns: usize = 16, newcomers, 1 => 16;
    /// Shards of the table of mini-pages, each with a mutex. With fewer, more threads wait for one another.
    mini_page_shards: usize = 64, shards, 1 => 64;
    /// Greatest length of a mini-page. A frame would hold too few longer ones to be worth the place of a leaf.
    longest_mini_page: usize = PAGE_SIZE / 3, bytes, 256 => PAGE_SIZE / 3;
    /// Longest prefix that a node takes from its keys where its fence keys promise only a shorter one.
    longest_loose_prefix: usize = 64, bytes, 0 => 64;
    /// After at least this many inserts, each right behind the one before, a full leaf is split before the new key, as
    /// for appends.
    inserts_to_append: usize = 8, inserts, 1 => 64;
    /// A node that uses fewer bytes than this is underfull: the tree tries to merge it with a neighbour.
    merge_below: usize = PAGE_SIZE * 2 / 5, bytes, 256 => PAGE_SIZE * 2 / 5;
    /// A leaf is split where the separator is shortest, within one part in this many of its records around the middle.
    /// A smaller value gives shorter separators and less equal halves.
    split_reach: usize = 16, parts, 4 => 1 << 10;
    /// Most bytes that a merged node may use. With more, the next insert would split it again.
    most_of_merged_node: usize = PAGE_SIZE * 4 / 5, bytes, PAGE_SIZE * 2 / 5 => PAGE_SIZE * 9 / 10;
    /// Most records of a window: the part of a leaf that a cursor copies instead of the whole leaf.
    window_records: usize = 16, records, 1 => 16;
    /// Most bytes of the records of a window; each of its fence keys may have a quarter of that. For more, the cursor
    /// copies the whole leaf, which costs little more.
    window_bytes: usize = PAGE_SIZE / 3, bytes, 512 => PAGE_SIZE / 3;
    /// Shards of the page table, each with a mutex. With fewer, more threads wait for one another.
    page_table_shards: usize = 64, shards, 1 => 64;
    /// Frames that get memory for zone maps together.
    zone_map_chunk: usize = 256, frames, 1 => 256;

    /// Times that a thread checks a latch that another thread holds before it sleeps. Most latches are held for well
    /// under a microsecond.
    latch_spins: u32 = 60, looks, 0 => 60;

    /// The buffer pool gets one part in this many of the size that the options ask for, but at least its least size.
    pool_part: usize = 1, parts, 1 => 64;

    // The log

    /// Time for which the spare log segments suffice at the present pace of the log. A smaller value takes less disk
    /// space; then segments are more often created, which takes longer than the reuse of a spare.
    spare_log_time: Duration = 10_000_000, microseconds, 0 => 10_000_000;
    /// Pace of the log, in bytes a second, below which the log keeps no spare segments: a segment then lasts so long
    /// that a spare is not worth its disk space.
    log_slow_pace: f64 = 256 * 1024, bytes, 0 => 256 * 1024;
    /// Where a log segment was never written, a small write adds zeros up to a multiple of this many blocks (4 KiB). A
    /// sync then finds the blocks allocated and their state on disk unchanged, which on ext4 halves its time.
    log_blocks_ahead: u64 = 256, blocks, 1 => 256;
    /// Most blocks of 4 KiB in one write of the log. The buffer of the writing thread is as long.
    log_write_blocks: usize = 512, blocks, 1 => 512;
    /// Time in which the remembered pace of the log falls by half. A larger value keeps spare segments between bursts.
    log_pace_half_life: Duration = 2_000_000, microseconds, 10_000 => 2_000_000;
    /// If the log buffer has at least this many bytes, a thread that appends a record writes them, unless another
    /// thread is writing.
    log_write_at: usize = 1 << 20, bytes, 1 => 1 << 20;
    /// If the log buffer has at least this many bytes, a thread that appends a record waits for the thread that is
    /// writing.
    log_backpressure_at: usize = 8 << 20, bytes, 1 << 20 => 8 << 20;
    /// Longest commit delay: the time that the leader of a group commit waits for more commits. It waits at most a
    /// quarter of the time of a sync.
    longest_commit_delay: Duration = 500, microseconds, 0 => 2_000;
    /// Syncs that leaders of group commits do without a commit delay after one leader has waited in vain.
    syncs_without_wait: u32 = 16, syncs, 0 => 16;
    /// Interval at which the log's thread syncs records that no session waits for.
    log_sync_interval: Duration = 1_000_000, microseconds, 1_000 => 1_000_000;
    /// Most spare segments that the log's thread removes at a time. With more, sessions that wait for its syncs would
    /// also wait for the removal of many large files.
    spares_given_back: usize = 4, segments, 1 => 4;
    /// Bytes of the log that an opening reads at a time.
    log_read: usize = 256 * 1024, bytes, 64 => 256 * 1024;
    /// The segments of a new log have about one part in this many of the log that is written between two checkpoints.
    /// Their length is a power of two.
    log_segments: u64 = 16, segments, 16 => 256;
    /// Least length of the segments of a new log.
    least_log_segment: u64 = 1 << 20, bytes, 16 << 10 => 1 << 20;
    /// Greatest length of the segments of a new log.
    most_log_segment: u64 = 64 << 20, bytes, 1 << 20 => 64 << 20;

    // Transactions

    /// Bytes of redo that a transaction collects before it appends them to the log as a part. A larger value takes more
    /// memory for each transaction.
    redo_part: usize = 256 * 1024, bytes, 256 => 256 * 1024;
    /// Latches of the checkpoint barrier. A thread that enters takes one of them shared; a checkpoint takes all of
    /// them.
    barrier_stripes: usize = 64, stripes, 1 => 64;
    /// Shards of the lock table, each with a mutex. With fewer, more threads wait for one another.
    lock_shards: usize = 256, shards, 1 => 256;
    /// Rows that a transaction locks without writing them before ranges of keys replace the entries of further rows. An
    /// entry takes about 240 bytes. The first row always has an entry.
    rows_before_escalation: usize = 65_536, rows, 2 => 65_536;
    /// Most ranges of locked rows of a transaction in one tree and lock mode. A further row widens one of them, which
    /// then also locks the rows between.
    escalated_ranges: usize = 1_024, ranges, 1 => 1_024;
    /// Most ranges that a serializable transaction has for its searches in one tree, each of two keys and 64 bytes. A
    /// further search widens one of them, which then also locks the keys between.
    searched_ranges: usize = 65_536, ranges, 1_024 => 65_536;
    /// Shards of each table of locked ranges, each with a mutex. A tree is in one shard.
    range_shards: usize = 64, shards, 1 => 64;
    /// An undo page with at least this many used bytes takes no further record.
    undo_page_full: usize = PAGE_SIZE, bytes, 1 => PAGE_SIZE;
    /// A snapshot of at least this age is old; pruning notices it after at most twice this time. Pruning does not touch
    /// what younger snapshots see: they soon end, and pruning would move their versions for nothing.
    prune_old: Duration = 500_000, microseconds, 1 => 500_000;
    /// Least time after which pruning examines survivors again: undo records that it has kept for old snapshots.
    prune_recheck_interval: Duration = 1_000_000, microseconds, 1 => 1_000_000;
    /// Pruning does not examine survivors again that are in at most this many undo pages.
    prune_few: u64 = 16, pages, 0 => 16;
    /// Most undo pages of its stream that a transaction empties after its commit. A larger value makes commits longer.
    prune_own_pages: usize = 2, pages, 0 => 2;
    /// Like `prune_own_pages`, if the stream has more than `prune_behind` undo pages.
    prune_own_pages_behind: usize = 6, pages, 0 => 6;
    /// A transaction empties up to `prune_own_pages_behind` pages if its stream has more undo pages than this.
    prune_behind: u64 = 128, pages, 1 => 128;
    /// Most undo pages that one step of the purge thread empties in each stream.
    prune_step_pages: usize = 8, pages, 1 => 8;
    /// Undo records that a committing transaction examines for the work of purge, before it empties an undo page. A
    /// page with more is left to the purge thread.
    prune_own_marks: usize = 64, records, 1 => 64;
    /// Like `prune_own_marks`, for the purge thread. It continues with the same page in its next step.
    prune_step_marks: usize = 4096, records, 1 => 4096;
    /// Most visits of pruning to a row. It visits the row again after it has loaded an undo page or moved a record.
    prune_tries: usize = 256, tries, 1 => 256;
    /// Most versions of a row that pruning follows. If there are more, the undo page that it wants to empty stays.
    longest_pruned_chain: usize = 1 << 16, versions, 1 => 1 << 16;
    /// Undo records that purge processes in one step, and that it rolls back in one step for each transaction with a
    /// failed rollback.
    purge_step: usize = 256, records, 1 => 256;
    /// Purge summarises how transactions have ended once this many transaction numbers are above the horizon and were
    /// given out since the last time.
    purge_summarise: u64 = 16 * 1024, transactions, 1 => 16 * 1024;
    /// Pause between two steps of purge while a snapshot keeps the horizon back.
    purge_held_back: Duration = 20_000, microseconds, 100 => 20_000;
    /// Pause of purge if nothing is to be purged, unless a transaction ends meanwhile; also the pause after an error.
    purge_idle: Duration = 1_000_000, microseconds, 1_000 => 1_000_000;
    /// Transactions in one chunk of the status directory. A chunk is dropped, or becomes one number, as a whole.
    status_chunk: u64 = 8192, transactions, 64 => 8192;
    /// A summarised chunk lists up to this many aborted transactions. With more, it has a bit for each transaction.
    most_aborted_in_chunk: usize = 1024, transactions, 0 => 1024;
    /// Slots for snapshots that are allocated together. Each thread prefers one of them.
    snapshot_places: usize = 64, places, 1 => 64;

    // Trees

    /// Places at which an estimate samples how many records a tree, or a part of it, has.
    density_samples: usize = 5, places, 1 => 5;
    /// Attempts to estimate the records of a range while other threads split or merge nodes of its two paths. After
    /// that, the whole tree is estimated.
    estimate_attempts: usize = 4, attempts, 1 => 8;
    /// Bytes that freezing must free in a full leaf so that the leaf is not split. With less, the leaf would be frozen
    /// again and again for a few bytes each time.
    frozen_enough: usize = 64, bytes, 1 => 1024;

    // The data file

    /// Units (KiB) of chunks of the place table that a checkpoint gathers before it writes them together.
    table_chunk_group: u64 = 256, units, 1 => 256;
    /// After this many checkpoints in a row that did not make the data file shorter, none starts for that alone.
    packing_attempts: u32 = 2, attempts, 1 => 2;
    /// After a checkpoint, images of up to one part in this many of the data file move down, so that the file can
    /// become shorter.
    moved_part: u64 = 16, parts, 1 => 16;
    /// Least value of the limit that `moved_part` gives, in units (KiB): little compared with what a checkpoint writes.
    least_moved: u64 = 8 << 10, units, 17 => 8 << 10;
    /// Greatest value of the limit that `moved_part` gives, in units (KiB).
    most_moved: u64 = 64 << 10, units, 8 << 10 => 64 << 10;
    /// One call reads two images with at most this many units (KiB) between them: that costs less than another call.
    read_gap: u64 = 24, units, 0 => 24;
    /// Most units (KiB) that one call reads. With more than 128 KiB, devices read hardly more a second.
    read_units: u64 = 128, units, 17 => 128;
    /// Buffers for reads of several images that are kept for the next such reads. A read that finds none allocates a
    /// buffer.
    read_buffers_kept: usize = 8, buffers, 0 => 8;
    /// Units (KiB) by which the data file grows at a time. A larger value keeps images that are written together closer
    /// together.
    space_run: u64 = 512, units, 64 => 512;
    /// A free extent of the data file of at least this many units (KiB) takes several images that are written together.
    /// A shorter one takes only single images.
    shortest_run: u64 = 64, units, 17 => 64;
    /// A free tail of the data file with fewer units (KiB) than this is not worth a change of the length of the file.
    shortest_tail: u64 = 1024, units, 1 => 1024;
    /// Most units (KiB) of the data file that stay out of use because a write there has failed. Beyond that the oldest
    /// are used again; the last such place stays out of use in any case.
    most_refused: u64 = 4 << 10, units, 0 => 4 << 10;
    /// The data file has space for pages that become dirty before the next check: for one frame in this many.
    room_ahead_part: u64 = 32, frames, 1 => 32;
    /// Least value of the space that `room_ahead_part` gives, in units (KiB). It must suffice for the pages that
    /// running operations change at the same moment.
    least_room_ahead: u64 = 3 << 10, units, 2 << 10 => 3 << 10;
    /// Greatest value of the space that `room_ahead_part` gives, in units (KiB).
    most_room_ahead: u64 = 256 << 10, units, 3 << 10 => 256 << 10;
    /// One part in this many of the space that `room_ahead_part` gives is given out page by page. The rest is for pages
    /// that are not counted (those of running operations and of rollbacks), and for extents that are being filled.
    room_counted_part: u64 = 3, parts, 3 => 16;

    // Checkpoints

    /// Longest time between two checkpoints, whatever the options ask for, if anything was logged (default: 100 years).
    longest_checkpoint_interval: Duration = 3_155_760_000_000_000, microseconds, 1_000 => 3_155_760_000_000_000;

    /// Interval at which the checkpointer checks the length of the log and the space on the disk.
    checkpoint_poll_interval: Duration = 100_000, microseconds, 1_000 => 100_000;
    /// Least time between two checkpoints that only make the data file shorter. They start while the file is much
    /// longer than needed and less than `little_log` is logged: sessions that write much will need the space again.
    checkpoint_to_shrink: Duration = 5_000_000, microseconds, 10_000 => 5_000_000;
    /// Bytes of log below which little was logged.
    little_log: u64 = 1 << 20, bytes, 4096 => 1 << 20;
    /// Bytes of log after which the checkpointer estimates again how long an opening would take.
    replay_reckoned_every: u64 = 1 << 20, bytes, 4096 => 1 << 20;
    /// An opening measures the pace of replay if it had as much to do as with this many bytes of log. In a shorter one,
    /// opening files takes most of the time.
    replay_told_from: u64 = 4 << 20, bytes, 1 => 4 << 20;
    /// If a segment's length or more was logged since the last checkpoint, and then less than `little_log` in this
    /// time, a checkpoint starts. Recovery becomes short, and the log's space can be given back.
    checkpoint_idle_after: Duration = 5_000_000, microseconds, 10_000 => 5_000_000;
    /// Least time between two checkpoints while the disk is full. Each frees the log before it, and the images that it
    /// replaces.
    checkpoint_while_full: Duration = 500_000, microseconds, 10_000 => 500_000;
    /// Pause after a failed checkpoint before the checkpointer starts another by itself.
    checkpoint_retry: Duration = 2_000_000, microseconds, 10_000 => 2_000_000;
    /// Pages that a checkpoint writes between two syncs of the data file: 32 MiB before compression. With more, its
    /// last sync would have much to write, and syncs of the log would wait for it.
    checkpoint_sync_pages: u64 = 2048, pages, 1 => 2048;
    /// Pages that a checkpoint writes before it checks whether a sync is due.
    checkpoint_pages_a_look: u64 = 64, pages, 1 => 64;

    // Tables

    /// Most rows of a batch, if the leaves of the batch before were all in memory.
    batch_rows: usize = 64, rows, 1 => 64;
    /// Most rows of a batch, if the batch before had to load leaves. In a larger batch more rows are in the same
    /// leaves, and more leaves are read at once.
    batch_rows_away: usize = 512, rows, 1 => 512;
    /// Rows of a batch for which the engine locates the leaves before it reads the first of these rows, so that waits
    /// for memory overlap.
    batch_leaves_ahead: usize = 16, rows, 1 => 16;
    /// Longest row payload that stays whole in its leaf. Of a longer one, columns are stored outside.
    in_row_limit: usize = 3500, bytes, 64 => 3500;
    /// Shortest column value that is stored outside. The reference to a shorter one would take nearly as many bytes.
    worth_moving: usize = 64, bytes, 32 => 64;
    /// Chunks of a large value that are written in one stay inside the checkpoint barrier. A larger value makes a
    /// checkpoint wait longer.
    large_chunks_a_stay: usize = 64, chunks, 1 => 64;
    /// If at least this many tables are open, the engine closes tables that no transaction uses.
    most_tables_open: usize = 1024, tables, 1 => 1024;
    /// Tables that each opening of a table checks for whether they can be closed, if `most_tables_open` are open.
    tables_looked_at: usize = 8, tables, 1 => 8;
    /// Added for each row prefix that was too short; each short one that was long enough subtracts 1. From four times
    /// this value on, the short prefix is not tried; from eight times on, neither is the longer one.
    prefix_too_short: u32 = 16, points, 1 => 16;
    /// Leaves from the beginning of an index that statistics read for each key prefix.
    statistics_first_leaves: usize = 256, leaves, 1 => 256;
    /// Pieces that statistics sample of the index behind its first leaves.
    statistics_pieces: usize = 8, pieces, 1 => 8;
    /// Leaves that statistics read of each piece.
    statistics_piece_leaves: usize = 8, leaves, 1 => 8;
    /// Time after which the sizes of a table are computed again.
    sizes_last: Duration = 10_000_000, microseconds, 1_000 => 10_000_000;
    /// A transaction object keeps the states of up to this many tables for its next transaction. If it has used more
    /// tables, it keeps none.
    states_remembered: usize = 16, tables, 0 => 16;
    /// Bytes of the server's records that one call fills. More would not fit into the processor's first cache.
    row_batch_bytes: usize = 16 * 1024, bytes, 1 => 16 * 1024;
    /// Rows of a join's outer table that are read before the engine looks up those of the inner table.
    join_batch_rows: usize = 256, rows, 2 => 256;
    /// An INSERT of at least this many rows, or of an unknown number of rows, defers index entries.
    bulk_insert_rows: u64 = 100, rows, 1 => 100;
    /// After this many times that a transaction has found another one using a table, the users of the table are counted
    /// in stripes.
    users_meetings: u32 = 32, meetings, 0 => 32;
    /// Stripes in which the users of a table are counted, each in its own cache line.
    users_stripes: usize = 16, places, 1 => 16;
    /// Leaves of a scan that one thread reads before helpers start: 0.1 to 0.3 ms of work, more than the start of a
    /// thread takes.
    leaves_alone: usize = 128, leaves, 1 => 128;
    /// Parts of a scan for each thread. With more, all threads end at about the same time, even if one waits for its
    /// processor; each part costs one more descent.
    parts_a_thread: usize = 32, parts, 1 => 32;
    /// Leaves of a scan between two checks of whether to stop.
    leaves_a_look: u32 = 64, leaves, 1 => 64;
    /// Most leaves of which one scan makes mini-pages. They are for ranges of a few leaves that are read again and
    /// again; those of a longer scan would evict the mini-pages of others.
    mini_pages_kept: usize = 8, leaves, 0 => 8;
    /// Rows of a scan between two checks of whether the transaction was killed.
    rows_a_look: u32 = 256, rows, 1 => 256;
    /// Deferred entries of all transactions may take one part in this many of the pool's size, in memory of their own.
    /// Beyond that, a transaction puts its entries into the indexes.
    deferred_part_of_pool: usize = 8, parts, 8 => 1 << 20;
    /// Least value of the limit that `deferred_part_of_pool` gives.
    deferred_least: usize = 1 << 20, bytes, 256 => 1 << 20;
    /// Greatest value of the limit that `deferred_part_of_pool` gives.
    deferred_most: usize = 1 << 30, bytes, 1 << 20 => 1 << 30;
    /// Steps in which a transaction adds the deferred bytes of a table to the common count.
    deferred_step: usize = 64 << 10, bytes, 64 => 64 << 10;
    /// Deferred entries that are put into an index between two checks of whether the transaction was killed.
    entries_a_look: usize = 256, entries, 1 => 256;

    // Memory

    /// Longest buffer for large values that is kept at the end of a statement; a longer one is freed.
    kept_value_memory: usize = 64 << 10, bytes, 0 => 64 << 10;

    /// A buffer that grows by at least this many bytes gets only the memory that it needs. A buffer longer than this is
    /// freed after use, so callers that keep a buffer from row to row keep no longer one.
    large_buffer: usize = 64 << 10, bytes, 64 => 64 << 10;
}
