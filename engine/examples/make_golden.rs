//! Writes the golden files of the present format, which later versions must open: see `tests/golden/`.
//!
//! Run it after the format's number has changed, and keep the files of earlier formats: `cargo run -p peregrine
//! --example make_golden`.

// The test uses more of these than this program does.
#[allow(dead_code)]
#[path = "../tests/golden/archive.rs"]
mod archive;
#[allow(dead_code)]
#[path = "../tests/golden/content.rs"]
mod content;

use std::path::Path;

use peregrine::store::FORMAT;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/files");
    std::fs::create_dir_all(&out)?;
    let dir = tempfile::tempdir()?;
    let dir = dir.path().join("database");
    let write = |state: &str| {
        let path = out.join(format!("format-{FORMAT}-{state}"));
        let bytes = archive::encode(&archive::files(&dir));
        println!("{}: {} bytes", path.display(), bytes.len());
        std::fs::write(path, bytes)
    };
    let mut crashed = Ok(());
    content::make(&dir, || crashed = write("crashed"));
    crashed?;
    write("closed")?;
    // Prints the content that the test expects.
    for (table, rows) in content::expected() {
        println!("{table}: {} rows", rows.len());
    }
    Ok(())
}
