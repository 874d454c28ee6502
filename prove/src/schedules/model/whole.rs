//! The check over all tables that one commit of each session explains the rows: a transaction is there with all its
//! rows or with none.

use std::collections::BTreeMap;

use super::ledger::Ledger;
use super::links::Links;
use super::reading::Read;
use crate::schedules::tables::AMOUNT;

/// The maximum number of combinations of commits that are tried.
///
/// Commits that left the same rows of their session can't be told apart by those rows. So each of them is possible, and
/// over several sessions the number of combinations is a product.
const MOST_CHOICES: usize = 512;

/// Checks that some combination of commits, one of each session, explains the shared rows and the amounts: all commits
/// up to them must have left these.
///
/// `possible` has for each session the commits that fit its own rows; none of the lists is empty.
///
/// # Errors
/// The contradiction for the combination of the latest commits.
pub fn explained(
    ledgers: &[Ledger],
    possible: &[Vec<usize>],
    shared: &[Read],
    accounts: &[Read],
) -> Result<(), String> {
    let choices: usize = possible.iter().map(Vec::len).product();
    if choices > MOST_CHOICES {
        return in_part(ledgers, possible, shared);
    }
    let mut first = Ok(());
    for choice in 0..choices {
        let mut rest = choice;
        let commits = possible.iter().map(|commits| {
            let at = rest % commits.len();
            rest /= commits.len();
            commits[commits.len() - 1 - at]
        });
        let commits: Vec<usize> = commits.collect();
        let outcome = explains(ledgers, &commits, shared, accounts);
        if outcome.is_ok() {
            return Ok(());
        }
        if choice == 0 {
            first = outcome.map_err(|what| match choices {
                1 => what,
                _ => format!("{what}; nor do {choices} choices of {possible:?} explain it"),
            });
        }
    }
    first
}

/// Checks that these commits, and all before them, explain the shared rows and the amounts.
fn explains(
    ledgers: &[Ledger],
    commits: &[usize],
    shared: &[Read],
    accounts: &[Read],
) -> Result<(), String> {
    let mut links = Links::default();
    let mut moved: BTreeMap<u64, i64> = BTreeMap::new();
    for (ledger, &commit) in ledgers.iter().zip(commits) {
        ledger.add_links(&(commit..commit + 1), &mut links);
        for (account, by) in ledger.moved(commit) {
            *moved.entry(account).or_default() += by;
        }
    }
    links.lead_to(shared)?;
    for read in accounts {
        let by = moved.get(&read.id).copied().unwrap_or(0);
        let expected = AMOUNT.checked_add_signed(by);
        if expected != Some(read.group) {
            return Err(format!(
                "account {} has {}, and commits have made it {expected:?}",
                read.id, read.group
            ));
        }
    }
    Ok(())
}

/// Checks the shared rows alone: each possible commit but the first counts as one whose outcome is unknown.
fn in_part(ledgers: &[Ledger], possible: &[Vec<usize>], shared: &[Read]) -> Result<(), String> {
    let mut links = Links::default();
    for (ledger, commits) in ledgers.iter().zip(possible) {
        if let (Some(first), Some(last)) = (commits.first(), commits.last()) {
            ledger.add_links(&(*first..*last + 1), &mut links);
        }
    }
    links.lead_to(shared)
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Rows;
    use super::super::links::Link;
    use super::super::reading::as_read;
    use super::*;
    use crate::schedules::tables::account;

    #[test]
    fn a_transaction_is_there_in_all_tables_or_in_none() {
        let made = account(3, 5);
        let link = Link {
            key: 3,
            from: None,
            to: Some(made.print),
        };
        let ledger = Ledger::default();
        ledger.begins(&Rows::new(), &[], &[]);
        ledger.begins(&Rows::new(), &[link], &[(0, -7), (1, 7)]);
        let ledgers = [ledger];
        let amounts = |first: u64, second: u64| {
            [
                as_read(0, &account(0, first)),
                as_read(1, &account(1, second)),
            ]
        };
        let (before, after) = (amounts(AMOUNT, AMOUNT), amounts(AMOUNT - 7, AMOUNT + 7));
        let shared = [as_read(3, &made)];
        let either = [vec![0, 1]];
        let holds = |shared: &[Read], accounts: &[Read], possible: &[Vec<usize>]| {
            explained(&ledgers, possible, shared, accounts).is_ok()
        };
        assert!(holds(&[], &before, &either));
        assert!(holds(&shared, &after, &either));
        assert!(!holds(&shared, &before, &either), "half of it");
        assert!(!holds(&[], &after, &either), "half of it");
        assert!(!holds(&[], &before, &[vec![1]]), "it is missing");
        assert!(!holds(&shared, &after, &[vec![0]]), "nobody committed it");
    }
}
