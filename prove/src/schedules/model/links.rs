//! Shared rows, which all sessions change.
//!
//! Each change names the content that it found and the content that it left. So the changes of a row must form one
//! chain.

use std::collections::BTreeMap;

use super::reading::Read;

/// A change of a row, by the fingerprints of its content; `None` means no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The row's key.
    pub key: u64,
    /// The content before.
    pub from: Option<u64>,
    /// The content after.
    pub to: Option<u64>,
}

/// Changes of the shared rows by transactions that committed, and by those whose outcome is unknown.
#[derive(Debug, Default)]
pub struct Links {
    /// Changes of acknowledged commits.
    pub acknowledged: Vec<Link>,
    /// Changes of commits that began and were not acknowledged.
    pub begun: Vec<Link>,
}

impl Links {
    /// Checks that these changes, applied one after the other to an empty table, lead to the rows that were found.
    ///
    /// # Errors
    /// The contradiction, in words.
    pub fn lead_to(&self, found: &[Read]) -> Result<(), String> {
        let mut keys: BTreeMap<u64, Option<u64>> = BTreeMap::new();
        let all = || self.acknowledged.iter().chain(&self.begun);
        keys.extend(all().map(|link| (link.key, None)));
        keys.extend(found.iter().map(|read| (read.id, Some(read.print))));
        for (key, last) in keys {
            self.of(key, last)
                .map_err(|what| format!("shared row {key}: {what}"))?;
        }
        Ok(())
    }

    fn of(&self, key: u64, last: Option<u64>) -> Result<(), String> {
        let acknowledged = self.acknowledged.iter().filter(|link| link.key == key);
        let begun = self.begun.iter().filter(|link| link.key == key);
        let known: Vec<Link> = acknowledged.copied().collect();
        let all: Vec<Link> = known.iter().chain(begun).copied().collect();
        for link in &known {
            let Some(from) = link.from else { continue };
            if known.iter().filter(|l| l.from == Some(from)).count() > 1 {
                return Err("two changes began with the same content: one is lost".into());
            }
            if !all.iter().any(|l| l.to == Some(from)) {
                return Err("a change began with what nobody committed".into());
            }
        }
        match last {
            Some(last) => {
                if !all.iter().any(|link| link.to == Some(last)) {
                    return Err("it has content that nobody committed".into());
                }
                if known.iter().any(|link| link.from == Some(last)) {
                    return Err("it has content that a committed change had replaced".into());
                }
            }
            None => {
                let is_left = |link: &&Link| !all.iter().any(|l| l.from == link.to);
                let mut made = known.iter().filter(|link| link.to.is_some());
                if made.any(|link| is_left(&link)) {
                    return Err("it is missing".into());
                }
            }
        }
        // The row was created as often as it was deleted, once more if it exists.
        if self.begun.iter().all(|link| link.key != key) {
            let made = known.iter().filter(|link| link.from.is_none()).count();
            let gone = known.iter().filter(|link| link.to.is_none()).count();
            if made != gone + usize::from(last.is_some()) {
                return Err(format!("made {made} times, and gone {gone} times"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(
        acknowledged: &[(Option<u64>, Option<u64>)],
        begun: &[(Option<u64>, Option<u64>)],
    ) -> Links {
        let link = |&(from, to): &(Option<u64>, Option<u64>)| Link { key: 1, from, to };
        Links {
            acknowledged: acknowledged.iter().map(link).collect(),
            begun: begun.iter().map(link).collect(),
        }
    }

    fn leads(links: &Links, last: Option<u64>) -> bool {
        links.of(1, last).is_ok()
    }

    #[test]
    fn a_chain_leads_to_its_end_and_nowhere_else() {
        let chain = links(
            &[(Some(1), Some(2)), (None, Some(1)), (Some(2), Some(3))],
            &[],
        );
        assert!(leads(&chain, Some(3)));
        assert!(!leads(&chain, Some(2)));
        assert!(!leads(&chain, Some(4)));
        assert!(!leads(&chain, None));
        let gone = links(&[(None, Some(1)), (Some(1), None), (None, Some(2))], &[]);
        assert!(leads(&gone, Some(2)));
        assert!(!leads(&gone, None));
    }

    #[test]
    fn a_lost_change_is_seen() {
        let lost = links(
            &[(None, Some(1)), (Some(1), Some(2)), (Some(1), Some(3))],
            &[],
        );
        assert!(!leads(&lost, Some(3)));
        let twice = links(&[(None, Some(1)), (None, Some(2))], &[]);
        assert!(!leads(&twice, Some(2)));
    }

    #[test]
    fn what_was_not_acknowledged_may_be_there_or_not() {
        let open = links(&[(None, Some(1))], &[(Some(1), Some(2)), (Some(2), None)]);
        assert!(leads(&open, Some(1)));
        assert!(leads(&open, Some(2)));
        assert!(leads(&open, None));
        assert!(!leads(&open, Some(3)));
        let made = links(&[], &[(None, Some(1))]);
        assert!(leads(&made, None));
        assert!(leads(&made, Some(1)));
    }
}
