//! The Rust files of a checkout or of a revision, and which of them a crate is made of.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use crate::code::Code;
use crate::process::{command, output, root};

/// Rust files by their paths.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
}

/// A file of a crate.
pub(crate) struct Module {
    pub(crate) file: String,
    /// The names of the modules that lead to it from the crate's root; none for the root.
    pub(crate) place: Vec<String>,
    /// It, or a module that it is in, is declared for tests only.
    pub(crate) test: bool,
    pub(crate) code: Code,
}

impl Tree {
    /// What is in the work tree, committed or not, but for what is ignored.
    ///
    /// # Errors
    ///
    /// git fails, or a file cannot be read.
    pub(crate) fn here() -> Result<Self> {
        let list = [
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
            "*.rs",
        ];
        let paths = output(command("git").args(list))?;
        let mut tree = Self::default();
        for path in paths.lines() {
            match std::fs::read_to_string(root().join(path)) {
                Ok(text) => tree.files.insert(path.into(), text),
                // It is deleted and not committed yet.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(error).context(path.to_string()),
            };
        }
        Ok(tree)
    }

    /// What a revision has under `crates`.
    ///
    /// # Errors
    ///
    /// git fails, or does not know the revision.
    pub(crate) fn at(revision: &str) -> Result<Self> {
        let list = ["ls-tree", "-r", "--name-only", revision, "--", "crates"];
        let paths = output(command("git").args(list))?;
        let mut tree = Self::default();
        for path in paths.lines().filter(|path| path.ends_with(".rs")) {
            let text = output(command("git").args(["show", &format!("{revision}:{path}")]))?;
            tree.files.insert(path.into(), text);
        }
        Ok(tree)
    }

    /// The names of the folders under `crates`.
    pub(crate) fn crates(&self) -> BTreeSet<&str> {
        let inside = self
            .files
            .keys()
            .filter_map(|path| path.strip_prefix("crates/"));
        inside
            .filter_map(|path| Some(path.split_once('/')?.0))
            .collect()
    }

    /// All modules under `crates/NAME/src`, beginning with the crate's root or roots.
    ///
    /// # Errors
    ///
    /// A file cannot be parsed, a module is declared and has no file, or a file belongs to no module.
    pub(crate) fn modules(&self, name: &str) -> Result<Vec<Module>> {
        let source = format!("crates/{name}/src/");
        let mut modules = Vec::new();
        for file in self
            .files
            .keys()
            .filter_map(|file| file.strip_prefix(&source))
        {
            let is_root = matches!(file, "lib.rs" | "main.rs");
            if is_root
                || file
                    .strip_prefix("bin/")
                    .is_some_and(|file| !file.contains('/'))
            {
                self.collect(&format!("{source}{file}"), Vec::new(), false, &mut modules)?;
            }
        }
        let reached: BTreeSet<&str> = modules.iter().map(|module| &*module.file).collect();
        let mut files = self.files.keys();
        if let Some(stray) =
            files.find(|file| file.starts_with(&source) && !reached.contains(&***file))
        {
            bail!("{stray} is declared by no module");
        }
        Ok(modules)
    }

    fn collect(
        &self,
        file: &str,
        place: Vec<String>,
        test: bool,
        out: &mut Vec<Module>,
    ) -> Result<()> {
        let code = Code::parse(&self.files[file]).with_context(|| file.to_string())?;
        let test = test || code.is_test();
        let folder = folder(file);
        let declared = code.declared_modules();
        let parent = place.clone();
        out.push(Module {
            file: file.to_string(),
            place,
            test,
            code,
        });
        for child in declared {
            // What tests share lies beside them, and is no part of the crate.
            if child.elsewhere && (test || child.test) {
                continue;
            }
            let within = format!("{folder}/{}", child.place.join("/"));
            let candidates = [format!("{within}.rs"), format!("{within}/mod.rs")];
            let found = candidates
                .into_iter()
                .find(|path| self.files.contains_key(path));
            let found = found.with_context(|| format!("{file}: no file for {within}"))?;
            let place = [&parent[..], &child.place[..]].concat();
            self.collect(&found, place, test || child.test, out)?;
        }
        Ok(())
    }
}

/// Where the files of a file's modules are.
fn folder(file: &str) -> String {
    let (parent, name) = file.rsplit_once('/').unwrap_or(("", file));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => parent.to_string(),
        name => format!("{parent}/{}", name.trim_end_matches(".rs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let files = files.iter();
        let files = files.map(|(path, text)| (format!("crates/a/src/{path}"), text.to_string()));
        Tree {
            files: files.collect(),
        }
    }

    #[test]
    fn modules_are_found_as_the_compiler_finds_them() {
        let tree = tree(&[
            (
                "lib.rs",
                "mod one; mod inline { mod two; } #[cfg(test)] mod tests; #[cfg(test)] #[path = \"../tests/shared.rs\"] mod shared;",
            ),
            ("one.rs", "mod three;"),
            ("one/three/mod.rs", ""),
            ("inline/two.rs", ""),
            ("tests.rs", "mod deep;"),
            ("tests/deep.rs", ""),
        ]);
        assert_eq!(tree.crates().into_iter().collect::<Vec<_>>(), ["a"]);
        let modules = tree.modules("a").expect("a crate");
        let seen: Vec<_> = modules
            .iter()
            .map(|module| (module.place.join("::"), module.test))
            .collect();
        let expected = [
            ("", false),
            ("one", false),
            ("one::three", false),
            ("inline::two", false),
            ("tests", true),
            ("tests::deep", true),
        ];
        assert_eq!(
            seen,
            expected.map(|(place, test)| (place.to_string(), test))
        );
    }

    #[test]
    fn a_file_without_a_module_and_a_module_without_a_file_are_errors() {
        let stray = tree(&[("lib.rs", ""), ("left.rs", "")]);
        assert!(
            stray
                .modules("a")
                .err()
                .expect("a stray file")
                .to_string()
                .contains("left.rs")
        );
        assert!(tree(&[("lib.rs", "mod gone;")]).modules("a").is_err());
    }
}
