//! Faults that a test build can have, one at a time, for the proofs to find.
//!
//! A proof that finds nothing proves nothing until it has found something. With the cargo feature
//! `broken` the process can be told by `plant`, or by the environment variable `PEREGRINE_PLANTED`, to
//! leave one step out. Without the feature, as in every build that is shipped, [`is_planted`] is the
//! constant `false`, and nothing of this remains.
//!
//! `MENDED` are faults that the engine once had: for each a test goes red (`verify/answers`). Those of `DURABILITY` are
//! found by the proofs on a simulated disk (`make catch-planted`), those of `SHAKEN` by schedules of the whole engine
//! (`verify/shaken`), and those of `MODELLED` by models of a few threads (the package `peregrine-loom`).

/// Declares the faults in lists, by what finds them: all of them in one enum, and of each list a constant.
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

            /// The lists.
            const ALL: &[&[PlantedFault]] = &[$(PlantedFault::$list),+];
        }
    };
}

faults! {
    /// Faults that a test of the engine finds, each named as in the environment variable.
    MENDED {
        /// A scan of leaves that has come to the tree's end names the part it began with as what is left.
        RestOfEndedScan,
        /// The rollback of one refused row takes back index entries of earlier rows.
        LateSavepoint,
        /// Keys whose insertion a rollback to a savepoint takes back are not locked.
        UnlockedTakenBack,
        /// Purge drops the oldest end of a stream, also where another has joined it since it was looked at.
        PurgeJoinedEnd,
        /// Purge drops the oldest end of a stream, also where pruning has put another in its place.
        PurgeReplacedEnd,
        /// Pruning overwrites the head of what survivors' newest end names.
        LosePurgeNotes,
        /// A pass over survivors takes its end anew at each step.
        EndlessSecondLook,
        /// A transaction of which a part could not be undone goes on as if it had been.
        ForgetHalfUndone,
        /// The log gets changes of a transaction of which a part could not be undone.
        AppendHalfUndone,
        /// A table that recovery could not open counts as dropped.
        UnopenedIsDropped,
        /// Recovery goes on keeping changes of a quarantined table that has been truncated since.
        QuarantinedForGood,
        /// The rows of a commit are counted when the barrier was left.
        CountOutsideBarrier,
        /// Who checks what must hold of all rows keeps nobody else from doing so.
        UnguardedCheck,
        /// Who checks what must hold of all rows reads its snapshot, and waits for nobody.
        SnapshotCheck,
        /// A table can't be dropped where the transaction that drops it has used it.
        OwnUseIsBusy,
        /// Nor one of one session, where a transaction that the session has prepared and given up has used it.
        PreparedKeepsOwnTables,
        /// A table that a transaction has used is dropped by its name, whichever table has that by then.
        DropByNameAlone,
        /// The rows with which a table of one session is filled while it is made are undone by a rollback.
        FillIsUndone,
        /// Rows of tables of one session go to the log.
        LogOwnRows,
        /// Replay makes changes of tables that are dropped on opening.
        ReplayEndedTables,
        /// Replay takes changes of tables that their own transaction dropped for damage.
        DroppedIsDamage,
        /// Roots of trees that are in memory stay there.
        PinnedRoots,
        /// Tables that were opened stay open.
        TablesStayOpen,
        /// The data file keeps no room for the next checkpoint.
        NoRoomKept,
        /// Eviction reads a frame that has become one of mini-pages as if it still had a node.
        ParseReusedFrame,
        /// What a frame that has been freed refers to is read ahead.
        BringByFreedFrame,
        /// The latch of the frame in which a root was last is waited for, whatever the frame has now.
        WaitByRootHint,
        /// What pruning moves to the survivors has an end there only once the page is through.
        UnendedSurvivors,
        /// Undo pages that could not be freed are forgotten.
        LoseUnfreed,
        /// Pruning does not say that it is on its way to a page.
        PruneUnseen,
        /// The second snapshot of a transaction stays registered at its end.
        KeepSecondSnapshot,
        /// Ends are summarised also where the horizon stands between them.
        SummariseOverHorizon,
        /// A row that gets too long moves values outside that stand there already, of which it has a part only.
        MoveKeptValues,
        /// What a walk that has ended stood on last counts as what it stands on.
        StandAtEnd,
        /// A cursor that returns rows has no strings of its index.
        RowsWithoutTexts,
        /// A cursor that finds no entry forgets its place among them.
        ForgetPlace,
        /// Cursors go on over a statement's end with what they have copied before.
        KeepVoidCopies,
        /// A table that was quarantined counts as such after it was truncated, too.
        TruncatedStaysQuarantined,
        /// Who writes a row that it has shared, while others wait for it, goes on sharing it.
        SharedWriter,
        /// A cursor that could not read a row stands on it nevertheless.
        PassUnread,
        /// The roots of a table that goes are read once the log says that it is gone.
        LogBeforeRoots,
        /// What a prepared transaction has changed in a quarantined table is forgotten.
        ForgetUndecided,
        /// No room is promised for the record of what is decided about a prepared transaction.
        UnpromisedDecision,
        /// That a prepared transaction commits stands in the log alone.
        UnnotedDecision,
        /// Damage that is met while changes of a prepared transaction are made again keeps all tables closed.
        DamageStopsRestore,
        /// An image that is saved while a checkpoint ends becomes that checkpoint's, written or not.
        LateImages,
        /// Rows that were locked and passed over stay locked.
        KeepPassedRows,
        /// A semi-consistent read waits for locked rows like any other.
        WaitForEachRow,
        /// Behind a bad record of the log, only so many bytes are searched for a mark as a short write has.
        ShortSearch,
        /// A look-up by a unique index does not look again where its entry has changed and nobody was waited for.
        PointReadOnce,
        /// A version between others of its writer is seen where that one commits while the chain is followed.
        SeenOnTheWay,
        /// A walk that locks goes on where the range that it has locked ends, also where the leaf was split meanwhile.
        ReachBeyondLeaf,
        /// A locking walk passes by a delete mark that it copied before its writer committed, whatever that put there
        /// since.
        PassOldMarks,
        /// Who has locked many rows holds those between them as if it had asked for each.
        HoldRangesAsRows,
        /// A cursor that has waited for a row takes the record at which it looks again for one that nobody is writing.
        LookAgainUndecided,
        /// A cursor that waits for records that are being written waits for those beyond what it looks for, too.
        WaitBehindEnd,
        /// A locking scan goes on with the newest rows when its transaction has come to have a snapshot.
        KeepNewestView,
        /// A locking scan goes on in a leaf that was copied before its statement waited elsewhere.
        ForgetWaits,
        /// The data file grows for one image without the disk being asked, and what it refuses counts as free.
        UnreservedGrowth,
        /// No piece of free space is kept that is as long as a checkpoint's record.
        KeepPieces,
        /// Chunks of the place table are written side by side, or not at all.
        ChunksTogether,
        /// A record that makes no sense ends an opening that has a change of it to make again.
        NonsenseStopsReplay,
        /// A search for what is longer than any key fails, instead of finding nothing.
        RefuseLongSearch,
        /// A data file that could not be made shorter goes on asking for checkpoints.
        SlackForGood,
        /// An attempt to make the data file shorter that fails does not count as one in vain.
        UncountedAttempts,
        /// Whether rows lack entries is looked at only while entries are deferred.
        LookIfDeferred,
        /// A transaction that goes back before rows that lack entries counts them as there.
        LackForGood,
        /// The file of a quarantined table has no changes that were applied before damage was met.
        KeepFromDamage,
        /// Auto-increment values that are given back take the counter below values that rows were given.
        LowerCounter,
        /// A checkpoint has the auto-increment counter as it is, also where the log had a higher one.
        ForgetLoggedCounter,
        /// A checkpoint may come between a counter's record in the log and the note that the log has it.
        CountersOutsideBarrier,
        /// An attempt to make the data file shorter is compared with the one before it alone.
        CompareWithLast,
        /// Pruning looks for the tree of a row before it enters the barrier.
        TreeBeforeBarrier,
        /// A program's checkpoints may run at once, and one is completed whichever is running.
        CheckpointsAtOnce,
        /// Statistics expect that what a copied row has outside its leaf is still there, and read no key column there.
        SampleWholeRows,
        /// Log files that could not be renamed or removed are forgotten.
        ForgetLogFiles,
        /// Who changes the row in the way of an insert is told of it before it is locked.
        UnlockedDuplicate,
        /// A tree that has gone has its root where it was, whichever page that is by now.
        RootByNumber,
        /// Tables are closed while they are dropped or truncated.
        CloseLeaving,
        /// A table that is being dropped or truncated counts as one that is gone.
        ClosedIsGone,
        /// The log gets its next part also between the two halves of a change of a row's key.
        PartWithinChange,
        /// Each step of purge begins with the first stream, also where the last one did not come beyond it.
        PurgeFromFirst,
        /// The program is not told who waits for whom.
        UntoldWaits,
        /// Nobody waits in tables whose locking is optimistic, also where the program says that its session does.
        NeverWaitOptimistic,
        /// A statement that another one calls waits as long as that one may.
        LimitOfOuterStatement,
        /// How long recovery would take is told without what transactions that run for long add to it.
        ForgetLongTransactions,
        /// A transaction whose redo the log keeps no longer goes on, and commits.
        CommitOutOfLog,
        /// The log is not kept for prepared transactions, either, if that is far back.
        LetPreparedGo,
        /// A transaction that its session has given up with a failed rollback counts as that session's.
        AbandonInSession,
        /// Who waits already is not told of, where another waiter enters a new holder.
        UntoldHolders,
        /// The ends of many transactions that were rolled back are kept one by one.
        KeepManyAborted,
        /// The undo of an operation that was taken back takes room until the transaction ends.
        KeepTakenBack,
        /// Who holds a range shares a row in it that another has locked for itself.
        ShareExclusive,
        /// A cursor takes no notice of a kill on its way to the next record that it sees.
        WalkOnKilled,
        /// At READ COMMITTED a cursor keeps rows that it has locked on its way, and not returned.
        KeepRowsOnTheWay,
        /// A locking cursor misses rows whose entries others have put where it has looked already.
        MissMovedEntries,
        /// A locking cursor passes over new entries of rows that others are changing.
        PassMovingEntries,
        /// Who holds a range around a row stays its holder when the writer has gone that has waited for it.
        RangesStayRows,
        /// Survivors have a new stream each time; those that had others before are left.
        LeaveStreams,
        /// Whether a savepoint is still there is told by how much work was done.
        SavepointByWork,
        /// A commit that fails keeps the locks and the snapshot of a transaction that has no number.
        KeepUnnumbered,
        /// A commit does not wait for one that others see already to become durable.
        ForgetVisible,
        /// A transaction object that gives its transaction up goes on with the default settings.
        ForgetSettings,
        /// A transaction whose rollback fails when the database is closed is kept in memory.
        KeepAbandoned,
        /// Damage that a note of a rollback meets at an opening counts as damage in a tree that there is not.
        DropLostNotes,
        /// Rows that lack entries since a savepoint ask for another try, where a wait was in vain there.
        RepeatCause,
        /// A transaction that rolls back keeps its snapshot, and its place in the log, until it is through.
        HoldRollingBack,
        /// Of a long definition only the beginning is brought into memory before the log has its change.
        BringFirstChunk,
        /// What a running checkpoint needs of a tree that goes is saved when the log says so, and what can't be is lost.
        LateTreeImages,
        /// A table's counter is set when the table is there.
        CounterApart,
        /// A table that could not be emptied counts as emptied for older snapshots.
        NewAnyway,
        /// An opening takes the names of log segments for durable because it can read them.
        TrustSegmentNames,
        /// An opening takes the newest header of the data file for durable because it can read it.
        TrustHeader,
        /// An opening takes the names of a database that is being created for durable because it can read them.
        TrustNewNames,
        /// An opening takes the log's end for durable because it can read it.
        TrustUnsyncedLog,
        /// The first record of an opening says that all before it is durable before that is synced.
        OpenedSaysAll,
        /// An opening takes the names of the files of quarantined tables for durable because it can read them.
        TrustQuarantineNames,
        /// A file of a quarantined table that could not be read counts as one that has everything.
        TrustUnreadQuarantine,
        /// What a prepared transaction has changed in a table whose file could not be read is forgotten.
        ForgetUnreadUndecided,
        /// A table that the log makes is sound, though an earlier opening has quarantined it.
        YoungIsSound,
        /// A log segment that is shorter than it should be is the log's end.
        TakeCutSegments,
        /// A checkpoint's flush waits once for the writes of others, and not again where one is tried again.
        FlushLooksOnce,
        /// Log segments made for a record that is then refused stay where they are.
        KeepRefusedSegments,
        /// A log is closed though somebody is making, renaming or removing its files.
        CloseWhileMaking,
        /// A read of a node that fails while a tree is given back is not tried again.
        ReadOnceToFree,
        /// A new table is opened when it is there.
        OpenCreatedLate,
        /// Room for a checkpoint is kept beside the closing of the store.
        KeepAfterClose,
        /// What a prepared transaction has changed in a table whose definition makes no sense is forgotten.
        ForgetLostUndecided,
        /// Changes of definitions are in the log before they are in the catalog.
        LogBeforeCatalog,
        /// A mark that says that all before it is durable counts as durable itself as soon as it is appended.
        TrustOthersMark,
        /// A transaction goes on after an error that only a rollback can follow.
        DoomedGoesOn,
        /// Guards of rows with which a table is filled stay until the transaction's end.
        KeepFillGuards,
        /// A check compares rows with entries in number only in tables in which nothing was in flight.
        CheckUnchangedTables,
        /// What is wrong with a record is told behind the whole of its key.
        WholeKeysFirst,
        /// A check counts the records of the log, and decodes none.
        CountLogRecords,
        /// A check and a dump need the file of the directory's lock.
        NeedLockFile,
        /// A dump misses the changes of a table that their own transaction dropped.
        DroppedIsMissing,
        /// A dump has nothing that was committed before a log record that makes no sense.
        ForgetBeforeUnread,
        /// A dump compares each leaf below a damaged node with all others.
        CompareAllLeaves,
        /// The log makes tables without trees.
        TakeTreeless,
        /// Reading ahead for a cursor behind its end looks for the end in a node that does not take it.
        ReadAheadBehindEnd,
        /// Pages that become newer while room is got for a checkpoint are not counted.
        CountBeforeRoom,
        /// Of the data file so much is cut off that as much is free as is kept, be it in pieces that take no image.
        CutByFree,
        /// A leaf whose only record is too long is cut before it, also for a key behind it.
        CutBehindKey,
        /// Who keeps a mini-page of a leaf waits for a frame for it.
        WaitForCopy,
        /// Who was granted a row beside its writer holds it, too, while it waits for that one.
        HoldBesideWriter,
        /// Rows whose entries a transaction gives up stay listed until its end.
        ListGivenUp,
        /// A step of purge tries rollbacks that were abandoned to their end.
        RetryAtOnce,
        /// Where purge fails it rests, also between the parts of an abandoned rollback.
        RestBetweenParts,
        /// The undo of what a rollback to a savepoint has taken back takes room until the transaction ends.
        KeepUndoneParts,
        /// A check takes errors that pass for faults of the table.
        PassingIsDamage,
        /// All tables are locked while one is opened.
        OpenUnderLock,
        /// A transaction knows tables by their numbers, whichever database they are of.
        TablesByNumber,
        /// Relative paths are those of the directory that is the current one when they are used.
        FollowCurrentDirectory,
        /// A transaction of which an operation has unwound half done is committed.
        CommitUnwound,
        /// Who panics where a wait is told of stays in the row's queue.
        StayQueued,
        /// What a bulk insert has deferred, and a panic has taken along, still counts.
        CountLostDeferred,
        /// The last number that an auto-increment counter can stand at is given again and again.
        LastValueAgain,
        /// A row takes the bits of what is no number from its key.
        TrustKeyOfNan,
        /// An opening drops all tables where the prefix of those that are to go is empty.
        DropAllOnOpen,
        /// Who guards a key locks the record of that key, and gives that lock back with the guard.
        GuardAsRow,
        /// A new database takes the place of a log whose data file is missing.
        ReplaceLostLog,
        /// A prepared transaction can take a snapshot, and has it until it is decided.
        SnapshotOfPrepared,
        /// A thread whose buffer for new values is gone can change nothing.
        NeedThreadsBuffer,
        /// A database whose creation did not end is made also where none shall be created.
        CreateAnyway,
        /// A table's columns and indexes keep the names that they had when it was made.
        KeepOldNames,
        /// Who gives a table the names that it has waits for all changes of definitions.
        KnownNamesWait,
        /// Whether the log has room for a change of a definition is found out when the catalog has it.
        UnaskedLog,
        /// Log segments that a killed process had made for records that it did not write stay ahead of the log.
        KeepUnwrittenSegments,
        /// An opening needs the roots of tables that it drops, or that the log drops or empties.
        NeedDroppedRoots,
        /// Space in the data file is given out that no place can name.
        UncheckedPlaces,
        /// An opening needs all undo of the transactions that it rolls back.
        NeedUndo,
        /// A change of a prepared transaction that can't be made again keeps all tables closed.
        ContradictionStopsRestore,
        /// Files of quarantined tables stay where a new database is created in the place of another.
        LeaveOldQuarantines,
        /// An opening fails where its checkpoint finds no room.
        OpenOnlyWithRoom,
        /// Where a definition was written in part, all of the one before is written again.
        PutAllBack,
        /// A dump takes what was noted to commit for committed, also where the log breaks off.
        DecideByPart,
        /// A dump has auto-increment counters and lockings as the checkpoint has them.
        OptionsOfCheckpoint,
        /// What was decided of a quarantined table that the log creates is lost to a dump.
        LoseDecidedOfYoung,
        /// A walk goes through what it does not see behind its bounds, to the next record that it sees.
        WalkBehindEnd,
        /// A walk that has ended at its bounds has ended when these are moved.
        EndStaysEnd,
        /// A cursor passes over leaves without records in one call.
        PassEmptyLeaves,
        /// Mini-pages are known whose frame has gone before.
        EnterGoneCopies,
        /// Images that move down in the data file take room that is kept for a checkpoint.
        MoveIntoKept,
        /// An opening gives back the room that was kept for a checkpoint.
        GiveTailUp,
        /// An opening needs room in the log for what it drops.
        NeedRoomToDrop,
        /// An opening fails where undo, or what it is about, makes no sense.
        NonsenseStopsOpening,
        /// A table whose definition makes no sense stays in the catalog where the log drops it.
        KeepLostTables,
        /// An opening needs room in the log for a copy of prepared transactions.
        NeedRoomToRestore,
        /// A row with which a table is filled, and whose insert has unwound, counts as one that was not inserted.
        FillUnguarded,
        /// Where one index can't be read, nothing is known of the others.
        EstimateAllOrNothing,
        /// Which rows share a hash in the lock table can be told by whoever chooses their keys.
        KnownRowHash,
        /// At READ COMMITTED a row that a locking cursor has looked for in vain stays locked.
        KeepAbsentRows,
        /// Who waits for an inserted row that is taken back to a savepoint waits for the end of who inserted it.
        WaitForTakenBack,
        /// Each guard has an entry, however many there are.
        GuardOneByOne,
        /// A row gives the guards of other tables back, too.
        GiveAllGuards,
        /// Who searches very many places at SERIALIZABLE has a range for each.
        RangeForEachSearch,
        /// A part that is taken back logs values outside their rows that it did not change.
        LogKeptValues,
        /// Recovery makes changes again whose table was emptied between them and the checkpoint.
        FillEmptied,
        /// Changes before the checkpoint of a table that was dropped without a word in the log keep the database closed.
        NeedOldTables,
        /// A check decodes a row, and does not compare it with its key.
        TrustRowKeys,
        /// A tree that goes frees whatever its nodes name.
        FreeByName,
        /// A page leaves its parent though somebody has brought an older copy of it.
        EvictBesideCopy,
        /// A descent that finds frames for a part of its way alone brings each node in the place of another for ever.
        BringEachForOther,
        /// A page of a tree passes for undo.
        NodeAsUndo,
        /// Images are saved for a checkpoint that was given up.
        SaveForAbandoned,
        /// Who brings a child of a node that is being written looks at the node again and again meanwhile.
        SpinForParent,
        /// Images that can't be written where they are to be are tried there again and again.
        StuckBuffer,
        /// What is kept of leaves that are not in memory is found by their numbers, whichever tree asks.
        KeptByNumber,
        /// Pages that are read together are expected to end where the last of them does.
        EndOfLast,
        /// Space of the data file that could not be written is free at once.
        GiveRefused,
        /// Chunks of the place table that could not be written side by side are not tried one by one.
        WrittenGroupOnce,
        /// A file that only became longer counts as one for which the disk has room.
        LongerIsReserved,
        /// An opening needs room in the log for its first record.
        NeedRoomToOpen,
        /// The place table keeps its length when the last pages have gone.
        KeepEmptyChunks,
    }

    /// Faults of durability, which the proofs on a simulated disk find.
    DURABILITY {
        /// The log is written, and never synced.
        SkipLogSync,
        /// A commit is acknowledged when the log is written; the sync comes with the commit after it.
        AcknowledgeBeforeSync,
        /// A failed sync of the log is tried again, and what that says is believed.
        RetryFailedSync,
        /// The name of a new log segment is not made durable.
        SkipDirectorySync,
        /// A checkpoint leaves a page out.
        ForgetPage,
        /// The header of a checkpoint is written before what it leads to is durable.
        HeaderFirst,
        /// A page's checksum is not looked at.
        IgnorePageChecksum,
        /// A log record's checksum is not looked at.
        IgnoreLogChecksum,
        /// Recovery replays what the checkpoint has already.
        ReplayTwice,
        /// Recovery overlooks the last commit of the log.
        DropLastCommit,
        /// Recovery takes no notice of transactions that were running at the checkpoint.
        KeepLosers,
    }

    /// Faults that schedules of the whole engine find (`peregrine bench schedules`).
    SHAKEN {
        /// Who has waited for a node's latch does not look whether its parent still has it there.
        UncheckedChild,
        /// Who comes to wait for a writer that has ended meanwhile waits nevertheless.
        WaitForEnded,
        /// Replay begins at the checkpoint, also where transactions that ran then had logged changes before.
        ReplayFromCheckpoint,
        /// The parent of a node that is split is not saved for a checkpoint that runs.
        UnsavedParent,
        /// Changes of definitions are written to the log, and not synced.
        DefinitionsLater,
        /// Whether the log has redo since a savepoint is told by the length of what it has not.
        SavepointByLength,
        /// Who has many rows locked gives up the entries of further ones, and nothing stands for them.
        EscalateNothing,
        /// A leaf that leaves without zone maps keeps those with which it left before.
        KeepOldZoneMaps,
        /// What was written while the log was being synced counts as durable.
        SyncedMeanwhile,
        /// A page that was changed between its write and its eviction goes nevertheless.
        EvictChanged,
        /// Pages are read ahead without a look at their parent once their entries are taken.
        BringUnseen,
        /// Who asks for all commits to be durable is told that they are, and they become so later.
        SyncLogLater,
        /// The place of a page is free as soon as the page has another, though the last checkpoint still names it.
        TakeInUse,
    }

    /// Faults of a few threads and of memory's order, which models find under loom.
    MODELLED {
        /// Who has read by a latch's version looks at the version without a fence.
        UnfencedRead,
        /// Who has taken a latch exclusively changes what it guards without a fence.
        UnfencedChange,
        /// Who sleep for a latch are woken before the word changes by which they sleep.
        WakeBeforeEvent,
        /// That a snapshot is being taken is told without a fence.
        UnfencedSnapshot,
        /// The horizon looks at the snapshots without a fence.
        UnfencedHorizon,
        /// A walk along undo pointers is told without a fence.
        UnfencedWalk,
        /// The oldest running writer is published before the ends that made it the oldest.
        OldestBeforeEnd,
        /// That an entry of the lock table has become a range is told without order.
        UnorderedEscalation,
        /// A kill wakes without the mutex under which the sleeper looks for it.
        UnguardedKill,
    }
}

#[cfg(feature = "broken")]
mod planting;

#[cfg(feature = "broken")]
pub(crate) use planting::is_planted;
#[cfg(feature = "broken")]
pub use planting::plant;

/// Whether this step is left out: never.
#[cfg(not(feature = "broken"))]
#[inline(always)]
pub(crate) fn is_planted(_: PlantedFault) -> bool {
    false
}
