//! The hosts of a measurement session: a server, embedded stores, or both.

use super::embedded_host::EmbeddedHost;
use super::host::Host;
use super::server_host::{Ending, ServerHost};
use crate::results::record::Deferred;
use crate::runner::kept::Kept;
use crate::workload::Workload;
use peregrine_harness::engines::{Engine, Session};
use peregrine_harness::error::{HarnessError, Result};

/// A server, if one of its engines is measured, and the embedded stores that are measured.
pub(in crate::runner) struct Hosts<'a> {
    pub server: Option<Box<dyn ServerHost + 'a>>,
    pub embedded: EmbeddedHost,
}

impl Hosts<'_> {
    /// Ends the use of all hosts, and removes what is not needed any more.
    ///
    /// # Errors
    /// The first error; the other host is ended all the same.
    pub fn end(&mut self, ending: Ending, keep_data: bool) -> Result<()> {
        let server = match &mut self.server {
            Some(server) => server.end(ending),
            None => Ok(()),
        };
        let embedded = self.embedded.end(keep_data || ending != Ending::Complete);
        server.and(embedded)
    }

    fn of(&self, engine: Engine) -> Option<&dyn Host> {
        match &self.server {
            _ if engine.is_embedded() => Some(&self.embedded),
            Some(server) => Some(&**server),
            None => None,
        }
    }

    fn of_mut(&mut self, engine: Engine) -> Result<&mut dyn Host> {
        match &mut self.server {
            _ if engine.is_embedded() => Ok(&mut self.embedded),
            Some(server) => Ok(&mut **server),
            None => Err(HarnessError::Server(format!(
                "there is no server for {}",
                engine.title()
            ))),
        }
    }
}

impl Host for Hosts<'_> {
    fn sessions(&mut self, engine: Engine, count: usize) -> Result<&mut [Box<dyn Session>]> {
        self.of_mut(engine)?.sessions(engine, count)
    }

    fn peak_resident_bytes(&self, engine: Engine) -> Option<u64> {
        self.of(engine)?.peak_resident_bytes(engine)
    }

    fn cpu_seconds(&self, engine: Engine) -> Option<f64> {
        self.of(engine)?.cpu_seconds(engine)
    }

    fn kept(&self, engine: Engine) -> Kept {
        match self.of(engine) {
            Some(host) => host.kept(engine),
            None => Kept {
                durability: engine.durability().to_owned(),
                cache_bytes: 0,
            },
        }
    }

    fn load_again(&mut self, workload: &Workload, engine: Engine, tables: &[usize]) -> Result<()> {
        self.of_mut(engine)?.load_again(workload, engine, tables)
    }

    fn drain(&mut self, engine: Engine) -> Result<Option<Deferred>> {
        self.of_mut(engine)?.drain(engine)
    }

    fn recover(&mut self, engine: Engine) -> Result<Option<String>> {
        self.of_mut(engine)?.recover(engine)
    }
}
