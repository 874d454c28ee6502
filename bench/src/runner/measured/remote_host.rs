//! A running server at a URL, which the benchmark did not start.
//!
//! The benchmark changes only the schemas of the measured engines, which it creates and drops. It records the server's
//! settings and leaves them as they are.

use std::collections::BTreeMap;

use mysql::prelude::Queryable;

use super::host::Host;
use super::server_host::{Ending, ServerHost};
use crate::results::record::{Elsewhere, RunSettings};
use crate::runner::kept::Kept;
use crate::runner::loading::{Loading, Place, TableFile};
use crate::runner::plan::request::Request;
use crate::workload::Workload;
use peregrine_harness::engines::mariadb::MariaDb;
use peregrine_harness::engines::settings::{check_engines, global_variables, noted};
use peregrine_harness::engines::{Engine, ServerUrl, Session, Target};
use peregrine_harness::error::{HarnessError, Result, StatementContext};

/// A server at a URL.
pub(in crate::runner) struct RemoteHost {
    target: MariaDb,
    engines: Vec<Engine>,
    variables: BTreeMap<String, String>,
    charset: String,
    sessions: Vec<Box<dyn Session>>,
    files: Vec<TableFile>,
    keep_data: bool,
    resumes: bool,
}

/// Asks a server for the facts that planning needs.
///
/// # Errors
/// When it can't be reached, or lacks one of the engines.
pub(in crate::runner) fn ask(url: &ServerUrl, engines: &[Engine]) -> Result<Elsewhere> {
    let mut connection = MariaDb::at(url).administration()?;
    let found = check_engines(&mut connection, engines)?;
    Ok(Elsewhere {
        url: url.to_string(),
        transactional: found
            .into_iter()
            .filter_map(|(engine, has)| has.then_some(engine))
            .collect(),
    })
}

impl RemoteHost {
    /// Checks that the server has the engines, and no schemas of theirs; a resumed run may find its schemas.
    pub fn start(url: &ServerUrl, request: &Request, settings: &RunSettings) -> Result<Self> {
        let target = MariaDb::at(url);
        let mut connection = target.administration()?;
        check_engines(&mut connection, &settings.engines)?;
        let statement = "SELECT schema_name FROM information_schema.schemata";
        let there: Vec<String> = connection.query(statement).running(statement)?;
        for engine in &settings.engines {
            let schema = engine.schema();
            if there.contains(&schema) && !request.resume {
                return Err(HarnessError::Usage(format!(
                    "the server at {url} has a schema {schema} already, of another run that was interrupted, still goes \
                     on, or kept its data: go on with that (--resume), or DROP DATABASE {schema}"
                )));
            }
        }
        Ok(Self {
            variables: global_variables(&mut connection)?,
            target,
            engines: settings.engines.clone(),
            charset: settings.charset.clone(),
            sessions: Vec::new(),
            files: Vec::new(),
            keep_data: request.keep_data,
            resumes: request.resume,
        })
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}

impl Host for RemoteHost {
    fn sessions(&mut self, _: Engine, count: usize) -> Result<&mut [Box<dyn Session>]> {
        while self.sessions.len() < count {
            self.sessions.push(self.target.connect()?);
        }
        Ok(&mut self.sessions[..count])
    }

    fn peak_resident_bytes(&self, _: Engine) -> Option<u64> {
        None
    }

    fn cpu_seconds(&self, _: Engine) -> Option<f64> {
        None
    }

    fn kept(&self, engine: Engine) -> Kept {
        let durability = match engine
            .durability_variable()
            .and_then(|name| Some((name, self.variable(name)?)))
        {
            Some((_, "1")) | None => engine.durability().to_owned(),
            Some((name, value)) => format!("{name}={value}"),
        };
        let cache = engine.cache_variable().and_then(|name| self.variable(name));
        Kept {
            durability,
            cache_bytes: cache.and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
        }
    }

    fn load_again(&mut self, workload: &Workload, engine: Engine, tables: &[usize]) -> Result<()> {
        let mut connection = self.administration()?;
        let loading = self.loading(workload, engine)?;
        loading.load_again(&mut connection, engine, tables)
    }

    fn recover(&mut self, _: Engine) -> Result<Option<String>> {
        // The sessions may have lost their connections. If the server is gone, the next connection fails.
        self.sessions.clear();
        self.administration()?;
        Ok(None)
    }
}

impl ServerHost for RemoteHost {
    fn administration(&self) -> Result<mysql::Conn> {
        self.target.administration()
    }

    fn variables(&self, _: &mut mysql::Conn) -> Result<BTreeMap<String, String>> {
        Ok(noted(self.variables.clone(), &self.engines))
    }

    fn has_new_data(&self) -> bool {
        !self.resumes
    }

    fn start_again(&mut self, _: u64) -> Result<()> {
        Err(HarnessError::Usage(
            "a server that is reached by its URL can't be started again with another cache"
                .to_owned(),
        ))
    }

    fn take(&mut self, files: Vec<TableFile>) {
        self.files = files;
    }

    fn loading<'h>(&'h self, workload: &'h Workload, engine: Engine) -> Result<Loading<'h>> {
        let local_infile = self
            .variable("local_infile")
            .is_some_and(|value| ["ON", "1"].contains(&value));
        Ok(Loading {
            workload,
            files: &self.files,
            place: Place::Elsewhere {
                local_infile,
                charset: &self.charset,
            },
            kept: self.kept(engine),
        })
    }

    fn end(&mut self, ending: Ending) -> Result<()> {
        self.sessions.clear();
        if self.keep_data || ending == Ending::Interrupted {
            return Ok(());
        }
        let mut connection = self.administration()?;
        for engine in &self.engines {
            let statement = format!("DROP DATABASE IF EXISTS {}", engine.schema());
            connection.query_drop(&statement).running(&statement)?;
        }
        Ok(())
    }
}
