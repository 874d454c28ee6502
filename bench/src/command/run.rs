//! `peregrine bench run`: from the options to the comparison.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use peregrine_bench::results::record::{Planned, RunSettings};
use peregrine_bench::results::Comparison;
use peregrine_bench::runner::{
    summary, PrivateServer, Profile, Request, Server, {self},
};
use peregrine_bench::workload::{builtin, Mode, Options, Workload};
use peregrine_harness::engines::{Engine, Placement, Protocol, ServerUrl};
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::interrupt;
use peregrine_harness::server::installation::{find_plugin, target_directory};
use peregrine_harness::server::Installation;

use crate::command::arguments::RunArguments;
use peregrine_harness::command::values::WarmUp;

/// The most client threads that a run may ask for.
const MOST_THREADS: u32 = 4_096;

/// The longest warm-up that ends when the rate is steady, in seconds.
const LONGEST_WARM_UP_S: f64 = 60.0;
/// Rates within this many percent count as steady.
const STEADY_PERCENT: f64 = 5.0;

/// Runs the benchmark; exit status 1 when an answer was wrong or a query failed.
///
/// # Errors
/// Any error of the action; the caller prints it.
pub fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let target = target_directory();
    let bench = target.join("bench");
    let out = output_directory(arguments, &bench)?;
    let mut settings = settings(arguments)?;
    if arguments.resume {
        let lines = peregrine_bench::results::file::read(&out)?;
        if let Some(header) = peregrine_bench::results::file::header(&lines) {
            settings = header.settings.clone();
        }
    }
    let request = Request {
        server: server(arguments, &settings, &target)?,
        settings,
        out: out.clone(),
        resume: arguments.resume,
        keep_data: arguments.keep_data,
        loading_cache_bytes: None,
    };
    std::fs::create_dir_all(&out).at("cannot create", &out)?;
    if arguments.out.is_none() {
        link_latest(&bench, &out)?;
    }
    let outcome = match runner::run(&request) {
        Ok(outcome) => outcome,
        Err(HarnessError::Interrupted) => {
            let server = request
                .settings
                .server
                .as_ref()
                .map_or_else(String::new, |server| {
                    format!(" --url '{}' and its password", server.url)
                });
            eprintln!(
                "interrupted; what was measured is kept. Go on with: peregrine bench run --resume --out {}{server}",
                out.display()
            );
            return Ok(ExitCode::from(interrupt::EXIT_STATUS));
        }
        Err(error) => return Err(error),
    };
    print!("{}", summary::render(&outcome.lines));
    let report = out.join(peregrine_bench::report::FILE_NAME);
    peregrine_bench::report::write(std::slice::from_ref(&out), &report)?;
    peregrine_bench::results::csv::write(&out, &outcome.lines)?;
    println!(
        "results: {}, and results.csv",
        out.join("results.jsonl").display()
    );
    println!("report:  {}", report.display());
    if Comparison::new(&outcome.lines).faulty().is_empty() {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

/// Returns the server to measure.
fn server(arguments: &RunArguments, settings: &RunSettings, target: &Path) -> Result<Server> {
    if let Some(url) = &arguments.url {
        return Ok(Server::Url(ServerUrl::parse(url)?));
    }
    if settings.server_engines().is_empty() {
        return Ok(Server::None);
    }
    let plugin = if settings.engines.contains(&Engine::Peregrine) {
        Some(find_plugin(target, arguments.mariadbd.plugin.as_deref())?)
    } else {
        None
    };
    Ok(Server::Private(PrivateServer {
        installation: Installation::find(target)?,
        plugin,
        options: arguments.mariadbd.options.clone(),
    }))
}

/// Returns the engines, and the placement of threads.
///
/// A server that runs already may have any engines, and places its threads itself.
fn engines_and_placement(arguments: &RunArguments) -> Result<(Vec<Engine>, Placement)> {
    let asked = match arguments.placement.as_deref() {
        None => None,
        Some("paired") => Some(Placement::Paired),
        Some("free") => Some(Placement::Free),
        Some(other) => {
            return Err(HarnessError::Usage(format!(
                "unknown placement '{other}': paired or free"
            )))
        }
    };
    if arguments.url.is_none() {
        // A run of all workloads includes the engines and stores for each of them.
        let everything: Vec<Engine> =
            match arguments.workload.iter().any(|name| name.trim() == "all") {
                true => Engine::measured().collect(),
                false => Engine::ALL.to_vec(),
            };
        let mut engines = parsed(&arguments.engines, Engine::parse_measured, &everything)?;
        if arguments.memory_limit.is_some() {
            if arguments.engines.is_empty() {
                engines.retain(|engine| !engine.is_embedded());
            }
            none_embedded(&engines, "--memory-limit holds a server, not this process")?;
        }
        return Ok((engines, asked.unwrap_or(Placement::Paired)));
    }
    let refused = [
        (asked == Some(Placement::Paired), "--placement paired"),
        (arguments.cache.is_some(), "--cache"),
        (arguments.memory_limit.is_some(), "--memory-limit"),
        (arguments.mariadbd.plugin.is_some(), "--plugin"),
        (
            !arguments.mariadbd.options.is_empty(),
            "an option for mariadbd",
        ),
    ];
    if let Some((_, what)) = refused.iter().find(|(is_asked, _)| *is_asked) {
        return Err(HarnessError::Usage(format!(
            "{what} is for private servers: a server that is reached by --url is measured as it is"
        )));
    }
    let engines = parsed(&arguments.engines, Engine::named, &[Engine::InnoDb])?;
    none_embedded(&engines, "--url measures what that server has")?;
    Ok((engines, Placement::Free))
}

/// Refuses embedded stores, with the reason.
fn none_embedded(engines: &[Engine], why: &str) -> Result<()> {
    match engines.iter().find(|engine| engine.is_embedded()) {
        None => Ok(()),
        Some(store) => Err(HarnessError::Usage(format!(
            "{why}: leave {} out of --engines",
            store.name()
        ))),
    }
}

fn output_directory(arguments: &RunArguments, bench: &Path) -> Result<PathBuf> {
    let dir = match &arguments.out {
        Some(dir) => dir.clone(),
        None if arguments.resume => {
            let latest = bench.join("latest");
            std::fs::canonicalize(&latest).at("there is nothing to resume: cannot find", &latest)?
        }
        None => bench.join(jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string()),
    };
    std::path::absolute(&dir).at("cannot resolve", &dir)
}

/// Points `target/bench/latest` at the output directory.
fn link_latest(bench: &Path, out: &Path) -> Result<()> {
    let link = bench.join("latest");
    std::fs::create_dir_all(bench).at("cannot create", bench)?;
    match std::fs::remove_file(&link) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).at("cannot replace", &link)?;
        }
        _ => {}
    }
    let to = out.strip_prefix(bench).unwrap_or(out);
    std::os::unix::fs::symlink(to, &link).at("cannot link", &link)
}

