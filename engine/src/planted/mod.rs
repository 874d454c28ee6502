//! Faults that a test build can have, one at a time, for the proofs to find.
//!
//! A proof that finds nothing proves nothing until it has found something. With the cargo feature `broken`, `plant` or
//! the environment variable `PEREGRINE_PLANTED` makes the process leave one step out. Without the feature, as in every
//! build that is shipped, [`is_planted`] is the constant `false`, and the compiler removes the faults.
//!
//! `MENDED` are faults that the engine once had: for each, a test fails (`verify/answers`). The proofs on a simulated
//! disk find those of `DURABILITY` (`make catch-planted`). Schedules of the whole engine find those of `SHAKEN`
//! (`verify/shaken`). Models of a few threads find those of `MODELLED` (the package `peregrine-loom`).

/// Declares the faults in lists, by the proof that finds them: one enum of all faults, and a constant for each list.
macro_rules! faults {
    ($($(#[$about:meta])+ $list:ident { $($(#[$what:meta])+ $fault:ident,)+ })+) => {
        /// A step that can be left out, or done wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PlantedFault {
            $($($(#[$what])+ $fault,)+)+
        }

        #[cfg(feature = "broken")]
        impl PlantedFault {
            $($(#[$about])+ pub const $list: &[PlantedFault] = &[$(PlantedFault::$fault),+];)+

            /// All lists.
            const ALL: &[&[PlantedFault]] = &[$(PlantedFault::$list),+];
        }
    };
}

faults! {
    /// Faults that a test of the engine finds.
    ///
    /// The environment variable uses these names.
    MENDED {
        /// A scan of leaves that has come to the tree's end returns the beginning of the last part as its rest.
        RestOfEndedScan,
        /// The rollback of one refused row also removes deferred index entries of earlier rows.
        LateSavepoint,
        /// A rollback to a savepoint does not lock keys whose insertion it undoes, although the log has that insertion.
        UnlockedTakenBack,
        /// Purge drops the oldest end of a stream, even if another end has been merged with it since.
        PurgeJoinedEnd,
        /// Purge drops the oldest end of a stream, even if pruning has replaced it.
        PurgeReplacedEnd,
        /// Purge and pruning find the end whose head they replace by its transaction number alone, and pruning does not
        /// seal the survivors' stream before a pass.
        LosePurgeNotes,
        /// A pass over survivors reads its end again at each step.
        EndlessSecondLook,
        /// A transaction goes on after a rollback that could not undo a part of it.
        ForgetHalfUndone,
        /// The log gets changes of a transaction after a rollback that could not undo a part of it.
        AppendHalfUndone,
        /// A table that could not be opened counts as dropped.
        UnopenedIsDropped,
        /// Recovery goes on storing changes of a quarantined table that has been truncated since.
        QuarantinedForGood,
        /// The rows of a commit are counted after the barrier was left.
        CountOutsideBarrier,
        /// A check of a rule over many rows keeps no other transaction from the same check.
        UnguardedCheck,
        /// A check of a rule over many rows reads its snapshot, and does not wait for writers.
        SnapshotCheck,
        /// A table can't be dropped if the transaction that drops it has used it.
        OwnUseIsBusy,
        /// A table of one session can't be dropped if a prepared and detached transaction of the session has used it.
        PreparedKeepsOwnTables,
        /// The drop of a table that a transaction has used goes by name, even if another table has the name by then.
        DropByNameAlone,
        /// A rollback undoes the rows with which a table of one session is filled while it is created.
        FillIsUndone,
        /// The log gets rows of tables of one session.
        LogOwnRows,
        /// Replay repeats changes of tables that the opening drops.
        ReplayEndedTables,
        /// Replay treats a change of a table that its own transaction has dropped as damage.
        DroppedIsDamage,
        /// Roots of trees are never evicted.
        PinnedRoots,
        /// Tables that were opened stay open.
        TablesStayOpen,
        /// The data file keeps no space for the next checkpoint.
        NoRoomKept,
        /// Eviction reads a frame that now holds mini-pages as if it still held a node.
        ParseReusedFrame,
        /// Read-ahead follows the references of a freed frame.
        BringByFreedFrame,
        /// A search for a root waits for the latch of the root's last frame, whatever the frame holds now.
        WaitByRootHint,
        /// Versions that pruning moves to the survivors get an end there only after the whole page is done.
        UnendedSurvivors,
        /// Undo pages that could not be freed are forgotten.
        LoseUnfreed,
        /// Pruning does not announce that it is about to read a page.
        PruneUnseen,
        /// The second snapshot of a transaction stays registered at its end.
        KeepSecondSnapshot,
        /// Ends are summarised even if the horizon lies between them.
        SummariseOverHorizon,
        /// A row that gets too long moves values outside that are stored there already, and of which it has only a
        /// part.
        MoveKeptValues,
        /// A walk that has ended counts its last record as the current one.
        StandAtEnd,
        /// A cursor that reads whole rows returns no strings of its index.
        RowsWithoutTexts,
        /// A cursor that finds no entry forgets its place among them.
        ForgetPlace,
        /// At READ COMMITTED, cursors go on with leaves that they copied in an earlier statement.
        KeepVoidCopies,
        /// A quarantined table stays quarantined after it was truncated.
        TruncatedStaysQuarantined,
        /// A transaction that writes a row on which it holds a shared lock goes on sharing it, although others wait for
        /// it.
        SharedWriter,
        /// A cursor that could not read the values of a row outside its leaf counts the row as the current one.
        PassUnread,
        /// The roots of a dropped table, and pages of the catalog that a change needs, are read after the log has the
        /// change.
        LogBeforeRoots,
        /// Changes of a prepared transaction in a quarantined table are lost.
        ForgetUndecided,
        /// The log reserves no room for the record of a prepared transaction's decision.
        UnpromisedDecision,
        /// Only the log, and not the file of the quarantined table, notes that a prepared transaction commits.
        UnnotedDecision,
        /// Damage that is met while a prepared transaction is restored keeps the database closed.
        DamageStopsRestore,
        /// A checkpoint writes the gathered images before it stops taking images: one that is saved in between counts
        /// as written.
        LateImages,
        /// At READ COMMITTED, rows that a cursor has locked and the caller has passed over stay locked.
        KeepPassedRows,
        /// A semi-consistent read waits for locked rows like any other.
        WaitForEachRow,
        /// Behind a bad record, the log is searched for a mark only as far as a short write reaches.
        ShortSearch,
        /// A locking look-up by a unique index that has not waited does not check whether its entry has changed.
        PointReadOnce,
        /// A read sees a version between others of the same writer if the writer commits while the read follows the
        /// chain.
        SeenOnTheWay,
        /// A locking walk goes on at the end of its locked range, even if the leaf was split meanwhile.
        ReachBeyondLeaf,
        /// A locking walk passes over a delete mark that it copied before the writer committed, whatever the writer has
        /// put since.
        PassOldMarks,
        /// A transaction holds a row that its exclusive range covers as if it had locked that row itself.
        HoldRangesAsRows,
        /// A cursor that has waited for a row, and searches its place again, does not check whether the record there
        /// has a writer.
        LookAgainUndecided,
        /// A cursor that waits for writers also waits for those of records beyond its range.
        WaitBehindEnd,
        /// A locking scan goes on with the newest rows after its transaction has taken a snapshot.
        KeepNewestView,
        /// A locking scan goes on in a leaf that was copied before its statement waited elsewhere.
        ForgetWaits,
        /// The data file grows for one image without reserving disk space, and space that the disk refuses counts as
        /// free.
        UnreservedGrowth,
        /// The data file keeps no free piece that is as long as a checkpoint's record.
        KeepPieces,
        /// Chunks of the place table are written side by side, or not at all.
        ChunksTogether,
        /// An opening fails if replay changes a record whose contents make no sense.
        NonsenseStopsReplay,
        /// A search for a value longer than any key fails, instead of finding nothing.
        RefuseLongSearch,
        /// A data file that could not be made shorter goes on asking for checkpoints.
        SlackForGood,
        /// A failed attempt to make the data file shorter does not count as an attempt.
        UncountedAttempts,
        /// A transaction checks whether rows lack entries only while entries are deferred.
        LookIfDeferred,
        /// A transaction that goes back to before rows that lack entries still counts them.
        LackForGood,
        /// The file of a quarantined table lacks changes that were applied before damage was met.
        KeepFromDamage,
        /// Returned auto-increment values lower the counter below values that rows have.
        LowerCounter,
        /// A checkpoint stores the present auto-increment counter, even if the log had a higher one.
        ForgetLoggedCounter,
        /// A checkpoint may come between a counter's log record and the note that the log has it.
        CountersOutsideBarrier,
        /// An attempt to make the data file shorter is compared only with the one before.
        CompareWithLast,
        /// Pruning finds the tree of a row before it enters the barrier.
        TreeBeforeBarrier,
        /// Several checkpoints of a program may run at once, and the end of one completes another.
        CheckpointsAtOnce,
        /// Statistics expect that values outside a copied leaf still exist, and do not read key columns there.
        SampleWholeRows,
        /// Log files that could not be renamed or removed are forgotten.
        ForgetLogFiles,
        /// An insert reports the conflicting row, which the caller is about to change, before it locks that row.
        UnlockedDuplicate,
        /// A destroyed tree still finds its root at the old page number, whichever page that is by now.
        RootByNumber,
        /// The registry closes tables while they are dropped or truncated.
        CloseLeaving,
        /// A table that is being dropped or truncated counts as already gone.
        ClosedIsGone,
        /// The log gets a part even between the two halves of a change of a row's key.
        PartWithinChange,
        /// Each step of purge begins with the first stream, even if the last step did not come beyond it.
        PurgeFromFirst,
        /// The program is not told which session waits for which.
        UntoldWaits,
        /// Transactions never wait in tables with optimistic locking, even if the program says that the session waits.
        NeverWaitOptimistic,
        /// A statement called by another one waits as long as the outer one may.
        LimitOfOuterStatement,
        /// The estimate of the recovery time ignores transactions that run for long.
        ForgetLongTransactions,
        /// A transaction whose redo the log no longer has goes on, and commits.
        CommitOutOfLog,
        /// The log is not kept for a prepared transaction whose first change is far back.
        LetPreparedGo,
        /// A transaction that its session has given up after a failed rollback counts as that session's.
        AbandonInSession,
        /// The program is not told of earlier waiters when a later request makes a new holder for which they wait, too.
        UntoldHolders,
        /// A chunk of the status directory with many aborted transactions is never summarised.
        KeepManyAborted,
        /// The undo of an undone operation takes space until the transaction ends.
        KeepTakenBack,
        /// A transaction that holds a range shares a row in it that another has locked exclusively.
        ShareExclusive,
        /// A cursor ignores a kill on its way to the next visible record.
        WalkOnKilled,
        /// At READ COMMITTED a cursor keeps the locks of rows that it has not returned.
        KeepRowsOnTheWay,
        /// A locking cursor misses rows whose entries others have moved to where it has already read.
        MissMovedEntries,
        /// A locking cursor passes over new entries of rows that others are changing.
        PassMovingEntries,
        /// The holder of a range around a row stays the row's holder after the writer that waited for it has gone.
        RangesStayRows,
        /// Survivors get a new stream each time; the old streams stay.
        LeaveStreams,
        /// The amount of work decides whether a savepoint still exists.
        SavepointByWork,
        /// A failed commit keeps the locks and the snapshot of a transaction that has no number.
        KeepUnnumbered,
        /// A commit does not wait until an earlier, already visible one is durable.
        ForgetVisible,
        /// A transaction object that gives its transaction up goes on with the default settings.
        ForgetSettings,
        /// A transaction whose rollback fails while the database is closed stays in memory.
        KeepAbandoned,
        /// Damage that a rollback's note meets at an opening counts as damage of a missing tree.
        DropLostNotes,
        /// An error for rows without entries since a savepoint asks the caller to retry, if a wait had failed there.
        RepeatCause,
        /// A transaction that rolls back keeps its snapshot, and its place in the log, until the end of the rollback.
        HoldRollingBack,
        /// Only the beginning of a long definition is read into memory before the log has its change.
        BringFirstChunk,
        /// Images of a dropped tree that a running checkpoint needs are saved after the log has the drop; failures lose
        /// them.
        LateTreeImages,
        /// A table's counter is set after the table is created.
        CounterApart,
        /// A table that could not be truncated counts as truncated for older snapshots.
        NewAnyway,
        /// An opening takes the names of log segments for durable because it can read them.
        TrustSegmentNames,
        /// An opening takes the newest header of the data file for durable because it can read it.
        TrustHeader,
        /// An opening takes the names of a database that is being created for durable because it can read them.
        TrustNewNames,
        /// An opening takes the log's end for durable because it can read it.
        TrustUnsyncedLog,
        /// The first record of an opening says that all before it is durable, before that is synced.
        OpenedSaysAll,
        /// An opening takes the names of the files of quarantined tables for durable because it can read them.
        TrustQuarantineNames,
        /// The file of a quarantined table that could not be read counts as complete.
        TrustUnreadQuarantine,
        /// Changes of a prepared transaction in a table whose file could not be read are lost.
        ForgetUnreadUndecided,
        /// A table that the log creates is sound, although an earlier opening has quarantined it.
        YoungIsSound,
        /// A log segment that is too short counts as the log's end.
        TakeCutSegments,
        /// A checkpoint's flush waits only once for the writes of others, and not again when a write is retried.
        FlushLooksOnce,
        /// Log segments made for a record that is then refused stay.
        KeepRefusedSegments,
        /// A log is closed while another thread makes, renames or removes its files.
        CloseWhileMaking,
        /// A failed read of a node is not retried while a tree is freed.
        ReadOnceToFree,
        /// A new table is opened only after it is created.
        OpenCreatedLate,
        /// Space for a checkpoint is reserved while the store is being closed.
        KeepAfterClose,
        /// Changes of a prepared transaction in a table with a damaged definition are lost.
        ForgetLostUndecided,
        /// The log has changes of definitions before the catalog has them.
        LogBeforeCatalog,
        /// A mark that says that all before it is durable counts as durable itself as soon as it is appended.
        TrustOthersMark,
        /// A transaction goes on after an error that only a rollback may follow.
        DoomedGoesOn,
        /// Guards of rows with which a table is filled stay until the transaction's end.
        KeepFillGuards,
        /// A check compares the numbers of rows and entries only in tables in which nothing was in flight.
        CheckUnchangedTables,
        /// A report names a record's problem after the whole of its key.
        WholeKeysFirst,
        /// A check counts the records of the log, but does not decode them.
        CountLogRecords,
        /// A check and a dump need the file of the directory's lock.
        NeedLockFile,
        /// A dump misses the changes of a table that their own transaction dropped.
        DroppedIsMissing,
        /// A dump has nothing that was committed before a damaged log record.
        ForgetBeforeUnread,
        /// A dump compares each leaf below a damaged node with all others.
        CompareAllLeaves,
        /// A log record that creates a table without trees is accepted.
        TakeTreeless,
        /// Read-ahead beyond a cursor's end searches for the end in a node that does not have it.
        ReadAheadBehindEnd,
        /// Pages that change while space for a checkpoint is reserved are not counted.
        CountBeforeRoom,
        /// The data file is cut by the amount of free space, even if the rest is in pieces too small for an image.
        CutByFree,
        /// A leaf whose only record is too long is split before it, even for a key behind it.
        CutBehindKey,
        /// A reader that makes a mini-page of a leaf waits for a frame for it.
        WaitForCopy,
        /// A transaction with a shared lock beside a row's writer holds the row, too, while it waits for the writer.
        HoldBesideWriter,
        /// Rows whose lock entries a transaction gives up stay listed until its end.
        ListGivenUp,
        /// A step of purge retries abandoned rollbacks to their end.
        RetryAtOnce,
        /// After an error purge pauses even between the parts of an abandoned rollback.
        RestBetweenParts,
        /// The undo that a rollback to a savepoint has undone takes space until the transaction ends.
        KeepUndoneParts,
        /// A check takes temporary errors for faults of the table.
        PassingIsDamage,
        /// All tables are locked while one is opened.
        OpenUnderLock,
        /// A transaction knows tables by their numbers, whichever database they are of.
        TablesByNumber,
        /// Relative paths are resolved in the directory that is current when they are used.
        FollowCurrentDirectory,
        /// A transaction commits although a panic has ended one of its operations half done.
        CommitUnwound,
        /// A waiter stays in the queue of the row if the program panics when it is told of the wait.
        StayQueued,
        /// Deferred entries of a bulk insert that a panic has dropped still count.
        CountLostDeferred,
        /// The last number that an auto-increment counter can have is given again and again.
        LastValueAgain,
        /// A row takes the bits of a NaN from its key.
        TrustKeyOfNan,
        /// An opening drops all tables if the prefix of tables to drop is empty.
        DropAllOnOpen,
        /// A guard of a key locks the record of that key, and releases that lock with the guard.
        GuardAsRow,
        /// A new database replaces a log whose data file is missing.
        ReplaceLostLog,
        /// A prepared transaction can take a snapshot, and keeps it until its decision.
        SnapshotOfPrepared,
        /// A thread whose buffer for new values is gone can't make changes.
        NeedThreadsBuffer,
        /// A database whose creation did not end is created even if the options forbid to create one.
        CreateAnyway,
        /// A table's columns and indexes keep their first names.
        KeepOldNames,
        /// A caller that sets the names, or the locking, that a table already has waits for all changes of definitions.
        KnownNamesWait,
        /// The log checks for room for a change of a definition after the catalog has it.
        UnaskedLog,
        /// Log segments that a killed process made for records that it did not write stay ahead of the log.
        KeepUnwrittenSegments,
        /// An opening needs the roots of tables that it drops, or that the log drops or truncates.
        NeedDroppedRoots,
        /// The data file gives out space that a place in the place table can't name.
        UncheckedPlaces,
        /// An opening needs all undo of the transactions that it rolls back.
        NeedUndo,
        /// A change of a prepared transaction that can't be repeated keeps the database closed.
        ContradictionStopsRestore,
        /// Files of quarantined tables stay when a new database replaces another.
        LeaveOldQuarantines,
        /// An opening fails if its checkpoint finds no room.
        OpenOnlyWithRoom,
        /// If a definition was written only in part, all of the one before is written again.
        PutAllBack,
        /// A dump takes transactions that were noted to commit for committed, even if the log breaks off.
        DecideByPart,
        /// A dump has auto-increment counters and locking as in the checkpoint.
        OptionsOfCheckpoint,
        /// A dump loses committed changes of a quarantined table that the log creates.
        LoseDecidedOfYoung,
        /// A walk goes on beyond its bounds, to the next visible record.
        WalkBehindEnd,
        /// A walk that has ended at its bounds stays ended when these are moved.
        EndStaysEnd,
        /// A cursor passes over all leaves without records in one call.
        PassEmptyLeaves,
        /// Mini-pages are registered after their frame has gone.
        EnterGoneCopies,
        /// Images that move down in the data file take space that is kept for a checkpoint.
        MoveIntoKept,
        /// An opening gives up the space that was kept for a checkpoint.
        GiveTailUp,
        /// An opening needs room in the log for the tables that it drops.
        NeedRoomToDrop,
        /// An opening fails for undo, or records, whose contents make no sense although the checksum is right.
        NonsenseStopsOpening,
        /// A table with a damaged definition stays in the catalog when the log drops it.
        KeepLostTables,
        /// An opening needs room in the log for a copy of prepared transactions.
        NeedRoomToRestore,
        /// A transaction commits although a panic has ended the insert of a row with which a table is filled.
        FillUnguarded,
        /// If one index can't be read, the others have no statistics.
        EstimateAllOrNothing,
        /// A client that chooses keys can predict which rows share a hash in the lock table.
        KnownRowHash,
        /// At READ COMMITTED a key that a locking cursor has not found stays locked.
        KeepAbsentRows,
        /// A transaction that waits for an inserted row that a rollback to a savepoint removes waits for its writer's
        /// end.
        WaitForTakenBack,
        /// Each guard has an entry, however many there are.
        GuardOneByOne,
        /// A row releases the guards of other tables, too.
        GiveAllGuards,
        /// A transaction that searches very many places at SERIALIZABLE has a range for each.
        RangeForEachSearch,
        /// The rollback of a part logs values outside their rows that it did not change.
        LogKeptValues,
        /// Recovery repeats changes before the checkpoint, although their table was truncated between them and the
        /// checkpoint.
        FillEmptied,
        /// Changes before the checkpoint keep the database closed if their table was dropped without a log record.
        NeedOldTables,
        /// A check decodes a row, but does not compare it with its key.
        TrustRowKeys,
        /// The destruction of a tree frees every page that its nodes name.
        FreeByName,
        /// A page is evicted although another thread has loaded an older copy of it.
        EvictBesideCopy,
        /// A descent that gets frames for only a part of its way loads each node in the place of another forever.
        BringEachForOther,
        /// A page of a tree is accepted as undo.
        NodeAsUndo,
        /// Images are saved for a checkpoint that was given up.
        SaveForAbandoned,
        /// A thread that loads a child of a node that is being written spins on that node.
        SpinForParent,
        /// Images that can't be written at their place are retried there again and again.
        StuckBuffer,
        /// Mini-pages and zone maps of evicted leaves are found by the page number alone, whichever tree asks.
        KeptByNumber,
        /// Pages that are read together are expected to end where the last of them does.
        EndOfLast,
        /// Space of the data file that could not be written is free at once.
        GiveRefused,
        /// Chunks of the place table that could not be written side by side are not retried one by one.
        WrittenGroupOnce,
        /// A file that only became longer counts as one with reserved disk space.
        LongerIsReserved,
        /// An opening needs room in the log for its first record.
        NeedRoomToOpen,
        /// The place table keeps its length after the last pages have gone.
        KeepEmptyChunks,
    }

    /// Faults of durability, which the proofs on a simulated disk find.
    DURABILITY {
        /// The log is written, and never synced.
        SkipLogSync,
        /// A commit is acknowledged once it is written to the log; the next commit syncs it.
        AcknowledgeBeforeSync,
        /// A failed sync of the log is retried, and its success is believed.
        RetryFailedSync,
        /// The name of a new log segment is not made durable.
        SkipDirectorySync,
        /// A checkpoint leaves a page out.
        ForgetPage,
        /// The header of a checkpoint is written before the state that it refers to is durable.
        HeaderFirst,
        /// Page checksums are ignored.
        IgnorePageChecksum,
        /// Checksums of log records are ignored.
        IgnoreLogChecksum,
        /// Recovery replays the log twice.
        ReplayTwice,
        /// Recovery overlooks the last commit of the log.
        DropLastCommit,
        /// Recovery does not roll back transactions that were running at the checkpoint.
        KeepLosers,
    }

    /// Faults that schedules of the whole engine find (`peregrine prove schedules`).
    SHAKEN {
        /// A thread that has waited for a node's latch does not check whether the parent still has the node there.
        UncheckedChild,
        /// A transaction that begins to wait for a writer that has ended meanwhile waits nevertheless.
        WaitForEnded,
        /// Replay begins at the checkpoint, even if transactions that ran then had logged changes before.
        ReplayFromCheckpoint,
        /// The parent of a node that is split is not saved for a running checkpoint.
        UnsavedParent,
        /// Changes of definitions are written to the log, but not synced.
        DefinitionsLater,
        /// The length of the unlogged redo decides whether the log has redo since a savepoint.
        SavepointByLength,
        /// A transaction with many locked rows gives up the entries of further rows, without a range in their place.
        EscalateNothing,
        /// A leaf that is evicted without zone maps keeps those of its last eviction.
        KeepOldZoneMaps,
        /// Bytes written while the log was being synced count as durable.
        SyncedMeanwhile,
        /// A page is evicted although it was changed after its write for the eviction.
        EvictChanged,
        /// Read-ahead does not check, under its load claims, whether the parent still refers to the pages by their ids.
        BringUnseen,
        /// A caller that asks for all commits to be durable returns before they are.
        SyncLogLater,
        /// The old place of a page is free as soon as the page has a new one, although the last checkpoint still names
        /// it.
        TakeInUse,
    }

    /// Faults of a few threads and of memory order, which models find under loom.
    MODELLED {
        /// An optimistic reader checks the latch's version without a fence.
        UnfencedRead,
        /// A thread that has latched a frame exclusively changes the bytes without a fence.
        UnfencedChange,
        /// Threads that sleep for a latch are woken before the word changes on which they sleep.
        WakeBeforeEvent,
        /// A thread that takes a snapshot announces that without a fence.
        UnfencedSnapshot,
        /// The horizon reads the snapshots without a fence.
        UnfencedHorizon,
        /// A thread announces a walk along undo pointers without a fence.
        UnfencedWalk,
        /// The oldest running writer is published before the ends that made it the oldest.
        OldestBeforeEnd,
        /// A lock entry that has become a range is published without memory order.
        UnorderedEscalation,
        /// A kill wakes the sleeper without the mutex under which the sleeper checks for it.
        UnguardedKill,
    }
}

#[cfg(feature = "broken")]
mod planting;

#[cfg(feature = "broken")]
pub(crate) use planting::is_planted;
#[cfg(feature = "broken")]
pub use planting::plant;

/// Returns whether this step is left out: never.
#[cfg(not(feature = "broken"))]
#[inline(always)]
pub(crate) fn is_planted(_: PlantedFault) -> bool {
    false
}
