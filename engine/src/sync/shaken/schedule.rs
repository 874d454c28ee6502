//! Threads that run one at a time, in an order that a seed decides.
//!
//! Each thread is a thread of the system, and at most one of them has the *turn*; the others wait for it. A thread
//! passes the turn on at points, where it waits, and where it ends. It waits for an address: that of a lock, of a
//! condition, of a word; or until a moment. Time is counted in points, and leaps when all threads wait.
//!
//! The schedule does not know what its threads do. A run has failed when a thread panics, or when all threads wait
//! forever. Its threads then stay where they are forever, as they can't be ended from outside.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::chances::{now_and_then, Chances};
use super::clock::Clock;
use super::strategy::Choices;
pub use super::strategy::Strategy;
use super::waits::Waits;

/// The latest time that is counted, in nanoseconds; waits until later ones never end.
const FAR: Duration = Duration::from_secs(1 << 33);
/// More points than any run needs. One run had 51 million: its priorities let a thread that read a page wait for all
/// others.
const MOST_POINTS: u64 = 500_000_000;
/// While a thread waits for a moment, time leaps there at one in so many choices, though other threads can run.
const LEAPS: u64 = 128;
/// The most turns in a row for a thread that only spins, before time leaps.
const MOST_LOOKS: u32 = 1_000;

/// The figures of a run that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Points that were passed.
    pub points: u64,
    /// How often the turn went to another thread.
    pub turns: u64,
    /// How often something failed at a point.
    pub struck: u64,
    /// A hash of all choices: two runs with the same number were the same.
    pub trace: u64,
}

/// Runs `body`, and all threads that it starts, by a strategy and a seed.
///
/// # Errors
/// The message of the first panic; or what each thread waited for, when all waited forever.
pub fn run(
    strategy: Strategy,
    seed: u64,
    body: impl FnOnce() + Send + 'static,
) -> Result<Passed, String> {
    let (clock, waits) = (Arc::<Clock>::default(), Arc::<Waits>::default());
    let state = State::new(Arc::clone(&clock), Arc::clone(&waits), strategy, seed);
    let schedule = Arc::new(Schedule {
        state: Mutex::new(state),
        clock,
        waits,
        chances: Chances::new(seed),
        ended: Condvar::new(),
    });
    let first = schedule.begin("first");
    let inside = first.clone();
    // Not joined if the run fails: the thread may stay forever.
    let thread = std::thread::Builder::new()
        .name("first".into())
        .spawn(move || inside.live(body));
    let thread = thread.map_err(|error| format!("no thread: {error}"))?;
    {
        let mut state = schedule.state.lock();
        state.threads[first.index].turn.give();
        while state.failure.is_none() && state.threads.iter().any(|t| t.able != Able::Ended) {
            schedule.ended.wait(&mut state);
        }
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
    }
    let _ = thread.join();
    let state = schedule.state.lock();
    Ok(Passed {
        points: state.clock.points(),
        turns: state.turns,
        struck: schedule.chances.struck(),
        trace: state.trace,
    })
}

thread_local! {
    static ME: RefCell<Option<Me>> = const { RefCell::new(None) };
}

/// A thread of a schedule.
#[derive(Clone)]
pub(super) struct Me {
    schedule: Arc<Schedule>,
    index: usize,
}

impl std::fmt::Debug for Me {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "thread {} of a schedule", self.index)
    }
}

pub(super) struct Schedule {
    state: Mutex<State>,
    clock: Arc<Clock>,
    waits: Arc<Waits>,
    chances: Chances,
    /// Signals that the run has ended or failed.
    ended: Condvar,
}

/// The reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    Signal,
    Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Able {
    Yes,
    /// Waits for an address, or until a moment if there is one.
    Waits(Waiting),
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    on: usize,
    what: &'static str,
    until: Option<Duration>,
}

struct Thread {
    name: String,
    able: Able,
    woken: Woken,
    /// Another thread has unparked it.
    token: bool,
    turn: Arc<Turn>,
}

