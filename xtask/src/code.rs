//! One Rust file: which of its lines are code, which are there for tests only, and whom its code names.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use anyhow::Result;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Meta, Token};

/// A file that was parsed.
pub(crate) struct Code {
    file: syn::File,
    tokens: TokenStream,
    /// Lines of which only white space is left, for they may be inside a string.
    blank: BTreeSet<usize>,
    /// Lines of what is compiled for tests only.
    test: Vec<RangeInclusive<usize>>,
}

/// A module that a file declares to be another file.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Declared {
    /// Its name, after those of the modules within the file that it is in.
    pub(crate) place: Vec<String>,
    pub(crate) test: bool,
    /// An attribute says where its file is.
    pub(crate) elsewhere: bool,
}

/// A function and the code lines between its braces.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) lines: usize,
}

impl Code {
    /// # Errors
    ///
    /// It is not Rust.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let file = syn::parse_file(text)?;
        let tokens = file.to_token_stream();
        let blank = (1..)
            .zip(text.lines())
            .filter(|(_, line)| line.trim().is_empty());
        let blank = blank.map(|(number, _)| number).collect();
        let mut tests = Tests::default();
        tests.visit_file(&file);
        Ok(Self {
            file,
            tokens,
            blank,
            test: tests.0,
        })
    }

    /// Whether it says of itself that it is for tests only.
    pub(crate) fn is_test(&self) -> bool {
        self.file.attrs.iter().any(is_test)
    }

    /// Lines with code that is not for tests only: neither blank nor nothing but a comment.
    pub(crate) fn lines(&self) -> usize {
        let mut lines = BTreeSet::new();
        code_lines(self.tokens.clone(), &mut lines);
        let lines = lines.difference(&self.blank);
        lines.filter(|line| !self.in_test(**line)).count()
    }

    fn in_test(&self, line: usize) -> bool {
        self.test.iter().any(|range| range.contains(&line))
    }

    /// The modules that are other files, those of tests too.
    pub(crate) fn declared_modules(&self) -> Vec<Declared> {
        let mut found = Vec::new();
        declared_modules(&self.file.items, &[], false, &mut found);
        found
    }

    /// All functions, those of tests too.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions = Functions {
            blank: &self.blank,
            found: Vec::new(),
        };
        functions.visit_file(&self.file);
        functions.found
    }

    /// Whether code names this, tests only included if asked for.
    pub(crate) fn names(&self, name: &str, in_tests: bool) -> bool {
        let mut named = false;
        each_token(self.tokens.clone(), &mut |token| {
            named |= matches!(token, TokenTree::Ident(ident) if ident == name)
                && (in_tests || !self.in_test(token.span().start().line));
        });
        named
    }

    /// The tokens of what is not for tests only.
    pub(crate) fn tokens(&self) -> TokenStream {
        self.without_tests(self.tokens.clone())
    }

    fn without_tests(&self, tokens: TokenStream) -> TokenStream {
        let kept = tokens
            .into_iter()
            .filter(|token| !self.in_test(token.span().start().line));
        kept.map(|token| match token {
            TokenTree::Group(group) => {
                let inside = self.without_tests(group.stream());
                TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inside))
            }
            token => token,
        })
        .collect()
    }
}

fn each_token(tokens: TokenStream, see: &mut impl FnMut(&TokenTree)) {
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            each_token(group.stream(), see);
        }
        see(&token);
    }
}

/// All lines on which there is a part of a token, but for documentation, which reaches us as attributes.
fn code_lines(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(length) = documentation(&tokens[at..]) {
            at += length;
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => {
                lines.insert(group.span_open().start().line);
                code_lines(group.stream(), lines);
                lines.insert(group.span_close().end().line);
            }
            token => lines.extend(token.span().start().line..=token.span().end().line),
        }
        at += 1;
    }
}

/// How many tokens a documentation comment is that begins here.
fn documentation(tokens: &[TokenTree]) -> Option<usize> {
    let is = |token: &TokenTree, wanted| matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted);
    if !is(tokens.first()?, '#') {
        return None;
    }
    let length = if is(tokens.get(1)?, '!') { 3 } else { 2 };
    let TokenTree::Group(group) = tokens.get(length - 1)? else {
        return None;
    };
    let mut inside = group.stream().into_iter();
    let is_doc = group.delimiter() == Delimiter::Bracket
        && matches!(inside.next()?, TokenTree::Ident(name) if name == "doc")
        && is(&inside.next()?, '=');
    is_doc.then_some(length)
}

/// Whether an attribute leaves what it stands before to tests.
fn is_test(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else {
        return false;
    };
    list.path.is_ident("cfg")
        && list
            .parse_args::<Meta>()
            .is_ok_and(|meta| requires_test(&meta))
}

fn requires_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            let parts = Punctuated::<Meta, Token![,]>::parse_terminated;
            let parts = parts.parse2(list.tokens.clone());
            parts.is_ok_and(|parts| parts.iter().any(requires_test))
        }
        _ => false,
    }
}

