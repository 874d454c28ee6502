//! Detects that a statement waits, from the state of the server's thread and not from the time that the statement
//! takes.

use std::time::{Duration, Instant};

use peregrine_harness::server::process::Process;

/// How long the server's thread must be seen asleep.
const WINDOW: Duration = Duration::from_millis(150);

/// The fewest samples of the thread within the window.
const LOOKS: u32 = 10;

/// How often a sleeping thread may wake within the window, to check whether it was interrupted.
const WAKINGS: u64 = 4;

/// Watches the server's thread of one session while a statement runs.
///
/// A thread that waits for a lock sleeps: the kernel shows it as interruptible (`S`), and it uses no processor time. A
/// thread is in another state if it is ready to run, as on a slow machine, or waits for a disk. A thread also sleeps
/// while it waits for a statement to arrive. The caller of [`Watch::asleep`] rules this out by the server's list of
/// processes.
#[derive(Debug)]
pub struct Watch {
    server: i32,
    thread: i32,
    since: Option<Sample>,
    looks: u32,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    switches: u64,
    ticks: u64,
}

impl Watch {
    /// Creates a watch on a thread of the server.
    #[must_use]
    pub fn new(server: Process, thread: i32) -> Self {
        Self {
            server: server.pid,
            thread,
            since: None,
            looks: 0,
        }
    }

    /// Begins again when a session sends a statement.
    pub fn reset(&mut self) {
        self.since = None;
        self.looks = 0;
    }

    /// Samples the thread, and returns true if it has been asleep through a whole window of samples.
    pub fn asleep(&mut self) -> bool {
        let Some(now) = self.look() else {
            self.reset();
            return false;
        };
        let Some(since) = self.since else {
            self.since = Some(now);
            return false;
        };
        if now.ticks != since.ticks || now.switches > since.switches + WAKINGS {
            self.since = Some(now);
            self.looks = 0;
            return false;
        }
        self.looks += 1;
        self.looks >= LOOKS && now.at.duration_since(since.at) >= WINDOW
    }

    /// Returns the thread's counters, if it sleeps.
    fn look(&self) -> Option<Sample> {
        let folder = format!("/proc/{}/task/{}", self.server, self.thread);
        let stat = std::fs::read_to_string(format!("{folder}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        if fields.first() != Some(&"S") {
            return None;
        }
        let user: u64 = fields.get(11)?.parse().ok()?;
        let system: u64 = fields.get(12)?.parse().ok()?;
        let status = std::fs::read_to_string(format!("{folder}/status")).ok()?;
        let switches = status
            .lines()
            .filter_map(|line| line.split_once("ctxt_switches:"))
            .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
            .sum();
        Some(Sample {
            at: Instant::now(),
            switches,
            ticks: user + system,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeping_thread_is_seen_asleep_and_a_working_one_is_not() {
        let own = Process::current().expect("this process");
        let (send, threads) = std::sync::mpsc::channel::<i32>();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            send.send(rustix::thread::gettid().as_raw_nonzero().get())
                .expect("taken");
            let _ = ended.recv();
        });
        let thread = threads.recv().expect("its number");
        let mut watch = Watch::new(own, thread);
        while !watch.asleep() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut own_watch = Watch::new(own, rustix::thread::gettid().as_raw_nonzero().get());
        for _ in 0..100 {
            assert!(!own_watch.asleep(), "this thread runs while it looks");
        }
        end.send(()).expect("taken");
        sleeper.join().expect("ended");
    }
}