struct State {
    threads: Vec<Thread>,
    clock: Arc<Clock>,
    waits: Arc<Waits>,
    turns: u64,
    trace: u64,
    choices: Choices,
    /// A thread has become able to run since the last choice.
    has_woken: bool,
    /// Turns of spinning threads in a row, with nothing else between.
    looks: u32,
    failure: Option<String>,
}

/// The right to run, for which a thread waits.
#[derive(Default)]
struct Turn {
    given: AtomicBool,
    /// The thread that waits, once it does.
    thread: OnceLock<std::thread::Thread>,
}

impl Turn {
    fn give(&self) {
        self.given.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn take(&self) {
        self.thread.get_or_init(std::thread::current);
        while !self.given.swap(false, Ordering::SeqCst) {
            std::thread::park();
        }
    }
}

impl State {
    fn new(clock: Arc<Clock>, waits: Arc<Waits>, strategy: Strategy, seed: u64) -> Self {
        State {
            threads: Vec::new(),
            clock,
            waits,
            turns: 0,
            trace: 0,
            choices: Choices::new(strategy, seed),
            has_woken: false,
            looks: 0,
            failure: None,
        }
    }

    /// Makes threads able to run that wait for a moment which has come.
    fn wake_by_time(&mut self) {
        let now = self.clock.now();
        for thread in &mut self.threads {
            if let Able::Waits(Waiting {
                on,
                until: Some(until),
                ..
            }) = thread.able
            {
                if until <= now {
                    self.waits.end(on);
                    (thread.able, thread.woken) = (Able::Yes, Woken::Time);
                    self.has_woken = true;
                }
            }
        }
    }

    /// The earliest moment that a thread waits for.
    fn next_moment(&self) -> Option<Duration> {
        let moments = self.threads.iter().filter_map(|thread| match thread.able {
            Able::Waits(waiting) => waiting.until,
            _ => None,
        });
        moments.min()
    }

    fn able(&self) -> Vec<usize> {
        let able = |n: &usize| self.threads[*n].able == Able::Yes;
        (0..self.threads.len()).filter(able).collect()
    }

    /// Chooses the next thread; `None` if none can ever run.
    fn choose(&mut self) -> Option<usize> {
        self.wake_by_time();
        let may_leap = self.next_moment().is_some();
        if may_leap && (self.looks > MOST_LOOKS || self.choices.one_of(LEAPS)) {
            self.leap();
        }
        let mut able = self.able();
        if able.is_empty() {
            self.leap();
            able = self.able();
        }
        if able.is_empty() {
            return None;
        }
        self.has_woken = false;
        self.clock.set_due(self.choices.next().min(MOST_POINTS + 1));
        Some(self.choices.choose(&able))
    }

    /// Notes that a thread has become able to run.
    fn has_woken(&mut self) {
        self.has_woken = true;
        if self.choices.looks_at_woken() {
            self.clock.set_due(0);
        }
    }

    /// Counts a change of the turn, and returns the turn of the next thread.
    fn pass_to(&mut self, next: usize) -> Arc<Turn> {
        self.turns += 1;
        self.trace =
            (self.trace ^ next as u64 ^ self.clock.points() << 8).wrapping_mul(0x0100_0000_01b3);
        Arc::clone(&self.threads[next].turn)
    }

    /// Moves the time to the next moment that a thread waits for.
    fn leap(&mut self) {
        if let Some(moment) = self.next_moment() {
            self.clock.leap(moment);
            self.looks = 0;
            self.wake_by_time();
        }
    }

