//! Links in documents lead to existing files and headings.

use std::path::Path;

use peregrine_layers::broken_links;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn links_of_documents_lead_somewhere() {
    let mut told = broken_links(&here().join("..")).unwrap();
    told.retain(|told| !told.starts_with("layers/tests/example/"));
    assert!(told.is_empty(), "{told:#?}");
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let told = broken_links(&here().join("tests/example")).unwrap();
    assert_eq!(
        told,
        [
            "links.md: low.rs#code",
            "links.md: #no-such-heading",
            "links.md: gone.md",
            "links.md: high/below.md#title",
            "links.md: ../../../../links.md",
        ]
    );
}
