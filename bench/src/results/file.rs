//! Reading and appending results files.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::record::{Header, Line, FORMAT};
use peregrine_harness::error::{HarnessError, PathContext, Result};

/// The file's name in the output directory.
pub const FILE_NAME: &str = "results.jsonl";

/// A results file to which the runner appends lines.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Creates a new file in `dir` and writes its header.
    ///
    /// # Errors
    /// When `dir` has one already, or it can't be written.
    pub fn create(dir: &Path, header: &Header) -> Result<Self> {
        let path = dir.join(FILE_NAME);
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .at("cannot create", &path)?;
        let mut journal = Self { path, file };
        journal.append(&Line::Header(Box::new(header.clone())))?;
        Ok(journal)
    }

    /// Opens the file in `dir` to append to it, and returns its lines.
    ///
    /// Cuts off an incomplete last line.
    ///
    /// When the file can't be read, parsed or written.
    /// When the file can't be read, parsed or written.
    pub fn resume(dir: &Path) -> Result<(Self, Vec<Line>)> {
        let lines = read(dir)?;
        let path = dir.join(FILE_NAME);
        let bytes = std::fs::read(&path).at("cannot read", &path)?;
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let file = File::options()
            .append(true)
            .open(&path)
            .at("cannot open", &path)?;
        file.set_len(whole as u64).at("cannot cut", &path)?;
        Ok((Self { path, file }, lines))
    }

    /// Appends a line and flushes it.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn append(&mut self, line: &Line) -> Result<()> {
        let mut text =
            serde_json::to_string(line).map_err(|error| HarnessError::Report(error.to_string()))?;
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.flush())
            .at("cannot write", &self.path)
    }
}

/// Reads the results in `dir`, which may also be the file itself.
///
/// Leaves out a last line without a line end: the run was interrupted while writing it.
///
/// # Errors
/// When there is no such file, or a line of it can't be parsed.
pub fn read(dir: &Path) -> Result<Vec<Line>> {
    let path = if dir.is_dir() {
        dir.join(FILE_NAME)
    } else {
        dir.to_path_buf()
    };
    let bytes = std::fs::read(&path).at("cannot read", &path)?;
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let problem = |line: usize, problem: String| HarnessError::Results {
        path: path.clone(),
        line,
        problem,
    };
    let first = bytes[..whole].split(|byte| *byte == b'\n').next();
    let format = first.and_then(format_of).unwrap_or(FORMAT);
    if format != FORMAT {
        return Err(problem(
            1,
            format!("the format is {format}, and this program reads format {FORMAT}"),
        ));
    }
    let mut lines = Vec::new();
    for (number, line) in bytes[..whole].split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let parsed: Line =
            serde_json::from_slice(line).map_err(|error| problem(number + 1, error.to_string()))?;
        lines.push(parsed);
    }
    match lines.first() {
        Some(Line::Header(_)) => Ok(lines),
        _ => Err(problem(1, "the first line is not a header".to_owned())),
    }
}

/// Returns the format number of a line, even if the rest of the line can't be parsed.
fn format_of(line: &[u8]) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    let format: Option<Format> = serde_json::from_slice(line).ok();
    format.map(|format| format.format)
}

/// Returns the header among the lines of a file.
#[must_use]
pub fn header(lines: &[Line]) -> Option<&Header> {
    match lines.first() {
        Some(Line::Header(header)) => Some(header),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    #[test]
    fn lines_come_back_as_they_were_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let lines = sample::lines();
        let Some(Line::Header(header)) = lines.first() else {
            panic!("a header")
        };
        let mut journal = Journal::create(dir.path(), header).expect("created");
        for line in &lines[1..] {
            journal.append(line).expect("appended");
        }
        assert_eq!(read(dir.path()).expect("read"), lines);
        assert!(
            Journal::create(dir.path(), header).is_err(),
            "never overwritten"
        );
    }

    #[test]
    fn a_line_cut_short_anywhere_is_left_out_and_written_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let lines = sample::lines();
        let path = dir.path().join(FILE_NAME);
        let text: Vec<String> = lines
            .iter()
            .map(|line| serde_json::to_string(line).expect("json") + "\n")
            .collect();
        let whole = text[..3].concat();
        for cut in 0..text[3].len() {
            std::fs::write(&path, format!("{whole}{}", &text[3][..cut])).expect("written");
            let (mut journal, there) = Journal::resume(dir.path()).expect("resumed");
            assert_eq!(there, lines[..3]);
            journal.append(&lines[3]).expect("appended");
            assert_eq!(read(dir.path()).expect("read"), lines[..4]);
        }
    }

    #[test]
    fn what_is_no_results_file_is_said_to_be_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(FILE_NAME);
        assert!(read(dir.path()).is_err());
        for text in [
            "",
            "\n",
            "{}\n",
            "nonsense\n",
            "{\"kind\":\"finish\",\"finished\":\"\",\"seconds\":1}\n",
        ] {
            std::fs::write(&path, text).expect("written");
            let message = read(dir.path()).expect_err(text).to_string();
            assert!(message.contains("line 1"), "{message}");
        }
        let newer = serde_json::to_string(&sample::lines()[0])
            .expect("json")
            .replace("\"format\":2", "\"format\":3");
        std::fs::write(&path, newer + "\n").expect("written");
        let message = read(dir.path()).expect_err("newer").to_string();
        assert!(message.contains("format is 3"), "{message}");
        // For a line of an old format, the error must name the format, and not a missing field.
        std::fs::write(
            &path,
            "{\"kind\":\"header\",\"format\":1,\"settings\":{}}\n",
        )
        .expect("written");
        let message = read(dir.path()).expect_err("older").to_string();
        assert!(message.contains("format is 1"), "{message}");
    }
}