/// The settings that the options ask for.
///
/// # Errors
/// [`HarnessError::Usage`] with the allowed values.
pub fn settings(arguments: &RunArguments) -> Result<RunSettings> {
    let profile = Profile::parse(arguments.profile.as_deref().unwrap_or("quick"))?;
    let (engines, placement) = engines_and_placement(arguments)?;
    let threads = if arguments.threads.is_empty() {
        profile.threads.to_vec()
    } else {
        distinct(arguments.threads.clone())
    };
    if threads
        .iter()
        .any(|count| !(1..=MOST_THREADS).contains(count))
    {
        return Err(HarnessError::Usage(format!(
            "--threads takes numbers from 1 to {MOST_THREADS}"
        )));
    }
    let protocols = match arguments.protocol.as_str() {
        "text" => vec![Protocol::Text],
        "prepared" => vec![Protocol::Prepared],
        "both" => vec![Protocol::Text, Protocol::Prepared],
        other => {
            return Err(HarnessError::Usage(format!(
                "unknown protocol '{other}': text, prepared or both"
            )))
        }
    };
    let runs = arguments.runs.unwrap_or(profile.runs);
    if runs == 0 {
        return Err(HarnessError::Usage(
            "--runs takes numbers from 1".to_owned(),
        ));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if arguments.charset.is_empty() || !arguments.charset.chars().all(plain) {
        return Err(HarnessError::Usage(format!(
            "'{}' is no character set: the server's are in information_schema.character_sets, e.g. latin1, utf8mb4",
            arguments.charset
        )));
    }
    let workloads = planned(arguments, profile.name)?;
    if engines.iter().all(|engine| engine.is_embedded()) {
        some_query_of_normal(&workloads)?;
    }
    Ok(RunSettings {
        workloads,
        profile: profile.name.to_owned(),
        engines,
        threads,
        protocols,
        seed: arguments.seed,
        cache_bytes: match arguments.url {
            None => arguments.cache.unwrap_or(profile.cache_bytes),
            Some(_) => 0,
        },
        charset: arguments.charset.clone(),
        placement,
        warm_up_s: match arguments.warm_up {
            Some(WarmUp::Seconds(time)) => time,
            Some(WarmUp::Steady) => LONGEST_WARM_UP_S,
            None if arguments.steady.is_some() => LONGEST_WARM_UP_S,
            None => profile.warm_up_s,
        },
        steady_percent: match (arguments.steady, arguments.warm_up) {
            (None, Some(WarmUp::Steady)) => Some(STEADY_PERCENT),
            (percent, _) => percent,
        },
        rate: arguments.rate,
        memory_limit_bytes: arguments.memory_limit,
        run_s: arguments.run_time.unwrap_or(profile.run_s),
        runs,
        server: None,
    })
}

/// Returns the workloads asked for, each with those of the named parameters and transactions that it has.
fn planned(arguments: &RunArguments, profile: &str) -> Result<Vec<Planned>> {
    let mut set: BTreeMap<String, i64> = arguments.set.iter().cloned().collect();
    set.extend(arguments.rows.map(|rows| ("rows".to_owned(), rows)));
    let mut sources = Vec::new();
    for name in &arguments.workload {
        match name.trim() {
            "all" => sources.extend(builtin::ALL.map(|shipped| shipped.name.to_owned())),
            other => sources.push(other.to_owned()),
        }
    }
    let mut all = Vec::new();
    for source in distinct(sources) {
        let (text, file) = builtin::find(&source)?;
        let mut options = Options {
            profile: Some(profile.to_owned()),
            seed: arguments.seed,
            ..Options::default()
        };
        let usual = Workload::read(&text, &file, &options)?;
        options.set.clone_from(&set);
        options
            .set
            .retain(|name, _| usual.parameters.contains_key(name));
        let workload = Workload::read(&text, &file, &options)?;
        if all
            .iter()
            .any(|(_, other): &(_, Workload)| other.name == workload.name)
        {
            return Err(HarnessError::Usage(format!(
                "there are two workloads of the name {}: results could not be told apart",
                workload.name
            )));
        }
        all.push((source, workload));
    }
    known(set.keys(), "parameter", &all, |workload| {
        workload.parameters.keys().map(String::as_str).collect()
    })?;
    let queries = &arguments.queries;
    known(
        queries.iter(),
        "query or transaction",
        &all,
        Workload::cells,
    )?;
    let mut planned = Vec::new();
    for (source, workload) in all {
        let mut cells: Vec<String> = workload.cells().into_iter().map(str::to_owned).collect();
        if !queries.is_empty() {
            cells.retain(|cell| queries.iter().any(|name| name.eq_ignore_ascii_case(cell)));
        }
        if !cells.is_empty() || (workload.mode == Mode::Load && queries.is_empty()) {
            planned.push(Planned {
                name: workload.name,
                source,
                text: workload.text,
                parameters: workload.parameters,
                cells,
                once: workload.mode == Mode::Once,
            });
        }
    }
    Ok(planned)
}

/// Fails when the workloads have no query that embedded stores can run.
fn some_query_of_normal(workloads: &[Planned]) -> Result<()> {
    for planned in workloads {
        let options = Options {
            set: planned.parameters.clone(),
            ..Options::default()
        };
        let workload = Workload::read(&planned.text, &planned.source, &options)?;
        let mut cells = planned.cells.iter();
        if cells.any(|cell| workload.is_normal_query(cell)) {
            return Ok(());
        }
    }
    Err(HarnessError::Usage(
        "embedded stores do the queries of workload normal, and nothing else that is asked for here: add an engine of \
         a server, innodb for instance, or --workload normal without writers"
            .to_owned(),
    ))
}

/// Fails when a name is unknown in all of the workloads.
fn known<'n>(
    names: impl Iterator<Item = &'n String>,
    what: &str,
    workloads: &[(String, Workload)],
    all: impl Fn(&Workload) -> Vec<&str>,
) -> Result<()> {
    let all: Vec<&str> = workloads
        .iter()
        .flat_map(|(_, workload)| all(workload))
        .collect();
    for name in names {
        if !all.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err(HarnessError::Usage(format!(
                "unknown {what} '{name}': the workloads have {}",
                all.join(", ")
            )));
        }
    }
    Ok(())
}

/// Returns the named values, or all.
///
/// # Errors
/// Those of `parse`.
pub fn parsed<T: Copy + PartialEq>(
    names: &[String],
    parse: impl Fn(&str) -> Result<T>,
    all: &[T],
) -> Result<Vec<T>> {
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    let found: Result<Vec<T>> = names.iter().map(|name| parse(name.trim())).collect();
    Ok(distinct(found?))
}

/// Each value once, in the order of first mention.
pub fn distinct<T: PartialEq>(values: Vec<T>) -> Vec<T> {
    let mut kept = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}
