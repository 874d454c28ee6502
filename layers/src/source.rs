//! The modules of a crate, and the paths in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::Visit;
use syn::{Attribute, Item, Meta, UseTree};

/// The segments of a path from the crate's root.
type Name = Vec<String>;

/// A file that names an item of another file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The file that names the item, relative to the crate's `src`.
    pub from: String,
    /// The file that defines the item.
    pub to: String,
    /// The item.
    pub name: String,
}

/// A module: a file's, or one within a file.
#[derive(Default)]
struct Module {
    /// Path relative to the crate's `src`.
    file: String,
    /// The items that it defines.
    items: BTreeSet<String>,
    /// The items that it imports by `use`, by their name here: several where configurations differ.
    uses: BTreeMap<String, Vec<Name>>,
    /// The modules from which it imports everything.
    globs: Vec<Name>,
    /// All paths in it, from the root.
    paths: Vec<Name>,
    /// Paths whose first segment may be an imported name.
    local: Vec<Name>,
    /// The types for which it has blocks `impl`, from the root.
    implemented: Vec<Name>,
}

/// The modules of a crate, without tests.
pub struct Crate {
    modules: BTreeMap<Name, Module>,
}

impl Crate {
    /// Reads a crate from its folder `src`, beginning with `root`: `lib.rs` or `main.rs`.
    ///
    /// # Errors
    /// The file that can't be read, and the reason.
    pub fn read(src: &Path, root: &str) -> Result<Crate, String> {
        let mut read = Crate {
            modules: BTreeMap::new(),
        };
        read.read_file(src, root.into(), Vec::new())?;
        Ok(read)
    }

    fn read_file(&mut self, src: &Path, file: String, name: Name) -> Result<(), String> {
        let told = |error: &dyn std::fmt::Display| format!("{file}: {error}");
        let text = std::fs::read_to_string(src.join(&file)).map_err(|error| told(&error))?;
        let parsed = syn::parse_file(&text).map_err(|error| told(&error))?;
        self.read_module(src, &file, name, &parsed.items)
    }

