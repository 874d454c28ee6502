//! Threads, with points: a thread that is started by a thread of a schedule belongs to the schedule.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use super::schedule::{me, now, point, spin_loop, with_me, Me};

pub use std::thread::{available_parallelism, ThreadId};

/// Like `std::thread::Builder`.
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
}

impl Builder {
    pub fn new() -> Self {
        Builder::default()
    }

    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    fn inner(&self) -> std::thread::Builder {
        let builder = std::thread::Builder::new();
        match &self.name {
            Some(name) => builder.name(name.clone()),
            None => builder,
        }
    }

    /// Adds the new thread to the schedule of this one.
    fn begin(&self) -> Option<Me> {
        with_me(|me| me.begin(self.name.as_deref().unwrap_or("thread")))
    }

    pub fn spawn<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let scheduled = self.begin();
        let child = scheduled.clone();
        let inner = self.inner().spawn(move || live(child, work))?;
        point();
        Ok(JoinHandle { inner, scheduled })
    }

    pub fn spawn_scoped<'scope, 'env, T: Send + 'scope>(
        self,
        scope: &Scope<'scope, 'env>,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, T>> {
        let scheduled = self.begin();
        let child = scheduled.clone();
        scope.begun.borrow_mut().extend(scheduled.clone());
        let inner = self
            .inner()
            .spawn_scoped(scope.inner, move || live(child, work))?;
        point();
        Ok(ScopedJoinHandle { inner, scheduled })
    }
}

fn live<T>(scheduled: Option<Me>, work: impl FnOnce() -> T) -> T {
    match scheduled {
        Some(me) => me.live(work),
        None => work(),
    }
}

/// Like `std::thread::JoinHandle`.
#[derive(Debug)]
pub struct JoinHandle<T> {
    inner: std::thread::JoinHandle<T>,
    scheduled: Option<Me>,
}

impl<T> JoinHandle<T> {
    pub fn join(self) -> std::thread::Result<T> {
        wait_for(self.scheduled.as_ref());
        self.inner.join()
    }

    pub fn thread(&self) -> &std::thread::Thread {
        self.inner.thread()
    }
}

/// Like `std::thread::ScopedJoinHandle`.
pub struct ScopedJoinHandle<'scope, T> {
    inner: std::thread::ScopedJoinHandle<'scope, T>,
    scheduled: Option<Me>,
}

impl<T> ScopedJoinHandle<'_, T> {
    pub fn join(self) -> std::thread::Result<T> {
        wait_for(self.scheduled.as_ref());
        self.inner.join()
    }
}

fn wait_for(thread: Option<&Me>) {
    if let (Some(thread), Some(me)) = (thread, me()) {
        thread.wait_for_end(&me);
    }
}

/// Like `std::thread::Scope`.
pub struct Scope<'scope, 'env: 'scope> {
    inner: &'scope std::thread::Scope<'scope, 'env>,
    begun: RefCell<Vec<Me>>,
}

/// Like `std::thread::scope`.
pub fn scope<'env, T>(work: impl for<'a, 'scope> FnOnce(&'a Scope<'scope, 'env>) -> T) -> T {
    std::thread::scope(|inner| {
        let scope = Scope {
            inner,
            begun: RefCell::default(),
        };
        let outcome = work(&scope);
        for thread in scope.begun.take() {
            wait_for(Some(&thread));
        }
        outcome
    })
}

/// Like `std::thread::Thread`.
#[derive(Clone, Debug)]
pub struct Thread {
    inner: std::thread::Thread,
    scheduled: Option<Me>,
}

impl Thread {
    pub fn id(&self) -> ThreadId {
        self.inner.id()
    }

    pub fn unpark(&self) {
        match &self.scheduled {
            Some(thread) => thread.unpark(),
            None => self.inner.unpark(),
        }
        point();
    }
}

/// This thread.
pub fn current() -> Thread {
    Thread {
        inner: std::thread::current(),
        scheduled: me(),
    }
}

/// Waits until another thread unparks this one; may return early.
pub fn park() {
    match me() {
        Some(me) => me.park(),
        None => std::thread::park(),
    }
}

/// Lets other threads run first.
pub fn yield_now() {
    match me() {
        Some(_) => spin_loop(),
        None => std::thread::yield_now(),
    }
}

/// Sleeps.
pub fn sleep(time: Duration) {
    match me() {
        // An address that no thread wakes.
        Some(me) => {
            me.wait(usize::MAX, "a moment", Some(now() + time));
        }
        None => std::thread::sleep(time),
    }
}
