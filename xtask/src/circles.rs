//! Circles of imports between the folders of a crate: the modules that its root declares, with all that is in them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::source::{Module, Tree};

/// Imports that are part of a circle, as `CRATE FROM -> TO`, with the files that make each.
pub(crate) type Circles = BTreeMap<String, BTreeSet<String>>;

/// From one folder to another, with the files that import.
type Imports = BTreeMap<(String, String), BTreeSet<String>>;

/// All of them, in all crates.
///
/// # Errors
///
/// A crate cannot be read.
pub(crate) fn find(tree: &Tree) -> Result<Circles> {
    let mut circles = Circles::new();
    for name in tree.crates() {
        let imports = imports(&tree.modules(name)?);
        for ((from, to), files) in &imports {
            if reaches(&imports, to, from) {
                circles.insert(format!("{name} {from} -> {to}"), files.clone());
            }
        }
    }
    Ok(circles)
}

fn reaches(imports: &Imports, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(folder) = open.pop() {
        if folder == to {
            return true;
        }
        if seen.insert(folder) {
            let next = imports.keys().filter(|(from, _)| from == folder);
            open.extend(next.map(|(_, to)| to.as_str()));
        }
    }
    false
}

fn imports(modules: &[Module]) -> Imports {
    let code = modules.iter().filter(|module| !module.test);
    let folders: BTreeSet<&str> = code
        .clone()
        .filter_map(|module| Some(module.place.first()?.as_str()))
        .collect();
    let roots = code.clone().filter(|module| module.place.is_empty());
    let shown: BTreeMap<String, String> =
        roots.flat_map(|root| shown(root.code.tokens())).collect();
    let mut imports = Imports::new();
    for module in code {
        let Some(from) = module.place.first() else {
            continue;
        };
        for name in from_root(module.code.tokens(), module.place.len()) {
            // What the root shows again belongs to the folder that it is from.
            let to = shown.get(&name).unwrap_or(&name);
            if to != from && folders.contains(&**to) {
                let files = imports.entry((from.clone(), to.clone())).or_default();
                files.insert(module.file.clone());
            }
        }
    }
    imports
}

/// A path or tree of paths: the names that lead to each of its ends.
fn ends(tokens: &[TokenTree], within: &[String], out: &mut Vec<Vec<String>>) {
    let mut path = within.to_vec();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            // `as` gives it another name, which then is its last one.
            TokenTree::Ident(name) if name == "as" => {
                if let Some(TokenTree::Ident(other)) = tokens.get(at + 1) {
                    path.push(other.to_string());
                }
                break;
            }
            TokenTree::Ident(name) => path.push(name.to_string()),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
                for part in inside.split(is_comma).filter(|part| !part.is_empty()) {
                    ends(part, &path, out);
                }
                return;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            _ => break,
        }
    }
    out.push(path);
}

/// What a crate's root shows under a name of its own, with the folder that it is from.
fn shown(root: TokenStream) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let tokens: Vec<TokenTree> = root.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if matches!(token, TokenTree::Ident(name) if name == "use") {
            let mut paths = Vec::new();
            ends(&tokens[at + 1..], &[], &mut paths);
            for path in paths {
                let mut path = path
                    .into_iter()
                    .filter(|name| !matches!(&**name, "crate" | "self"));
                if let (Some(folder), Some(name)) = (path.next(), path.next_back()) {
                    found.push((name, folder));
                }
            }
        }
    }
    found
}

/// The names that code at this depth looks up in its crate's root: by `crate::`, or by as many `super::` as it is deep.
fn from_root(tokens: TokenStream, depth: usize) -> BTreeSet<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |token: Option<&TokenTree>, wanted: &str| matches!(token, Some(TokenTree::Ident(name)) if name == wanted);
    let mut found = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        if let TokenTree::Group(group) = &tokens[at] {
            // The body of a module within the file is one deeper.
            let deeper = at >= 2 && is(tokens.get(at - 2), "mod");
            found.extend(from_root(group.stream(), depth + usize::from(deeper)));
        } else if is(tokens.get(at), "crate") || is(tokens.get(at), "super") {
            let mut paths = Vec::new();
            let rest = &tokens[at..];
            ends(&rest[..path_length(rest)], &[], &mut paths);
            found.extend(paths.into_iter().filter_map(|path| root_name(&path, depth)));
            at += path_length(rest).max(1);
            continue;
        }
        at += 1;
    }
    found
}

/// How many tokens the path is that begins here.
fn path_length(tokens: &[TokenTree]) -> usize {
    let mut colons = 2;
    let mut part = |token: &TokenTree| match token {
        TokenTree::Punct(punct) if punct.as_char() == ':' => {
            colons += 1;
            colons <= 2
        }
        TokenTree::Ident(_) => colons_end(&mut colons),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && colons_end(&mut colons),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    };
    tokens.iter().take_while(|token| part(token)).count()
}

/// A name or a group follows two colons only.
fn colons_end(colons: &mut u32) -> bool {
    std::mem::take(colons) == 2
}

/// The first name after the root, of a path that leads there.
fn root_name(path: &[String], depth: usize) -> Option<String> {
    let up = path.iter().take_while(|name| *name == "super").count();
    let rest = match path.first().map(String::as_str) {
        Some("crate") => &path[1..],
        _ if up == depth => &path[up..],
        _ => return None,
    };
    rest.first().filter(|name| *name != "self").cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let files = files.iter();
        let files = files.map(|(path, text)| (format!("crates/x/src/{path}"), text.to_string()));
        Tree {
            files: files.collect(),
        }
    }

    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let circles = find(&tree(files)).expect("they are parsed");
        circles.into_keys().collect()
    }

    #[test]
    fn names_are_looked_up_in_the_root_by_every_kind_of_path() {
        let text = "use crate::{a::{A, b}, c as d, self}; use super::super::e; use super::f::g;
            fn x() { crate::h::y(); if z { crate::i::J } else { k() }; vec![crate::l::M; 3] }
            mod inner { use super::super::super::n; use super::super::o; }";
        let tokens: TokenStream = text.parse().expect("tokens");
        let names: Vec<String> = from_root(tokens, 2).into_iter().collect();
        assert_eq!(names, ["a", "c", "e", "h", "i", "l", "n"]);
    }

    #[test]
    fn a_circle_is_found_through_the_root_and_through_others_but_not_in_tests() {
        let lib = "mod a; mod b; mod c; mod d; pub use b::{B, deep::Other as Renamed};";
        let files = [
            ("lib.rs", lib),
            ("a.rs", "use crate::Renamed; // crate::d"),
            ("b.rs", "use super::c::C;"),
            ("c/mod.rs", "mod deep;"),
            ("c/deep.rs", "use super::super::a::A; use crate::d::D;"),
            ("d.rs", "#[cfg(test)] mod tests { use crate::c::C; }"),
        ];
        assert_eq!(arrows(&files), ["x a -> b", "x b -> c", "x c -> a"]);
        let mut straight = files;
        straight[2].1 = "";
        assert_eq!(arrows(&straight), [""; 0]);
    }
}