    fn read_module(
        &mut self,
        src: &Path,
        file: &str,
        name: Name,
        items: &[Item],
    ) -> Result<(), String> {
        let mut found = Module {
            file: file.into(),
            ..Module::default()
        };
        let children = items.iter().filter_map(|item| match item {
            Item::Mod(child) => Some(child.ident.to_string()),
            _ => None,
        });
        let mut paths = Paths {
            module: &name,
            children: children.collect(),
            found: &mut found,
        };
        for item in items {
            paths.visit_item(item);
        }
        self.modules.insert(name.clone(), found);
        for item in items {
            let Item::Mod(child) = item else { continue };
            if is_test(&child.attrs) {
                continue;
            }
            let mut below = name.clone();
            below.push(child.ident.to_string());
            match &child.content {
                Some((_, items)) => self.read_module(src, file, below, items)?,
                None => {
                    let file = file_of(src, file, &child.ident.to_string(), name.is_empty())?;
                    self.read_file(src, file, below)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the last module of a path, and the number of segments that lead to it.
    fn module_of(&self, path: &[String]) -> Option<(&Name, usize)> {
        let ends = (0..=path.len()).rev();
        ends.filter_map(|end| Some((self.modules.get_key_value(&path[..end])?.0, end)))
            .next()
    }

    /// Adds the modules that define the item of a path, as far as they are found.
    fn add_definers<'a>(
        &'a self,
        path: &[String],
        steps: usize,
        found: &mut BTreeSet<(&'a Name, String)>,
    ) {
        let Some((name, end)) = self.module_of(path) else {
            return;
        };
        let module = &self.modules[name];
        let Some(item) = path.get(end) else {
            found.insert((name, String::new()));
            return;
        };
        if module.items.contains(item) {
            found.insert((name, item.clone()));
        }
        if steps == 0 {
            return;
        }
        for to in module.uses.get(item).into_iter().flatten() {
            let path = [&to[..], &path[end + 1..]].concat();
            self.add_definers(&path, steps - 1, found);
        }
        for to in &module.globs {
            let path = [&to[..], &path[end..]].concat();
            self.add_definers(&path, steps - 1, found);
        }
    }

    /// Returns the modules that define the item of a path.
    ///
    /// An item that a macro makes has no definition here: it counts as an item of the last module in the path.
    fn definers(&self, path: &[String]) -> BTreeSet<&Name> {
        let mut definers = BTreeSet::new();
        self.add_definers(path, 8, &mut definers);
        let mut found: BTreeSet<&Name> = definers.into_iter().map(|(name, _)| name).collect();
        if found.is_empty() {
            found.extend(self.module_of(path).map(|(name, _)| name));
        }
        found
    }

    /// Returns each file that names an item of another.
    pub fn references(&self) -> BTreeSet<Reference> {
        let mut references = BTreeSet::new();
        for (name, module) in &self.modules {
            let brought_in = module.local.iter().flat_map(|path| {
                let uses = module.uses.get(&path[0]).into_iter().flatten();
                uses.map(|to| [&to[..], &path[1..]].concat())
            });
            for path in module.paths.iter().cloned().chain(brought_in) {
                for to in self.definers(&path) {
                    let reference = Reference {
                        from: module.file.clone(),
                        to: self.modules[to].file.clone(),
                        name: path.join("::"),
                    };
                    let is_family = to.starts_with(name) || name.starts_with(to);
                    if !is_family && reference.from != reference.to {
                        references.insert(reference);
                    }
                }
            }
        }
        references
    }

    /// The types of the crate, each by its file and its name, with that file and those that have blocks `impl` for it.
    pub fn implementations(&self) -> BTreeMap<(String, String), BTreeSet<String>> {
        let mut found: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for module in self.modules.values() {
            for path in &module.implemented {
                let mut definers = BTreeSet::new();
                self.add_definers(path, 8, &mut definers);
                for (definer, item) in definers {
                    let of = &self.modules[definer].file;
                    let files = found.entry((of.clone(), item)).or_default();
                    files.extend([of.clone(), module.file.clone()]);
                }
            }
        }
        found
    }
}

/// Collects the names in one module.
struct Paths<'a> {
    module: &'a Name,
    children: BTreeSet<String>,
    found: &'a mut Module,
}

impl Paths<'_> {
    /// Returns a path from the root; `None` for a path of another crate.
    fn absolute(&self, path: &[String]) -> Option<Name> {
        let (first, mut rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            child if self.children.contains(child) => {
                let mut base = self.module.clone();
                base.push(child.into());
                base
            }
            _ => return None,
        };
        if first == "super" {
            base.pop()?;
            while let Some((_, further)) = rest.split_first().filter(|(next, _)| *next == "super") {
                base.pop()?;
                rest = further;
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// The path of a type from the root. Where it begins with no module, it begins with what this one has.
    fn self_type(&self, of: &syn::Type) -> Option<Name> {
        let syn::Type::Path(path) = of else {
            return None;
        };
        let segments = path.path.segments.iter();
        let segments: Vec<String> = segments.map(|s| s.ident.to_string()).collect();
        let absolute = self.absolute(&segments);
        Some(absolute.unwrap_or_else(|| [self.module, &segments[..]].concat()))
    }

    fn bring_in(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.bring_in(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.bring_in(before, tree);
                }
            }
            UseTree::Glob(_) => {
                if let Some(to) = self.absolute(before) {
                    self.found.paths.push(to.clone());
                    self.found.globs.push(to);
                }
            }
            UseTree::Name(name) => self.name(before, &name.ident, &name.ident),
            UseTree::Rename(renamed) => self.name(before, &renamed.ident, &renamed.rename),
        }
    }

    fn name(&mut self, before: &[String], last: &syn::Ident, here: &syn::Ident) {
        let mut path = before.to_vec();
        let mut here = here.to_string();
        if last == "self" {
            here = before.last().cloned().unwrap_or_default();
        } else {
            path.push(last.to_string());
        }
        if let Some(path) = self.absolute(&path) {
            self.found.paths.push(path.clone());
            self.found.uses.entry(here).or_default().push(path);
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, defined) = match item {
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Union(item) => (&item.attrs, Some(&item.ident)),
            Item::Impl(item) => (&item.attrs, None),
            Item::Use(item) => (&item.attrs, None),
            // `read_module` reads modules separately.
            _ => return,
        };
        if is_test(attributes) {
            return;
        }
        self.found.items.extend(defined.map(ToString::to_string));
        match item {
            Item::Use(item) => return self.bring_in(&mut Vec::new(), &item.tree),
            Item::Impl(item) => self.found.implemented.extend(self.self_type(&item.self_ty)),
            _ => {}
        }
        syn::visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if segments.len() > 1 {
            match self.absolute(&segments) {
                Some(path) => self.found.paths.push(path),
                None => self.found.local.push(segments),
            }
        }
        syn::visit::visit_path(self, path);
    }
}

/// Returns whether an item is compiled only for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all (test")
        }
        _ => false,
    })
}

/// Returns the file of a module that another file declares.
fn file_of(src: &Path, parent: &str, child: &str, is_root: bool) -> Result<String, String> {
    let parent = PathBuf::from(parent);
    let folder = match parent.file_stem() {
        Some(stem) if !is_root && stem != "mod" => parent.with_extension(""),
        _ => parent.parent().map(Path::to_path_buf).unwrap_or_default(),
    };
    let candidates = [
        folder.join(format!("{child}.rs")),
        folder.join(child).join("mod.rs"),
    ];
    let found = candidates.iter().find(|file| src.join(file).is_file());
    let found = found.ok_or_else(|| format!("{}: mod {child} has no file", parent.display()))?;
    Ok(found.to_string_lossy().into_owned())
}
