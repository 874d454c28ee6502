//! One measurement session of the benchmark, from the server's start to the last line of the results.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use mysql::prelude::Queryable;

use super::load::background_load;
use super::loading::TableFile;
use super::machine;
use super::measured::embedded_host::EmbeddedHost;
use super::measured::hosts::Hosts;
use super::measured::remote_host::{
    RemoteHost, {self},
};
use super::measured::sandbox_host::SandboxHost;
use super::measured::server_host::{Ending, ServerHost};
use super::measuring::Measuring;
use super::plan::command_line::command;
use super::plan::planned::read;
use super::plan::request::{Request, Server};
use super::plan::{matrix, plans};
use super::progress::Progress;
use crate::normal::{Answers, Generator};
use crate::results::file::{
    Journal, FILE_NAME, {self},
};
use crate::results::record::{Finish, Header, Line, Load, Planned, RunSettings, FORMAT};
use crate::stores;
use crate::workload::{data_file, Mode, Workload};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, PathContext, Result, StatementContext};
use peregrine_harness::interrupt;

/// The outcome of a complete run.
#[derive(Debug)]
pub struct Outcome {
    /// Every line of the results.
    pub lines: Vec<Line>,
}

/// Runs the benchmark, or resumes it.
///
/// # Errors
/// [`HarnessError::Interrupted`] when the user stops it. Then the server is stopped, too, and the results so far are
/// kept.
pub fn run(request: &Request) -> Result<Outcome> {
    let begun = Instant::now();
    interrupt::flag();
    std::fs::create_dir_all(&request.out).at("cannot create", &request.out)?;
    let mut lines = Vec::new();
    let mut settings = request.settings.clone();
    if request.resume {
        lines = file::read(&request.out)?;
        if let Some(header) = file::header(&lines) {
            settings = header.settings.clone();
        }
        same_server(&settings, &request.server)?;
    } else if request.out.join(FILE_NAME).exists() {
        return Err(HarnessError::Usage(format!(
            "{} has results already: go on with them (--resume --out {}), or choose another --out",
            request.out.display(),
            request.out.display()
        )));
    }
    if let (Server::Url(url), None) = (&request.server, &settings.server) {
        settings.server = Some(remote_host::ask(url, &settings.engines)?);
    }
    if matches!(request.server, Server::None) && !settings.server_engines().is_empty() {
        return Err(HarnessError::Usage(
            "engines of a server can't be measured without one".to_owned(),
        ));
    }
    let mut progress = Progress::new();
    let result = measure_session(request, &settings, lines, begun, &mut progress);
    progress.end();
    result
}

/// Checks that results are resumed on the server on which they were begun.
fn same_server(settings: &RunSettings, server: &Server) -> Result<()> {
    match (&settings.server, server) {
        (None, Server::Private(_) | Server::None) => Ok(()),
        (Some(before), Server::Url(url)) if before.url == url.to_string() => Ok(()),
        (None, Server::Url(_)) => Err(HarnessError::Usage(
            "the results were begun on private servers: go on with them without --url".to_owned(),
        )),
        (Some(before), _) => Err(HarnessError::Usage(format!(
            "the results were begun on the server at {}: go on with them with --url, and its password",
            before.url
        ))),
    }
}

fn measure_session(
    request: &Request,
    settings: &RunSettings,
    mut lines: Vec<Line>,
    begun: Instant,
    progress: &mut Progress,
) -> Result<Outcome> {
    for planned in &settings.workloads {
        let workload = read(planned, settings)?;
        let measurement_session = MeasurementSession {
            request,
            settings,
            planned,
            workload: &workload,
        };
        if measurement_session.is_done(&lines) {
            continue;
        }
        if settings.workloads.len() > 1 {
            progress.note(&format!("workload {}: {}", workload.name, workload.about));
        }
        lines = measurement_session.run(lines, progress)?;
    }
    if !lines.iter().any(|line| matches!(line, Line::Finish(_))) {
        let finish = Line::Finish(Finish {
            finished: jiff::Timestamp::now().to_string(),
            seconds: begun.elapsed().as_secs_f64().round(),
        });
        let (mut journal, _) = Journal::resume(&request.out)?;
        journal.append(&finish)?;
        lines.push(finish);
    }
    Ok(Outcome { lines })
}

