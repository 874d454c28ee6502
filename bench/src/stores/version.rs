//! The versions of the stores in this program.

use peregrine_harness::engines::Embedded;

/// The lock file with the libraries of this program.
const LOCKED: &str = include_str!("../../../Cargo.lock");

/// Returns the version of a store.
#[must_use]
pub fn version(store: Embedded) -> String {
    match store {
        Embedded::Library => of_library("peregrine"),
        Embedded::Sqlite => rusqlite::version().to_owned(),
        Embedded::Lmdb => {
            let version = heed::lmdb_version();
            format!("{}.{}.{}", version.major, version.minor, version.patch)
        }
        Embedded::Redb => of_library("redb"),
        Embedded::Fjall => of_library("fjall"),
    }
}

fn of_library(name: &str) -> String {
    let entry = format!("name = \"{name}\"\nversion = \"");
    let rest = LOCKED.split_once(&entry).map(|(_, rest)| rest);
    let found = rest.and_then(|rest| rest.split_once('"'));
    found.map_or_else(String::new, |(version, _)| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_has_a_version() {
        for store in Embedded::ALL {
            let version = version(store);
            let mut parts = version.split('.');
            let is_number = |part: &str| part.parse::<u32>().is_ok();
            assert!(
                parts.clone().count() == 3 && parts.all(is_number),
                "{store:?} {version}"
            );
        }
    }
}
