//! The errors of writers that are no faults.

/// Errors that a writer may get because of other writers: deadlock, lock wait timeout, and a row changed since the
/// snapshot.
const REFUSALS: [u16; 3] = [1213, 1205, 1020];

/// Returns the error as a fault, unless it is one of these; a lost connection is a fault.
pub fn fault(error: &mysql::Error) -> Option<String> {
    match error {
        mysql::Error::MySqlError(error) if REFUSALS.contains(&error.code) => None,
        other => Some(format!("a writer: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_server_that_come_from_others_are_nobodys_fault() {
        let of_server = |code| {
            mysql::Error::MySqlError(mysql::error::MySqlError {
                state: "HY000".to_owned(),
                message: "some".to_owned(),
                code,
            })
        };
        assert_eq!(fault(&of_server(1213)), None);
        assert!(fault(&of_server(1030)).is_some());
        let gone = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        assert!(fault(&mysql::Error::IoError(gone)).is_some());
    }
}