    /// Makes all threads that wait for the address able to run, or one of them.
    fn wake(&mut self, on: usize, one: bool) {
        let waits =
            |thread: &Thread| matches!(thread.able, Able::Waits(waiting) if waiting.on == on);
        let waits = |&n: &usize| waits(&self.threads[n]);
        let mut waiting: Vec<usize> = (0..self.threads.len()).filter(waits).collect();
        if one && waiting.len() > 1 {
            let n = self.choices.choose(&waiting);
            waiting = vec![n];
        }
        for n in waiting {
            self.waits.end(on);
            (self.threads[n].able, self.threads[n].woken) = (Able::Yes, Woken::Signal);
            self.has_woken();
            self.looks = 0;
        }
    }

    fn who_waits(&self) -> String {
        let mut text = String::from("everybody waits for ever:");
        for thread in &self.threads {
            if let Able::Waits(waiting) = thread.able {
                text += &format!(" {} for {},", thread.name, waiting.what);
            }
        }
        text.pop();
        text
    }
}

impl Schedule {
    /// Adds a thread to the schedule, able to run.
    fn begin(self: &Arc<Self>, name: &str) -> Me {
        let mut state = self.state.lock();
        let index = state.threads.len();
        state.threads.push(Thread {
            name: format!("{name} {index}"),
            able: Able::Yes,
            woken: Woken::Signal,
            token: false,
            turn: Arc::default(),
        });
        state.choices.thread_begins();
        state.has_woken();
        Me {
            schedule: Arc::clone(self),
            index,
        }
    }

    fn fail(&self, state: &mut State, failure: String) {
        state.failure.get_or_insert(failure);
        self.clock.set_due(0);
        self.ended.notify_all();
    }
}

impl Me {
    /// Runs a thread's work inside the schedule, from its first turn to its end.
    pub(super) fn live<T>(self, work: impl FnOnce() -> T) -> T {
        let turn = Arc::clone(&self.schedule.state.lock().threads[self.index].turn);
        turn.take();
        ME.set(Some(self.clone()));
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(work));
        ME.set(None);
        let mut state = self.schedule.state.lock();
        match outcome {
            Ok(outcome) => {
                state.threads[self.index].able = Able::Ended;
                state.wake(self.ends_at(), false);
                if state.able().is_empty() && state.next_moment().is_none() {
                    let waits = |thread: &Thread| matches!(thread.able, Able::Waits(_));
                    if state.threads.iter().any(waits) {
                        let failure = state.who_waits();
                        self.schedule.fail(&mut state, failure);
                    }
                    self.schedule.ended.notify_all();
                } else if let Some(next) = state.choose() {
                    let turn = state.pass_to(next);
                    drop(state);
                    turn.give();
                }
                outcome
            }
            Err(panic) => {
                let name = state.threads[self.index].name.clone();
                let message = message(&*panic);
                self.schedule.fail(&mut state, format!("{name}: {message}"));
                drop(state);
                std::panic::resume_unwind(panic)
            }
        }
    }

    /// Adds a thread to the same schedule.
    pub(super) fn begin(&self, name: &str) -> Me {
        self.schedule.begin(name)
    }

    /// The chances of faults and pauses in this schedule.
    pub(super) fn chances(&self) -> &Chances {
        &self.schedule.chances
    }

    /// The address for threads that wait for this thread's end.
    fn ends_at(&self) -> usize {
        self.address(0)
    }

    fn parks_at(&self) -> usize {
        self.address(1)
    }

    /// An address that no value in memory has.
    fn address(&self, which: usize) -> usize {
        self.index * 2 + which
    }

    pub(super) fn has_ended(&self) -> bool {
        self.schedule.state.lock().threads[self.index].able == Able::Ended
    }

    /// Waits, in the turn of `me`, until this thread has ended.
    pub(super) fn wait_for_end(&self, me: &Me) {
        while !self.has_ended() {
            me.wait(self.ends_at(), "a thread's end", None);
        }
    }

    pub(super) fn park(&self) {
        loop {
            let mut state = self.schedule.state.lock();
            if std::mem::take(&mut state.threads[self.index].token) {
                return;
            }
            drop(state);
            self.wait(self.parks_at(), "being unparked", None);
        }
    }