fn stop_if_asked() -> Result<()> {
    if interrupt::requested() {
        Err(HarnessError::Interrupted)
    } else {
        Ok(())
    }
}

/// One workload on a server of its own, so that no other workload's data affects it.
struct MeasurementSession<'a> {
    request: &'a Request,
    settings: &'a RunSettings,
    planned: &'a Planned,
    workload: &'a Workload,
}

impl MeasurementSession<'_> {
    fn run(&self, lines: Vec<Line>, progress: &mut Progress) -> Result<Vec<Line>> {
        let answers = self.workload.normal_rows().map(|rows| {
            progress.preparing("computing the right answers");
            Answers::compute(&Generator::new(self.settings.seed, rows), |_| ())
        });
        stop_if_asked()?;
        // The server starts last, so that an earlier failure leaves no server running.
        let embedded = self.open_stores(&lines)?;
        let mut hosts = Hosts {
            server: self.start_server(progress)?,
            embedded,
        };
        let result = self.on_hosts(&mut hosts, answers.as_ref(), lines, progress);
        progress.preparing("leaving the server");
        // If ending the server fails, that is an error, but a failure before it matters more.
        let left = hosts.end(Ending::of(&result), self.request.keep_data);
        let rows = self.rows_dir();
        if rows.exists() {
            std::fs::remove_dir_all(&rows).at("cannot remove", &rows)?;
        }
        let lines = result?;
        left?;
        Ok(lines)
    }

    /// Starts the server, if the session measures engines of a server.
    fn start_server(&self, progress: &Progress) -> Result<Option<Box<dyn ServerHost + '_>>> {
        Ok(match &self.request.server {
            Server::Private(server) => {
                progress.preparing("starting the server");
                let name = format!("server-{}", self.workload.name);
                let dir = self.request.out.join(name);
                let background =
                    u32::try_from(background_load::sessions(self.workload)).unwrap_or(u32::MAX);
                let keep = self.request.keep_data;
                Some(Box::new(SandboxHost::start(
                    server,
                    keep,
                    self.settings,
                    background,
                    &dir,
                )?))
            }
            Server::Url(url) => {
                let host = RemoteHost::start(url, self.request, self.settings)?;
                Some(Box::new(host))
            }
            Server::None => None,
        })
    }

    /// Opens the embedded stores of the session, with the data loaded before.
    fn open_stores(&self, lines: &[Line]) -> Result<EmbeddedHost> {
        let mut stores = self.settings.embedded();
        let part = self.engines();
        stores.retain(|store| part.contains(&Engine::Embedded(*store)));
        let mut loaded = stores.clone();
        loaded.retain(|store| self.was_loaded(lines, Engine::Embedded(*store)));
        let name = format!("embedded-{}", self.workload.name);
        let dir = self.request.out.join(name);
        EmbeddedHost::open(&dir, self.settings.cache_bytes, &stores, &loaded)
    }

    fn on_hosts(
        &self,
        hosts: &mut Hosts<'_>,
        answers: Option<&Answers>,
        mut lines: Vec<Line>,
        progress: &mut Progress,
    ) -> Result<Vec<Line>> {
        let header = self.header(hosts)?;
        let mut journal = match file::header(&lines) {
            None => {
                let journal = Journal::create(&self.request.out, &header)?;
                lines.push(Line::Header(Box::new(header)));
                journal
            }
            Some(before) => {
                must_be_same(before, &header)?;
                Journal::resume(&self.request.out)?.0
            }
        };
        let mut write = |line: &Line| {
            journal.append(line)?;
            lines.push(line.clone());
            Ok(())
        };
        // Reads the lines again, because `write` borrows them.
        let before = file::read(&self.request.out)?;
        if let Some(host) = hosts.server.as_deref_mut() {
            if self.workload.mode == Mode::Load {
                self.load_in_every_way(host, &before, &mut write, progress)?;
                return Ok(lines);
            }
            self.load(host, &before, &mut write, progress)?;
            let mut connection = host.administration()?;
            self.explain(&mut connection, &before, &mut write, progress)?;
        }
        self.fill(&mut hosts.embedded, &mut write, progress)?;

        let done = matrix::done(&before);
        let work = matrix::remaining(self.settings, self.workload, &self.planned.cells, &done);
        Measuring {
            settings: self.settings,
            workload: self.workload,
            answers,
            stop: interrupt::flag(),
            write: &mut write,
            progress,
        }
        .all(&work, hosts)?;
        Ok(lines)
    }

    /// Returns whether all of the workload is measured.
    fn is_done(&self, lines: &[Line]) -> bool {
        if self.workload.mode == Mode::Load {
            return self.loads_left(lines).is_empty();
        }
        let done = matrix::done(lines);
        matrix::remaining(self.settings, self.workload, &self.planned.cells, &done).is_empty()
    }

    /// For a workload that measures loading: the runs that are left.
    ///
    /// Each round begins with another engine.
    fn loads_left(&self, lines: &[Line]) -> Vec<(u32, Engine)> {
        let mut left = Vec::new();
        for run in 1..=self.settings.runs {
            let mut engines = self.settings.server_engines();
            let first = run as usize % engines.len().max(1);
            engines.rotate_left(first);
            left.extend(engines.into_iter().map(|engine| (run, engine)));
        }
        left.retain(|(run, engine)| {
            !lines.iter().any(|line| {
                matches!(line, Line::Load(load) if load.workload == self.workload.name
                    && load.run == *run && load.engine == *engine)
            })
        });
        left
    }

    /// Measures loading itself.
    fn load_in_every_way(
        &self,
        host: &mut dyn ServerHost,
        before: &[Line],
        write: &mut dyn FnMut(&Line) -> Result<()>,
        progress: &mut Progress,
    ) -> Result<()> {
        host.take(self.files(progress)?);
        let mut connection = host.administration()?;
        let left = self.loads_left(before);
        progress.matrix(left.len(), left.len() as f64);
        for (run, engine) in left {
            stop_if_asked()?;
            progress.run(&format!("loading {}, run {run}", engine.title()));
            let loading = host.loading(self.workload, engine)?;
            let load = loading.in_every_way(&mut connection, engine, run)?;
            progress.advance(1.0);
            progress.group_done(&format!(
                "{:<10} run {run}: LOAD DATA {:.1} s, INSERT {:.1} s, indexes {:.1} s, {:.0} MB on disk",
                engine.title(),
                load.seconds,
                load.insert_s.unwrap_or_default(),
                load.index_s.unwrap_or_default(),
                load.disk_bytes as f64 / 1e6,
            ));
            write(&Line::Load(load))?;
        }
        Ok(())
    }

    /// The engines of the session: all that some cell can be measured on.
    fn engines(&self) -> Vec<Engine> {
        let mut engines = self.settings.engines.clone();
        engines.retain(|engine| {
            self.planned
                .cells
                .iter()
                .any(|cell| matrix::engines(self.settings, self.workload, cell).contains(engine))
        });
        engines
    }

    fn load(
        &self,
        host: &mut dyn ServerHost,
        before: &[Line],
        write: &mut dyn FnMut(&Line) -> Result<()>,
        progress: &Progress,
    ) -> Result<()> {
        let was_there = !host.has_new_data();
        let mut missing = self.engines();
        missing.retain(|engine| {
            !engine.is_embedded() && (!was_there || !self.was_loaded(before, *engine))
        });
        let again = &self.workload.transactions;
        if missing.is_empty() && again.iter().all(|t| t.fresh.is_empty()) {
            return Ok(());
        }
        host.take(self.files(progress)?);
        if missing.is_empty() {
            return Ok(());
        }
        if let Some(bytes) = self.request.loading_cache_bytes {
            host.start_again(bytes)?;
        }
        let mut connection = host.administration()?;
        for engine in missing {
            stop_if_asked()?;
            progress.preparing(&format!("loading {}", engine.title()));
            let loading = host.loading(self.workload, engine)?;
            let load = loading.load(&mut connection, engine)?;
            note(&load, progress);
            write(&Line::Load(load))?;
        }
        if self.request.loading_cache_bytes.is_some() {
            drop(connection);
            progress.preparing("starting the server again");
            host.start_again(self.settings.cache_bytes)?;
        }
        Ok(())
    }

    /// Returns whether the results say that an engine was loaded with the workload's tables.
    fn was_loaded(&self, lines: &[Line], engine: Engine) -> bool {
        lines.iter().any(|line| {
            matches!(line, Line::Load(load)
                if load.engine == engine && load.workload == self.workload.name)
        })
    }

    /// Loads the embedded stores that are empty.
    fn fill(
        &self,
        host: &mut EmbeddedHost,
        write: &mut dyn FnMut(&Line) -> Result<()>,
        progress: &Progress,
    ) -> Result<()> {
        let Some(rows) = self.workload.normal_rows() else {
            return Ok(());
        };
        let generator = Generator::new(self.settings.seed, rows);
        for store in host.empty() {
            progress.preparing(&format!("loading {}", store.title()));
            let load = host.load(self.workload, store, &generator)?;
            note(&load, progress);
            write(&Line::Load(load))?;
        }
        Ok(())
    }

    /// The directory of the files with the tables' rows, while tables may be loaded.
    fn rows_dir(&self) -> PathBuf {
        let name = format!("rows-{}", self.workload.name);
        self.request.out.join(name)
    }

    /// Writes the rows of every table to a file.
    fn files(&self, progress: &Progress) -> Result<Vec<TableFile>> {
        let dir = self.rows_dir();
        std::fs::create_dir_all(&dir).at("cannot create", &dir)?;
        let mut files = Vec::new();
        for table in &self.workload.tables {
            progress.preparing(&format!("generating the rows of {}", table.name));
            let path = dir.join(format!("{}.tsv", table.name));
            let path = std::path::absolute(&path).at("cannot resolve", &path)?;
            let goes_on = || !interrupt::requested();
            let rows = data_file::write(table, self.settings.seed, &path, &goes_on)?;
            files.push(TableFile { path, rows });
        }
        Ok(files)
    }

    fn explain(
        &self,
        connection: &mut mysql::Conn,
        before: &[Line],
        write: &mut dyn FnMut(&Line) -> Result<()>,
        progress: &Progress,
    ) -> Result<()> {
        let known =
            |line: &Line| matches!(line, Line::Plan(plan) if plan.workload == self.workload.name);
        if before.iter().any(known) {
            return Ok(());
        }
        progress.preparing("asking for the plans");
        let mut engines = self.engines();
        engines.retain(|engine| !engine.is_embedded());
        // The baseline comes first, whatever order the user asked for.
        let baseline = super::summary::baseline(&engines);
        engines.sort_by_key(|engine| (*engine != baseline, *engine));
        let cells = &self.planned.cells;
        let plans = plans::explain(
            connection,
            &engines,
            self.workload,
            cells,
            self.settings.seed,
        )?;
        for plan in plans {
            write(&Line::Plan(plan))?;
        }
        Ok(())
    }

    fn header(&self, hosts: &Hosts<'_>) -> Result<Header> {
        let embedded = self.settings.embedded().into_iter();
        let mut engine_versions: BTreeMap<String, String> = embedded
            .map(|store| (store.name().to_owned(), stores::version(store)))
            .collect();
        let mut variables = BTreeMap::new();
        if let Some(host) = &hosts.server {
            let mut connection = host.administration()?;
            variables = host.variables(&mut connection)?;
            engine_versions.extend(self.plugin_versions(&mut connection)?);
        }
        Ok(Header {
            format: FORMAT,
            suite_version: env!("CARGO_PKG_VERSION").to_owned(),
            server_version: variables.get("version").cloned().unwrap_or_default(),
            engine_versions,
            started: jiff::Timestamp::now().to_string(),
            machine: machine::describe(&self.request.out),
            settings: self.settings.clone(),
            variables,
            command: command(self.settings),
        })
    }

    /// The versions of the measured engines, as the server reports them.
    fn plugin_versions(&self, connection: &mut mysql::Conn) -> Result<BTreeMap<String, String>> {
        // Only MariaDB reports the version that a plug-in gives itself.
        let own = "SELECT plugin_name, plugin_version, coalesce(plugin_auth_version, '') \
                   FROM information_schema.plugins WHERE plugin_type = 'STORAGE ENGINE'";
        let plain = "SELECT plugin_name, plugin_version, '' \
                     FROM information_schema.plugins WHERE plugin_type = 'STORAGE ENGINE'";
        let plugins: Vec<(String, String, String)> = match connection.query(own) {
            Ok(plugins) => plugins,
            Err(_) => connection.query(plain).running(plain)?,
        };
        let engines = self.settings.server_engines();
        Ok(plugins
            .into_iter()
            .filter_map(|(name, version, own)| {
                let engine = engines
                    .iter()
                    .find(|engine| engine.sql_name().eq_ignore_ascii_case(&name))?;
                Some((
                    engine.name().to_owned(),
                    if own.is_empty() { version } else { own },
                ))
            })
            .collect())
    }
}

