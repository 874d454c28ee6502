//! Two-phase commit: preparing a session's transaction, listing prepared ones, ending them by name.

use peregrine::{Error, Prepared, Xid};

use crate::c_types::{Code, XidImage, XID_BYTES};
use crate::engine::{engine, SharedEngine};
use crate::failure::{keep, Failure, Outcome};
use crate::guard;
use crate::session::{with, SessionBox};

impl XidImage {
    fn name(&self) -> Outcome<Xid> {
        let (global, branch) = (self.global_length as usize, self.branch_length as usize);
        let parts = self
            .bytes
            .split_at_checked(global)
            .and_then(|(global, rest)| Some((global, rest.get(..branch)?)));
        match parts {
            Some((global, branch)) => Ok(Xid::new(self.format, global, branch)?),
            None => Err(Failure::new(
                Code::Invalid,
                format!("a transaction's name has at most {XID_BYTES} bytes"),
            )),
        }
    }

    fn of(name: &Xid) -> Self {
        let mut image = XidImage {
            format: name.format(),
            global_length: name.global().len() as u32,
            branch_length: name.branch().len() as u32,
            bytes: [0; XID_BYTES],
        };
        let whole = name.global().iter().chain(name.branch());
        for (to, from) in image.bytes.iter_mut().zip(whole) {
            *to = *from;
        }
        image
    }
}

