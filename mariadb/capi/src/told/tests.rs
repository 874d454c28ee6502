use std::cell::RefCell;

use super::repetition::{MOST_MESSAGES, PAUSE};
use super::text::MOST_BYTES;
use super::*;

thread_local! {
    /// The messages that the thread has received.
    static HEARD: RefCell<Vec<(u32, String)>> = const { RefCell::new(Vec::new()) };
}

/// The server's function, which sends a message itself.
unsafe extern "C" fn hear(level: u32, text: *const c_char, length: usize) {
    // SAFETY: the caller gives so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    HEARD.with(|heard| heard.borrow_mut().push((level, text)));
    tracing::error!("of who is told");
}

fn heard() -> Vec<(u32, String)> {
    HEARD.with(|heard| std::mem::take(&mut *heard.borrow_mut()))
}

/// Runs `events` with a listener of its own.
fn listening(told: &'static Mutex<Told>, events: impl FnOnce()) {
    told.lock().tell = Some(hear);
    tracing::subscriber::with_default(Listener(told), events);
}

fn own() -> &'static Mutex<Told> {
    Box::leak(Box::new(Mutex::new(Told::new())))
}

fn line(level: u32, text: &str) -> (u32, String) {
    (level, text.to_owned())
}

#[test]
fn errors_warnings_and_notes_are_told_with_what_they_are_of() {
    listening(own(), || {
        tracing::error!(table = 7, error = %"data is corrupt\nat offset 8", "the table is quarantined");
        tracing::warn!(name = "t", "dropped");
        tracing::info!(transactions = 2, changes = 3, "replayed");
        tracing::debug!("nobody asks");
    });
    let expected = [
        line(
            ERROR,
            "the table is quarantined (table 7): data is corrupt at offset 8",
        ),
        line(WARNING, "dropped (name t)"),
        line(NOTE, "replayed (transactions 2, changes 3)"),
    ];
    assert_eq!(heard(), expected);
}

#[test]
fn nobody_is_told_where_nobody_asks() {
    let told = own();
    listening(told, || {
        told.lock().change(None);
        tracing::error!("unheard");
    });
    assert_eq!(heard(), []);
}

/// The engine may send messages while the server stops listening: it first gets the number of messages left out.
#[test]
fn the_same_message_is_told_once_in_a_while_with_how_often_it_was_not() {
    let told = own();
    listening(told, || {
        for _ in 0..5 {
            tracing::warn!("again");
        }
        tracing::warn!("another");
    });
    assert_eq!(heard(), [line(WARNING, "again"), line(WARNING, "another")]);
    // Pretend that the time has passed.
    for recent in told.lock().repetition.recent.iter_mut().flatten() {
        recent.told -= PAUSE;
    }
    listening(told, || tracing::warn!("again"));
    let text = "again (left out since the last time: 4)";
    assert_eq!(heard(), [line(WARNING, text)]);
    listening(told, || tracing::warn!("again"));
    told.lock().change(None);
    assert_eq!(heard(), [line(NOTE, "messages left out at last: 1")]);
}

#[test]
fn so_many_different_messages_are_told_and_the_others_counted() {
    let told = own();
    let most = MOST_MESSAGES as u32;
    listening(told, || {
        for n in 0..most + 7 {
            tracing::error!("transaction {n}");
        }
    });
    assert_eq!(heard().len(), MOST_MESSAGES);
    for recent in told.lock().repetition.recent.iter_mut().flatten() {
        recent.told -= PAUSE;
    }
    listening(told, || tracing::error!("transaction {most}"));
    let text = format!("transaction {most} (other messages left out: 7)");
    assert_eq!(heard(), [line(ERROR, &text)]);
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let long = "ü".repeat(MOST_BYTES);
    let told = own();
    for _ in 0..2 {
        listening(told, || tracing::error!("x{long}"));
    }
    told.lock().repetition.recent[0].as_mut().unwrap().told -= PAUSE;
    listening(told, || tracing::error!("x{long}"));
    let heard = heard();
    assert_eq!(heard.len(), 2);
    assert!(heard[1].1.ends_with("ü (left out since the last time: 1)"));
    assert!(heard[1].1.len() <= MOST_BYTES);
}

/// Uses the listener of the whole process: with a listener of one thread, `tracing` itself drops such messages.
#[test]
fn what_comes_of_telling_is_not_told() {
    // SAFETY: any thread may call it.
    unsafe { peregrine_tell_to(Some(hear)) };
    tracing::error!("told to all");
    let heard = heard();
    // SAFETY: there is no receiver.
    unsafe { peregrine_tell_to(None) };
    assert_eq!(heard, [line(ERROR, "told to all")]);
}
