//! The workloads that come with the command.

use std::path::Path;

use peregrine_harness::error::{HarnessError, PathContext, Result};

/// A file that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// The workload's name.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($name:literal) => {
        Shipped {
            name: $name,
            text: include_str!(concat!("../../workloads/", $name, ".toml")),
        }
    };
}

/// Every shipped workload, in the order in which `all` runs them.
pub const ALL: [Shipped; 7] = [
    shipped!("normal"),
    shipped!("join"),
    shipped!("oltp"),
    shipped!("orders"),
    shipped!("dvdstore"),
    shipped!("operations"),
    shipped!("load"),
];

/// Returns the text of a workload file, and its name for messages.
///
/// A name finds a shipped file; a path that ends in `.toml` finds any other.
///
/// # Errors
/// When there is no such workload, with a list of the names, or when the file can't be read.
pub fn find(name: &str) -> Result<(String, String)> {
    if let Some(shipped) = ALL.iter().find(|shipped| shipped.name == name) {
        return Ok((shipped.text.to_owned(), format!("{name}.toml")));
    }
    if Path::new(name).extension().is_none_or(|end| end != "toml") {
        let known: Vec<&str> = ALL.iter().map(|shipped| shipped.name).collect();
        return Err(HarnessError::Usage(format!(
            "unknown workload '{name}': the workloads are {}, all, or a file whose name ends in .toml",
            known.join(", ")
        )));
    }
    let path = Path::new(name);
    let text = std::fs::read_to_string(path).at("cannot read", path)?;
    Ok((text, name.to_owned()))
}
