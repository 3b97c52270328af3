//! Whether our crates depend on each other as ARCHITECTURE.md draws it, and no crate's folders import each other in a circle.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::circles;
use crate::metadata::{metadata, packages, text};
use crate::process::{all, none, root};
use crate::source::Tree;

/// The page with the drawing, and how its block begins.
const PAGE: &str = "ARCHITECTURE.md";
const FENCE: &str = "```arrows";

/// From one of our crates to another one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Arrow {
    from: String,
    to: String,
    /// Only tests, benchmarks or examples use it.
    tests_only: bool,
}

impl std::fmt::Display for Arrow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let arrow = if self.tests_only { TESTS } else { CODE };
        write!(f, "{} {arrow} {}", self.from, self.to)
    }
}

/// An arrow of code, and one of tests only.
const CODE: &str = "->";
const TESTS: &str = "..>";

/// Fails on an arrow that is drawn and not there or not used, on one that is there and not drawn, and on a new circle of imports.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::here()?;
    let page = std::fs::read_to_string(root().join(PAGE))?;
    let drawn = drawn(&page)?;
    let found = declared(&metadata()?);
    let difference = |left: &BTreeSet<Arrow>, right: &BTreeSet<Arrow>, what: &str| {
        let only = left
            .difference(right)
            .map(|arrow| format!("{arrow}: {what}"));
        only.collect::<Vec<_>>()
    };
    let mut wrong = difference(&drawn, &found, "drawn, but no such dependency");
    wrong.extend(difference(&found, &drawn, "a dependency that is not drawn"));
    for arrow in drawn.intersection(&found) {
        if !is_used(&tree, arrow)? {
            wrong.push(format!("{arrow}: a dependency that no code uses"));
        }
    }
    all([none(&wrong), none(&folders(&tree)?)])
}

/// Imports that are part of a circle between the folders of a crate, with the files that make each.
fn folders(tree: &Tree) -> Result<Vec<String>> {
    let found = circles::find(tree)?.into_iter();
    let told = found.map(|(arrow, files)| {
        let files: Vec<String> = files.into_iter().collect();
        format!("circle {arrow}: {}", files.join(" "))
    });
    Ok(told.collect())
}

/// The arrows of the page's block: `FROM -> TO TO   # words`, or `..>` for what only tests use.
fn drawn(page: &str) -> Result<BTreeSet<Arrow>> {
    let lines = page
        .lines()
        .skip_while(|line| line.trim_end() != FENCE)
        .skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("```")).collect();
    if lines.is_empty() {
        bail!("{PAGE} has no block that begins with {FENCE}");
    }
    let mut arrows = BTreeSet::new();
    for line in lines {
        let line = line.split('#').next().unwrap_or(line);
        let mut words = line.split_whitespace();
        let Some(from) = words.next() else {
            continue;
        };
        let mut tests_only = None;
        for word in words {
            match (word, tests_only) {
                (CODE, _) => tests_only = Some(false),
                (TESTS, _) => tests_only = Some(true),
                (to, Some(tests_only)) => {
                    arrows.insert(Arrow {
                        from: from.into(),
                        to: to.into(),
                        tests_only,
                    });
                }
                (_, None) => bail!("{PAGE}: {line:?} is not CRATE -> CRATES"),
            }
        }
        tests_only.with_context(|| format!("{PAGE}: {line:?} has no arrow"))?;
    }
    Ok(arrows)
}

/// The dependencies among our packages, as their manifests have them.
fn declared(metadata: &Value) -> BTreeSet<Arrow> {
    let ours = packages(metadata).filter(|package| package["source"].is_null());
    let names: BTreeSet<&str> = ours.clone().map(|package| text(package, "name")).collect();
    let mut arrows = BTreeSet::new();
    for package in ours {
        let from = text(package, "name");
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let dependencies =
            dependencies.filter(|dependency| names.contains(text(dependency, "name")));
        let of = |tests_only: bool| {
            let of_kind = dependencies
                .clone()
                .filter(move |dependency| (text(dependency, "kind") == "dev") == tests_only);
            of_kind
                .map(|dependency| text(dependency, "name"))
                .collect::<BTreeSet<&str>>()
        };
        let (code, tests) = (of(false), of(true));
        let tests = tests.difference(&code).map(|to| (*to, true));
        let both = code.iter().map(|to| (*to, false)).chain(tests);
        arrows.extend(both.map(|(to, tests_only)| Arrow {
            from: from.into(),
            to: to.into(),
            tests_only,
        }));
    }
    arrows
}

/// Whether code names the crate: for an arrow of code what is not for tests, for one of tests any file of the package.
fn is_used(tree: &Tree, arrow: &Arrow) -> Result<bool> {
    let name = arrow.to.replace('-', "_");
    if !arrow.tests_only {
        let modules = tree.modules(&arrow.from)?;
        let mut modules = modules.iter().filter(|module| !module.test);
        return Ok(modules.any(|module| module.code.names(&name, false)));
    }
    let package = format!("crates/{}/", arrow.from);
    for (path, text) in tree
        .files
        .iter()
        .filter(|(path, _)| path.starts_with(&package))
    {
        let code = crate::code::Code::parse(text).with_context(|| path.clone())?;
        if code.names(&name, true) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_are_read_from_the_page() {
        let page =
            "words -> no\n```arrows\na -> b c ..> d   # the top\nb ->   # nothing\n\n```\na -> z\n";
        let arrows = drawn(page).expect("a drawing");
        let arrows: Vec<String> = arrows.iter().map(Arrow::to_string).collect();
        assert_eq!(arrows, ["a -> b", "a -> c", "a ..> d"]);
        assert!(drawn("```text\na -> b\n```\n").is_err());
        assert!(drawn("```arrows\na b\n```\n").is_err());
    }

    #[test]
    fn dependencies_are_read_from_the_manifests() {
        let metadata = serde_json::json!({"packages": [
            {"name": "a", "source": null, "dependencies": [
                {"name": "b", "kind": null}, {"name": "b", "kind": "dev"}, {"name": "c", "kind": "dev"}, {"name": "other", "kind": null}]},
            {"name": "b", "source": null, "dependencies": []},
            {"name": "c", "source": null, "dependencies": []},
            {"name": "other", "source": "registry", "dependencies": []}]});
        let arrows: Vec<String> = declared(&metadata).iter().map(Arrow::to_string).collect();
        assert_eq!(arrows, ["a -> b", "a ..> c"]);
    }

    #[test]
    fn an_arrow_is_used_where_code_names_the_crate() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "/// laxity_c\nuse laxity_b::x;\n#[cfg(test)]\nmod tests;",
            ),
            ("crates/a/src/tests.rs", "use laxity_c::y;"),
        ];
        let tree = Tree {
            files: files.map(|(path, text)| (path.into(), text.into())).into(),
        };
        let used = |to: &str, tests_only| {
            let arrow = Arrow {
                from: "a".into(),
                to: to.into(),
                tests_only,
            };
            is_used(&tree, &arrow).expect("it is parsed")
        };
        assert!(used("laxity-b", false));
        assert!(!used("laxity-c", false) && used("laxity-c", true));
    }
}