/// Prints that an engine's tables are loaded.
fn note(load: &Load, progress: &Progress) {
    progress.note(&format!(
        "{:<10} loaded in {:.1} s, {:.0} MB on disk",
        load.engine.title(),
        load.seconds,
        load.disk_bytes as f64 / 1e6
    ));
}

fn must_be_same(before: &Header, now: &Header) -> Result<()> {
    let versions = |header: &Header| {
        (
            header.server_version.clone(),
            header.engine_versions.clone(),
        )
    };
    if versions(before) == versions(now) && before.machine.cpu == now.machine.cpu {
        Ok(())
    } else {
        Err(HarnessError::Usage(format!(
            "the results were begun with server {} {:?} on {}, which is not what is here now ({} {:?} on {}): \
             begin anew with another --out",
            before.server_version,
            before.engine_versions,
            before.machine.cpu,
            now.server_version,
            now.engine_versions,
            now.machine.cpu
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;
    use peregrine_harness::engines::ServerUrl;

    #[test]
    fn results_are_gone_on_with_on_the_server_they_were_begun_on() {
        let url = |text: &str| Server::Url(ServerUrl::parse(text).expect("right"));
        let mut settings = sample::settings();
        let refused = same_server(&settings, &url("mysql://a@b/")).expect_err("private");
        assert!(refused.to_string().contains("without --url"));
        settings.server = Some(crate::results::record::Elsewhere {
            url: "mysql://a@b:3306/".to_owned(),
            transactional: Vec::new(),
        });
        same_server(&settings, &url("mysql://a:secret@b/")).expect("the same");
        let refused = same_server(&settings, &url("mysql://a@c/")).expect_err("another");
        assert!(refused.to_string().contains("mysql://a@b:3306/"));
    }

    #[test]
    fn results_of_other_versions_are_not_gone_on_with() {
        let header = sample::header();
        must_be_same(&header, &header).expect("the same");
        let mut other = header.clone();
        other.server_version = "11.8".to_owned();
        let message = must_be_same(&header, &other)
            .expect_err("another")
            .to_string();
        assert!(message.contains("11.8"), "{message}");
    }
}