/// Returns the transaction as the engine has it.
///
/// The server treats names that differ only in their format as equal.
fn known(engine: &SharedEngine, name: &Xid) -> Option<Prepared> {
    let mut all = engine.database.prepared().into_iter();
    all.find(|p| p.xid.global() == name.global() && p.xid.branch() == name.branch())
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread, `name` valid.
#[no_mangle]
pub unsafe extern "C" fn peregrine_session_prepare(
    pointer: *mut SessionBox,
    name: *const XidImage,
    sync: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.engine().check()?;
            let name = name.as_ref().ok_or_else(|| Failure::argument("name"))?;
            session.prepare(&name.name()?, sync != 0).map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session of this thread.
#[no_mangle]
pub unsafe extern "C" fn peregrine_session_detach(pointer: *mut SessionBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.detach();
            Ok(true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `pointer` must be a session that no other thread uses meanwhile.
#[no_mangle]
pub unsafe extern "C" fn peregrine_session_commit_ordered(pointer: *mut SessionBox) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        with(pointer, |session| {
            session.engine().check()?;
            session.commit_ordered().map(|()| true)
        })
    }
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine, `after` null or valid, `out` writable for `capacity` names,
/// `count` writable.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_prepared(
    shared: *mut SharedEngine,
    after: *const XidImage,
    out: *mut XidImage,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    guard::reading(|| {
        // SAFETY: by the caller's promise.
        let (engine, after, count) = unsafe { (engine(shared)?, after.as_ref(), count.as_mut()) };
        let count = count.ok_or_else(|| Failure::argument("count"))?;
        let after = after.map(XidImage::name).transpose()?;
        // The list is sorted.
        let detached = engine
            .database
            .prepared()
            .into_iter()
            .filter(|p| p.detached);
        let wanted = detached
            .map(|p| p.xid)
            .filter(|xid| after.as_ref().is_none_or(|after| xid > after))
            .take(if out.is_null() { 0 } else { capacity });
        *count = 0;
        for xid in wanted {
            // SAFETY: below the capacity of what is writable by the caller's promise.
            unsafe { out.add(*count).write(XidImage::of(&xid)) };
            *count += 1;
        }
        Ok(true)
    })
}

/// Ends a prepared transaction by its name; false when no transaction has that name.
unsafe fn end(
    shared: *mut SharedEngine,
    name: *const XidImage,
    end: impl Fn(&peregrine::Database, &Xid) -> peregrine::Result<()>,
) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { engine(shared) } {
        Ok(engine) => guard::changing(engine, || {
            engine.check()?;
            // SAFETY: by the caller's promise.
            let name = unsafe { name.as_ref() }.ok_or_else(|| Failure::argument("name"))?;
            let name = name.name()?;
            // The server passes the name on before the session of the transaction has given it up. Another thread may
            // also be about to end the transaction.
            let somebody_has = || known(engine, &name).is_some_and(|known| !known.detached);
            let is_free = || known(engine, &name).is_some_and(|known| known.detached);
            loop {
                if !engine.wait_until_given_up(somebody_has) {
                    return Err(Failure::new(
                        Code::Busy,
                        "a session still has the prepared transaction",
                    ));
                }
                let Some(known) = known(engine, &name) else {
                    return Ok(false);
                };
                match end(&engine.database, &known.xid) {
                    // Another thread took the transaction first.
                    Err(Error::NotFound { .. }) if !is_free() => {}
                    ended => {
                        // Whatever the result, other threads that want to end it need not wait any longer.
                        engine.tell_given_up();
                        return Ok(ended.map(|()| true)?);
                    }
                }
            }
        }),
        Err(failure) => keep(failure),
    }
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine, `name` valid.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_commit_prepared(
    shared: *mut SharedEngine,
    name: *const XidImage,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { end(shared, name, peregrine::Database::commit_prepared) }
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine, `name` valid.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_rollback_prepared(
    shared: *mut SharedEngine,
    name: *const XidImage,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { end(shared, name, peregrine::Database::rollback_prepared) }
}

/// See the header.
///
/// # Safety
/// `shared` must be an open engine.
#[no_mangle]
pub unsafe extern "C" fn peregrine_engine_sync_log(shared: *mut SharedEngine) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { engine(shared) } {
        Ok(engine) => guard::changing(engine, || {
            engine.check()?;
            engine.database.sync_log()?;
            Ok(true)
        }),
        Err(failure) => keep(failure),
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    use peregrine::os::simulated::SimulatedOs;
    use peregrine::{Database, Options};

    use super::*;
    use crate::engine::Engine;
    use crate::fixture::{record, Open, END, OK};
    use crate::session::{
        peregrine_session_free, peregrine_session_new, peregrine_session_rollback,
    };

    /// How long the open engine of these tests waits for the session of a transaction.
    const PATIENCE: Duration = Duration::from_secs(50);

    /// The server makes the name known before the session that is being closed has given the transaction up.
    #[test]
    fn a_prepared_transaction_is_ended_by_its_name_once_its_session_has_given_it_up() {
        let mut open = Open::new();
        open.start();
        open.insert(record(1, Some(1), None));
        let name = XidImage::of(&Xid::new(1, b"name", b"").unwrap());
        // SAFETY: the session is this thread's.
        let prepared = unsafe { peregrine_session_prepare(open.session, &name, 0) };
        assert_eq!(prepared, OK);
        let engine = open.engine as usize;
        let other = std::thread::spawn(move || {
            // SAFETY: the engine is open until this thread has ended.
            unsafe { peregrine_engine_commit_prepared(engine as *mut SharedEngine, &name) }
        });
        std::thread::sleep(Duration::from_millis(50));
        // SAFETY: the session is not used again.
        unsafe { peregrine_session_free(open.session) };
        open.session = null_mut();
        assert_eq!(other.join().unwrap(), OK);
        // SAFETY: the engine is open.
        assert!(unsafe { engine_of(&open) }.database.prepared().is_empty());
    }

    #[test]
    fn a_session_that_has_given_its_prepared_transaction_up_goes_on_with_another() {
        let open = Open::new();
        open.start();
        open.insert(record(1, Some(1), None));
        let name = XidImage::of(&Xid::new(1, b"name", b"").unwrap());
        // SAFETY: the session is this thread's, and the engine is open.
        unsafe {
            assert_eq!(peregrine_session_prepare(open.session, &name, 0), OK);
            assert_eq!(peregrine_session_detach(open.session), OK);
            open.start();
            open.insert(record(2, Some(2), None));
            assert_eq!(peregrine_session_rollback(open.session), OK);
            assert_eq!(peregrine_engine_commit_prepared(open.engine, &name), OK);
            assert_eq!(peregrine_engine_commit_prepared(open.engine, &name), END);
        }
    }

    /// The second thread waits for the first, and no longer, whatever the result of the first.
    #[test]
    fn of_two_ends_of_one_transaction_at_once_one_ends_it_and_the_other_finds_none() {
        let mut open = Open::new();
        let begin = Instant::now();
        for round in 0..200 {
            open.start();
            open.insert(record(round, Some(1), None));
            let xid = Xid::new(1, b"name", b"").unwrap();
            // SAFETY: the session is this thread's, and freed once; the engine is open.
            unsafe {
                let name = XidImage::of(&xid);
                assert_eq!(peregrine_session_prepare(open.session, &name, 0), OK);
                peregrine_session_free(open.session);
                open.session = null_mut();
                let made = peregrine_session_new(open.engine, 1, &mut open.session);
                assert_eq!(made, OK);
            }
            let (engine, together) = (open.engine as usize, Barrier::new(2));
            let commit = || {
                let name = XidImage::of(&xid);
                together.wait();
                // SAFETY: the engine is open until this thread has ended.
                unsafe { peregrine_engine_commit_prepared(engine as *mut SharedEngine, &name) }
            };
            let mut codes = std::thread::scope(|scope| {
                let others = [scope.spawn(commit), scope.spawn(commit)];
                others.map(|other| other.join().unwrap())
            });
            codes.sort_unstable();
            assert_eq!(codes, [OK, END]);
        }
        assert!(begin.elapsed() < PATIENCE);
    }

    /// The engine of an open table.
    unsafe fn engine_of(open: &Open) -> &SharedEngine {
        // SAFETY: by the caller's promise.
        unsafe { engine(open.engine) }.unwrap()
    }

    #[test]
    fn one_that_no_session_gives_up_is_not_waited_for_for_ever() {
        let os = std::sync::Arc::new(SimulatedOs::new(1));
        let database = Database::open_on(os, "/db", Options::default()).unwrap();
        let engine = Engine::new(database, Duration::from_millis(1));
        assert!(!engine.wait_until_given_up(|| true));
        assert!(engine.wait_until_given_up(|| false));
    }

    #[test]
    fn names_pass_the_c_interface_and_back() {
        let xid = Xid::new(-3, &[7; 64], &[9; 64]).unwrap();
        assert_eq!(XidImage::of(&xid).name().unwrap(), xid);
        let mut image = XidImage::of(&xid);
        image.branch_length = 65;
        assert_eq!(image.name().unwrap_err().code, Code::Invalid);
        image.global_length = u32::MAX;
        assert_eq!(image.name().unwrap_err().code, Code::Invalid);
    }
}
