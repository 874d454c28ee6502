//! Broken links in documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// The anchors of a document, and its links.
#[derive(Default)]
struct Document {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

/// Returns the links in the documents (`*.md`) of `folder` that lead to no file in it, or to no heading.
///
/// Skips links to other machines.
///
/// # Errors
/// Those of reading the files.
pub fn broken_links(folder: &Path) -> io::Result<Vec<String>> {
    let mut documents = BTreeMap::new();
    find(folder, folder, &mut documents)?;
    let mut told = Vec::new();
    for (path, document) in &documents {
        for link in &document.links {
            let is_elsewhere = link.contains("://") || link.starts_with("mailto:");
            if !is_elsewhere && !leads_somewhere(folder, &documents, path, link) {
                told.push(format!("{}: {link}", path.display()));
            }
        }
    }
    Ok(told)
}

/// Finds the documents, by their paths from `root`.
///
/// Skips `target`, which git does not track, and hidden folders.
fn find(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Document>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                find(root, &path, found)?;
            }
        } else if name.ends_with(".md") {
            let document = read(&fs::read_to_string(&path)?);
            let path = path.strip_prefix(root).map(Path::to_path_buf);
            found.insert(path.map_err(io::Error::other)?, document);
        }
    }
    Ok(())
}

fn read(text: &str) -> Document {
    let mut document = Document::default();
    let mut heading = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let again = (1..).map(|n| format!("{anchor}-{n}"));
                let mut names = std::iter::once(anchor.clone()).chain(again);
                let free = names.find(|name| !document.anchors.contains(name));
                document.anchors.extend(free);
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                document.links.push(dest_url.into_string());
            }
            _ => {}
        }
    }
    document
}

/// Returns the anchor that GitHub and mdBook make for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    });
    kept.collect::<String>().to_lowercase()
}

fn leads_somewhere(
    root: &Path,
    documents: &BTreeMap<PathBuf, Document>,
    from: &Path,
    link: &str,
) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let to = match path {
        "" => from.to_path_buf(),
        path => match normal(&from.parent().unwrap_or(from).join(path)) {
            Some(to) => to,
            None => return false,
        },
    };
    match documents.get(&to) {
        Some(document) => anchor.is_empty() || document.anchors.contains(anchor),
        None => anchor.is_empty() && root.join(&to).exists(),
    }
}

/// Returns the path without `..`; `None` if it leaves the folder.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir if found.pop() => {}
            Component::ParentDir | Component::RootDir => return None,
            Component::CurDir => {}
            other => found.push(other),
        }
    }
    Some(found)
}
