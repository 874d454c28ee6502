//! Reading a command line: an error in it comes with the allowed names.

use std::io::Write;

use clap::error::ErrorKind;
use clap::Parser;

/// Reads the command line. Reports an error in it with the allowed values, and ends the program.
#[must_use]
pub fn read<A: Parser>() -> A {
    A::try_parse().unwrap_or_else(|error| {
        let known = match error.kind() {
            ErrorKind::UnknownArgument => allowed::<A>(|command| {
                let options = command.get_arguments().filter_map(clap::Arg::get_long);
                let mut names: Vec<String> = options.map(|name| format!("--{name}")).collect();
                names.extend(["--help".to_owned()]);
                ("options", names)
            }),
            ErrorKind::InvalidSubcommand => allowed::<A>(|command| {
                let actions = command.get_subcommands().map(clap::Command::get_name);
                ("actions", actions.map(str::to_owned).collect())
            }),
            _ => None,
        };
        if let Some(known) = known {
            // Without standard error the message can't be shown.
            let _ = error.print();
            let _ = writeln!(std::io::stderr(), "{known}");
            std::process::exit(2);
        }
        error.exit()
    })
}

/// Returns the names allowed at the innermost action on the command line.
fn allowed<A: Parser>(
    names: impl Fn(&clap::Command) -> (&'static str, Vec<String>),
) -> Option<String> {
    let mut command = A::command();
    let mut path = command
        .get_bin_name()
        .unwrap_or(command.get_name())
        .to_owned();
    let words = std::env::args_os().skip(1);
    for word in words.skip_while(|word| word == "help") {
        let Some(next) = command.find_subcommand(&word).cloned() else {
            break;
        };
        path = format!("{path} {}", next.get_name());
        command = next;
    }
    let (what, names) = names(&command);
    (!names.is_empty()).then(|| format!("\nThe {what} of {path}: {}", names.join(", ")))
}