    pub(super) fn unpark(&self) {
        let mut state = self.schedule.state.lock();
        state.threads[self.index].token = true;
        let at = self.parks_at();
        state.wake(at, false);
    }

    /// Passes the turn on until another thread wakes those that wait for the address, or until a moment.
    pub(super) fn wait(&self, on: usize, what: &'static str, until: Option<Instant>) -> Woken {
        let mut state = self.schedule.state.lock();
        if state.failure.is_some() {
            stay(state);
        }
        let until = until
            .map(|until| until.saturating_duration_since(origin()))
            .filter(|until| *until < FAR);
        state.threads[self.index].able = Able::Waits(Waiting { on, what, until });
        state.waits.begin(on);
        match state.choose() {
            Some(next) => self.turn_to(&mut state, next),
            None => {
                let failure = state.who_waits();
                self.schedule.fail(&mut state, failure);
                stay(state);
            }
        }
        state.threads[self.index].woken
    }

    fn point(&self, looks_again: bool) {
        if !self.schedule.clock.tick() && !looks_again {
            return;
        }
        let mut state = self.schedule.state.lock();
        if state.failure.is_some() {
            // A thread that unwinds goes on to its end; no other does.
            if std::thread::panicking() {
                return;
            }
            stay(state);
        }
        let points = state.clock.points();
        if points > MOST_POINTS {
            self.schedule
                .fail(&mut state, format!("no end after {MOST_POINTS} points"));
            stay(state);
        }
        let woken = state.has_woken;
        match looks_again {
            true => {
                state.looks += 1;
                state.choices.lower(self.index);
            }
            false if !state.choices.is_due(points, self.index, woken) => return,
            false => {}
        }
        // This thread can run, so there is one to choose.
        let next = state.choose().unwrap_or(self.index);
        self.turn_to(&mut state, next);
    }

    /// Gives the turn to `next`, and waits for this thread's next turn.
    fn turn_to(&self, state: &mut parking_lot::MutexGuard<'_, State>, next: usize) {
        if next == self.index {
            return;
        }
        let own = Arc::clone(&state.threads[self.index].turn);
        let turn = state.pass_to(next);
        parking_lot::MutexGuard::unlocked(state, || {
            turn.give();
            own.take();
        });
    }

    pub(super) fn wake(&self, on: usize, one: bool) {
        if self.schedule.waits.may_be_awaited(on) {
            self.schedule.state.lock().wake(on, one);
        }
    }

    fn now(&self) -> Instant {
        origin() + self.schedule.clock.now()
    }
}

/// Keeps a thread of a failed run where it is, forever.
fn stay(state: parking_lot::MutexGuard<'_, State>) -> ! {
    drop(state);
    loop {
        std::thread::park();
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic").to_owned()
}

/// The time at which the clocks of schedules begin.
pub(super) fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// Calls `work` with this thread's place in its schedule; `None` outside schedules, and while the thread ends.
pub(super) fn with_me<T>(work: impl FnOnce(&Me) -> T) -> Option<T> {
    let work = |me: &RefCell<Option<Me>>| me.borrow().as_ref().map(work);
    ME.try_with(work).ok().flatten()
}

/// This thread's place in its schedule.
pub(super) fn me() -> Option<Me> {
    with_me(Me::clone)
}

/// This thread's number in its schedule.
pub(crate) fn number() -> Option<usize> {
    with_me(|me| me.index)
}

/// A point: the thread may lose the processor.
pub fn point() {
    if with_me(|me| me.point(false)).is_none() {
        now_and_then(|| origin().elapsed());
    }
}

/// A point in a loop that waits for another thread's change.
pub(crate) fn spin_loop() {
    if with_me(|me| me.point(true)).is_none() {
        std::hint::spin_loop();
    }
}

/// The time of the schedule, or of the clock outside schedules.
pub fn now() -> Instant {
    with_me(Me::now).unwrap_or_else(Instant::now)
}

/// The time since `then`.
pub(crate) fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}
