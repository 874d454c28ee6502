//! Equal caches and equal durability: the server options that request them, and the check of the server's variables.

use std::collections::BTreeMap;

use mysql::prelude::Queryable;

use super::Engine;
use crate::error::{HarnessError, Result, StatementContext};

/// The part of the cache size that an engine may round off, in percent.
const ROUNDING_PERCENT: u64 = 2;

/// The settings of a comparison.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The compared engines.
    pub engines: Vec<Engine>,
    /// The size of each engine's cache, in bytes.
    pub cache_bytes: u64,
    /// The largest number of client threads at a time.
    pub most_threads: u32,
    /// The default character set of the server, and so of the tables.
    pub charset: String,
}

impl Settings {
    /// Returns the server options for these settings.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("--character-set-server={}", self.charset),
            format!("--max-connections={}", self.most_threads + 30),
            format!("--thread-cache-size={}", self.most_threads + 30),
            "--table-open-cache=4000".to_owned(),
            "--query-cache-size=0".to_owned(),
            "--query-cache-type=OFF".to_owned(),
            "--skip-log-bin".to_owned(),
            "--secure-file-priv=".to_owned(),
            "--loose-performance-schema=OFF".to_owned(),
        ];
        for engine in Engine::ALL {
            if !self.engines.contains(&engine) {
                // An engine that is not measured must not take memory from the others.
                if engine == Engine::InnoDb {
                    arguments.push("--innodb-buffer-pool-size=16M".to_owned());
                }
                continue;
            }
            if let Some(variable) = engine.cache_variable() {
                arguments.push(option(variable, self.cache_bytes));
            }
            if let Some(variable) = engine.durability_variable() {
                arguments.push(option(variable, 1));
            }
            for extra in extra_options(engine) {
                arguments.push((*extra).to_owned());
            }
        }
        arguments
    }

    /// Reads the server's variables, checks them, and returns those that matter to the comparison.
    ///
    /// # Errors
    /// When an engine is missing, or when its cache or durability differs from the requested one.
    pub fn verify(&self, connection: &mut mysql::Conn) -> Result<BTreeMap<String, String>> {
        let variables = global_variables(connection)?;
        check_engines(connection, &self.engines)?;
        self.check_variables(&variables)?;
        Ok(noted(variables, &self.engines))
    }

    fn check_variables(&self, variables: &BTreeMap<String, String>) -> Result<()> {
        let read = |name: &str| -> Result<u64> {
            variables
                .get(name)
                .and_then(|value| value.parse().ok())
                .ok_or_else(|| HarnessError::Server(format!("the server has no variable {name}")))
        };
        for engine in &self.engines {
            let Some(variable) = engine.cache_variable() else {
                continue;
            };
            let cache = read(variable)?;
            if cache.abs_diff(self.cache_bytes) > self.cache_bytes / 100 * ROUNDING_PERCENT {
                return Err(HarnessError::Server(format!(
                    "the caches are not equal: {variable} is {cache} bytes, not {}; choose a --cache that every \
                     engine can have, e.g. a multiple of 128M",
                    self.cache_bytes
                )));
            }
            if let Some(variable) = engine.durability_variable() {
                let value = read(variable)?;
                if value != 1 {
                    return Err(HarnessError::Server(format!(
                        "the durability is not equal: {variable} is {value}, not 1"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Returns every global variable of the server.
///
/// # Errors
/// When the server does not answer.
pub fn global_variables(connection: &mut mysql::Conn) -> Result<BTreeMap<String, String>> {
    let statement = "SHOW GLOBAL VARIABLES";
    let all = connection
        .query_map(statement, |(name, value): (String, String)| (name, value))
        .running(statement)?;
    Ok(all.into_iter().collect())
}

/// Returns, for each of the engines, whether it has transactions.
///
/// # Errors
/// When the server lacks one of the engines; the message lists those that it has.
pub fn check_engines(
    connection: &mut mysql::Conn,
    engines: &[Engine],
) -> Result<BTreeMap<Engine, bool>> {
    let statement = "SELECT engine, coalesce(transactions, 'NO') FROM information_schema.engines \
                     WHERE support IN ('YES', 'DEFAULT')";
    let there: Vec<(String, String)> = connection.query(statement).running(statement)?;
    let mut found = BTreeMap::new();
    for engine in engines {
        let listed = there
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(engine.sql_name()));
        let Some((_, transactions)) = listed else {
            let names: Vec<&str> = there.iter().map(|(name, _)| name.as_str()).collect();
            return Err(HarnessError::Server(format!(
                "the server has no engine {}: it has {}",
                engine.sql_name(),
                names.join(", ")
            )));
        };
        found.insert(*engine, transactions.eq_ignore_ascii_case("yes"));
    }
    Ok(found)
}

/// Returns the server's variables that matter to the comparison of engines.
#[must_use]
pub fn noted(
    mut variables: BTreeMap<String, String>,
    engines: &[Engine],
) -> BTreeMap<String, String> {
    let matters = |engine: &Engine, name: &str| {
        engine.cache_variable() == Some(name)
            || (prefix(*engine).is_some_and(|prefix| name.starts_with(prefix))
                && (name.contains("flush")
                    || name.contains("log_file_size")
                    || name.contains("doublewrite")))
    };
    variables.retain(|name, _| {
        NOTED.contains(&name.as_str())
            || engines.iter().any(|engine| matters(engine, name))
            || name.starts_with("peregrine_")
    });
    variables
}

/// Variables that the results record in addition to those of the engines.
const NOTED: [&str; 14] = [
    "version",
    "version_comment",
    "character_set_server",
    "collation_server",
    "max_connections",
    "query_cache_type",
    "log_bin",
    "innodb_flush_method",
    "myisam_sort_buffer_size",
    "aria_sort_buffer_size",
    "sync_binlog",
    "transaction_isolation",
    "tx_isolation",
    "thread_handling",
];

fn prefix(engine: Engine) -> Option<&'static str> {
    match engine {
        Engine::InnoDb => Some("innodb_"),
        Engine::MyIsam => Some("myisam_"),
        Engine::Aria => Some("aria_"),
        Engine::MyRocks => Some("rocksdb_"),
        Engine::Peregrine => Some("peregrine_"),
        Engine::Embedded(_) | Engine::Other(_) => None,
    }
}

/// Returns options that users of an engine set before a large load; none of them changes durability or the cache.
fn extra_options(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::InnoDb => &["--innodb-log-file-size=1G"],
        Engine::MyIsam => &["--myisam-sort-buffer-size=256M"],
        Engine::Aria => &["--aria-sort-buffer-size=256M"],
        // Without this option, MyRocks refuses a load in one transaction beyond rocksdb_max_row_locks rows.
        Engine::MyRocks => &["--loose-rocksdb-commit-in-the-middle=ON"],
        Engine::Peregrine | Engine::Embedded(_) | Engine::Other(_) => &[],
    }
}

fn option(variable: &str, value: u64) -> String {
    format!("--{}={value}", variable.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(engines: &[Engine]) -> Settings {
        Settings {
            engines: engines.to_vec(),
            cache_bytes: 1 << 30,
            most_threads: 64,
            charset: "latin1".to_owned(),
        }
    }

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn every_engine_is_given_the_same_cache_and_durability() {
        let arguments = settings(&Engine::ALL).arguments();
        for engine in Engine::ALL {
            let variable = engine.cache_variable().expect("a variable");
            let cache = format!("--{}=1073741824", variable.replace('_', "-"));
            assert!(arguments.contains(&cache), "{cache}");
            if let Some(variable) = engine.durability_variable() {
                let durability = format!("--{}=1", variable.replace('_', "-"));
                assert!(arguments.contains(&durability), "{durability}");
            }
        }
    }

    #[test]
    fn unequal_caches_and_durability_are_refused() {
        let two = settings(&[Engine::InnoDb, Engine::MyIsam]);
        let right = [
            ("innodb_buffer_pool_size", "1073741824"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("key_buffer_size", "1073700000"),
        ];
        two.check_variables(&variables(&right)).expect("equal");

        let mut smaller = right;
        smaller[2].1 = "134217728";
        let message = two
            .check_variables(&variables(&smaller))
            .expect_err("unequal")
            .to_string();
        assert!(message.contains("key_buffer_size"), "{message}");

        let mut lazy = right;
        lazy[1].1 = "2";
        let message = two
            .check_variables(&variables(&lazy))
            .expect_err("unequal")
            .to_string();
        assert!(
            message.contains("innodb_flush_log_at_trx_commit is 2"),
            "{message}"
        );

        let message = two
            .check_variables(&variables(&right[..2]))
            .expect_err("missing")
            .to_string();
        assert!(message.contains("key_buffer_size"), "{message}");
    }
}
