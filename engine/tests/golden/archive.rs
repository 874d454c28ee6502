//! A directory's files as one small file: names and bytes, in postcard, compressed with LZ4.

use std::path::Path;

type Files = Vec<(String, Vec<u8>)>;

/// Returns the files of a database's directory, by their path in it.
pub fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                found.push((name, std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Writes the files into a directory.
pub fn unpack(files: &Files, dir: &Path) {
    for (name, bytes) in files {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

pub fn encode(files: &Files) -> Vec<u8> {
    lz4_flex::block::compress_prepend_size(&postcard::to_stdvec(files).unwrap())
}

pub fn decode(bytes: &[u8]) -> Files {
    postcard::from_bytes(&lz4_flex::block::decompress_size_prepended(bytes).unwrap()).unwrap()
}