/// The attributes that something begins with.
fn attributes(node: &impl ToTokens) -> Vec<Attribute> {
    let rest = |input: syn::parse::ParseStream<'_>| {
        let attributes = Attribute::parse_outer(input)?;
        input.parse::<TokenStream>()?;
        Ok(attributes)
    };
    rest.parse2(node.to_token_stream()).unwrap_or_default()
}

/// The lines of what is for tests only.
#[derive(Default)]
struct Tests(Vec<RangeInclusive<usize>>);

impl Tests {
    fn take(&mut self, node: &(impl ToTokens + Spanned)) -> bool {
        let is_test = attributes(node).iter().any(is_test);
        if is_test {
            self.0
                .push(node.span().start().line..=node.span().end().line);
        }
        is_test
    }
}

macro_rules! leave_out_tests {
    ($($visit:ident: $node:ty),*) => {
        impl<'a> Visit<'a> for Tests {
            $(fn $visit(&mut self, node: &'a $node) {
                if !self.take(node) {
                    visit::$visit(self, node);
                }
            })*
        }
    };
}

leave_out_tests! {
    visit_item: syn::Item, visit_impl_item: syn::ImplItem, visit_trait_item: syn::TraitItem, visit_stmt: syn::Stmt,
    visit_field: syn::Field, visit_variant: syn::Variant, visit_arm: syn::Arm, visit_field_value: syn::FieldValue
}

fn declared_modules(items: &[syn::Item], within: &[String], test: bool, out: &mut Vec<Declared>) {
    for item in items {
        let syn::Item::Mod(module) = item else {
            continue;
        };
        let test = test || module.attrs.iter().any(is_test);
        let place = [within, &[module.ident.to_string()]].concat();
        match &module.content {
            Some((_, items)) => declared_modules(items, &place, test, out),
            None => out.push(Declared {
                place,
                test,
                elsewhere: module.attrs.iter().any(|a| a.path().is_ident("path")),
            }),
        }
    }
}

struct Functions<'a> {
    blank: &'a BTreeSet<usize>,
    found: Vec<Function>,
}

impl Functions<'_> {
    fn take(&mut self, name: &syn::Ident, block: &syn::Block) {
        let mut lines = BTreeSet::new();
        for statement in &block.stmts {
            code_lines(statement.to_token_stream(), &mut lines);
        }
        self.found.push(Function {
            name: name.to_string(),
            lines: lines.difference(self.blank).count(),
        });
    }
}

impl<'a> Visit<'a> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.take(&function.sig.ident, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.take(&function.sig.ident, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.take(&function.sig.ident, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Code {
        Code::parse(text).expect("it is Rust")
    }

    #[test]
    fn comments_blank_lines_and_tests_are_no_code_lines() {
        let text = r##"//! About.

/* a block
   of words */
use a::b; // code before a comment

/// Documented.
#[derive(Debug)]
struct S {
    /// A field.
    field: u8,
    #[cfg(test)]
    seen:
        u8,
}

fn f() -> &'static str {
    // "no string
    let x = "a // string
/* of lines */

";
    #[cfg(test)]
    count(x);
    r#" "// raw" "#
}

#[cfg(test)]
mod tests;

#[cfg(all(test, unix))]
mod more {
    fn g() {}
}

#[cfg(not(test))]
fn h() {}
proptest! {
    /// In a macro.
    fn i() {}
}
"##;
        // use, derive, struct, field, }, fn f, let of three lines without its blank one and with its end, raw, }, cfg(not), h, macro, i, }.
        assert_eq!(code(text).lines(), 16);
    }

    #[test]
    fn functions_are_measured_between_their_braces() {
        let text = "impl S {\n    fn one(\n        a: u8,\n    ) {\n        // why\n\n        a();\n        b(\n        );\n    }\n}\ntrait T { fn no(); }\nfn two() {}\n";
        let functions = code(text).functions();
        let seen: Vec<_> = functions.iter().map(|f| (&*f.name, f.lines)).collect();
        assert_eq!(seen, [("one", 3), ("two", 0)]);
    }

    #[test]
    fn names_are_found_in_code_only_and_in_macros_too() {
        let text = "// laxity_a\n/// laxity_b\nfn f() { assert!(laxity_c::x()); }\n#[cfg(test)]\nuse laxity_d::y;\nconst S: &str = \"laxity_e\";\n";
        let code = code(text);
        let named = |in_tests: bool| {
            let all = ["laxity_a", "laxity_b", "laxity_c", "laxity_d", "laxity_e"];
            all.into_iter()
                .filter(|name| code.names(name, in_tests))
                .collect::<Vec<_>>()
        };
        assert_eq!(named(false), ["laxity_c"]);
        assert_eq!(named(true), ["laxity_c", "laxity_d"]);
        assert!(!code.tokens().to_string().contains("laxity_d"));
    }
}
