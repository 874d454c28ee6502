//! How a query runs: the session's settings, and indexes that are forced or ignored.

use peregrine_harness::dice::Dice;
use peregrine_harness::engines::Engine;

/// The flags of `optimizer_switch` about finding, joining and sorting rows.
const SWITCHES: [&str; 31] = [
    "index_merge",
    "index_merge_union",
    "index_merge_sort_union",
    "index_merge_intersection",
    "index_merge_sort_intersection",
    "index_condition_pushdown",
    "derived_merge",
    "derived_with_keys",
    "firstmatch",
    "loosescan",
    "materialization",
    "in_to_exists",
    "semijoin",
    "partial_match_rowid_merge",
    "partial_match_table_scan",
    "subquery_cache",
    "mrr",
    "mrr_cost_based",
    "mrr_sort_keys",
    "outer_join_with_cache",
    "semijoin_with_cache",
    "join_cache_incremental",
    "join_cache_hashed",
    "join_cache_bka",
    "optimize_join_buffer_size",
    "extended_keys",
    "exists_to_in",
    "condition_pushdown_for_derived",
    "split_materialized",
    "rowid_filter",
    "not_null_range_scan",
];

/// Sizes and levels on which plans depend.
///
/// The first value of each stands for the default.
const VARIABLES: [(&str, &[&str]); 8] = [
    (
        "join_cache_level",
        &["2", "0", "1", "3", "4", "5", "6", "7", "8"],
    ),
    ("join_buffer_size", &["262144", "128", "1024"]),
    ("sort_buffer_size", &["2097152", "1024", "16384"]),
    ("tmp_memory_table_size", &["16777216", "0", "16384"]),
    ("mrr_buffer_size", &["262144", "8192"]),
    ("read_rnd_buffer_size", &["262144", "1", "8200"]),
    ("eq_range_index_dive_limit", &["200", "1"]),
    ("optimizer_use_condition_selectivity", &["4", "1", "3", "5"]),
];

/// A plan.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The session's settings.
    pub settings: Vec<String>,
    /// The text after the name of a query's only table.
    pub hint: String,
}

impl Plan {
    /// The server's own plan, in which the server reads each row: `engine` runs no statement itself.
    pub fn of_the_server(engine: Engine) -> Plan {
        let mut settings = vec!["optimizer_switch = 'default'".to_owned()];
        let defaults = VARIABLES
            .iter()
            .map(|(name, _)| format!("{name} = DEFAULT"));
        settings.extend(defaults);
        if engine == Engine::Peregrine {
            settings.push("peregrine_pushdown = OFF".to_owned());
        }
        Plan {
            settings,
            hint: String::new(),
        }
    }

    /// Draws a plan for a query of one table with these keys, or of several tables.
    pub fn some(dice: &mut Dice, engine: Engine, keys: Option<&str>) -> Plan {
        let mut settings = Vec::new();
        if engine == Engine::Peregrine {
            let pushdown = ["ON", "ON", "OFF"][dice.below(3) as usize];
            settings.push(format!("peregrine_pushdown = {pushdown}"));
        }
        // Mostly changes few flags: if all change, half of the plans exclude each other.
        let one_in = [2, 6, 20][dice.below(3) as usize];
        let mut switches = vec!["default".to_owned()];
        for name in SWITCHES {
            if dice.below(one_in) == 0 {
                let value = ["on", "off"][dice.below(2) as usize];
                switches.push(format!("{name}={value}"));
            }
        }
        // Switching both off is an error: at least one way to run a subquery must stay.
        if switches.contains(&"in_to_exists=off".to_owned()) {
            switches.retain(|switch| switch != "materialization=off");
        }
        settings.push(format!("optimizer_switch = '{}'", switches.join(",")));
        for (name, values) in VARIABLES {
            let at = match dice.below(3) {
                0 => dice.below(values.len() as u32) as usize,
                _ => 0,
            };
            settings.push(format!("{name} = {}", values[at]));
        }
        let hint = keys.map_or_else(String::new, |keys| some_hint(dice, keys));
        Plan { settings, hint }
    }

    /// Returns the settings as one statement.
    pub fn setting(&self) -> String {
        format!("SET SESSION {}", self.settings.join(", SESSION "))
    }
}

fn some_hint(dice: &mut Dice, keys: &str) -> String {
    let names = names(keys);
    match dice.below(4) {
        0 => String::new(),
        1 => {
            let ignored: Vec<&str> = names
                .iter()
                .copied()
                .filter(|_| dice.below(2) == 0)
                .collect();
            match ignored.is_empty() {
                true => " USE INDEX ()".to_owned(),
                false => format!(" IGNORE INDEX ({})", ignored.join(", ")),
            }
        }
        _ => {
            let name = names[dice.below(names.len() as u32) as usize];
            format!(" FORCE INDEX ({name})")
        }
    }
}

/// Returns the names of a table's keys.
pub fn names(keys: &str) -> Vec<&str> {
    keys.split("), ")
        .filter_map(|key| {
            let key = key.strip_prefix("UNIQUE ").unwrap_or(key);
            match key.strip_prefix("PRIMARY KEY") {
                Some(_) => Some("PRIMARY"),
                None => key.strip_prefix("KEY ")?.split(' ').next(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pushdown::tables::TABLES;

    #[test]
    fn all_keys_have_their_names() {
        let found = TABLES.map(|(_, keys)| names(keys).join(" "));
        assert_eq!(
            found,
            [
                "PRIMARY ab w idb d",
                "PRIMARY id cv f",
                "PRIMARY baw v t",
                "ida wide back"
            ]
        );
    }

    #[test]
    fn a_subquery_can_be_run_in_one_way_at_least() {
        let mut dice = Dice::new(1, 1);
        for _ in 0..1_000 {
            let setting = Plan::some(&mut dice, Engine::Peregrine, None).setting();
            let off = |name: &str| setting.contains(&format!("{name}=off"));
            assert!(
                !(off("in_to_exists") && off("materialization")),
                "{setting}"
            );
        }
    }
}
