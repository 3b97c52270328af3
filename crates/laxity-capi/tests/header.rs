//! The headers say what the library has: every function with its types, every constant, every structure with its fields, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;

use quote::ToTokens;
use syn::{Expr, Fields, FnArg, Item, ItemConst, ItemFn, ItemStruct, ReturnType, Type, Visibility};

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Source files, their header, with what every name there begins, and what the header alone has.
const PAIRS: [(&[&str], &str, &str, &[&str]); 2] = [
    (
        &["src/lib.rs"],
        "include/laxity.h",
        "laxity_",
        &["LAXITY_H", "LAXITY_REQUEST_INIT", "LAXITY_DELIVERY_INIT"],
    ),
    (
        &[
            "src/rts.rs",
            "src/rts/types.rs",
            "src/rts/quantum.rs",
            "src/rts/group.rs",
            "src/rts/coordinated.rs",
            "src/rts/told.rs",
            "src/rts/virtual_time.rs",
        ],
        "include/rts.h",
        "rts_",
        &[
            "RTS_OPTIONS_INIT",
            "RTS_COORDINATOR_INIT",
            "RTS_ATTRIBUTES_INIT",
            "RTS_BUDGET_INIT",
            "RTS_USAGE_INIT",
            "RTS_COUNTS_INIT",
        ],
    ),
];

/// A header without its comments, every run of blanks one blank.
fn header(path: &str) -> String {
    let mut text = read(path);
    while let Some((before, rest)) = text.split_once("/*") {
        let (_, after) = rest.split_once("*/").expect("a comment ends");
        text = format!("{before} {after}");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A type of Rust's as C writes it before a name.
fn in_c(of: &Type) -> String {
    let Type::Ptr(pointer) = of else {
        let name = of.to_token_stream().to_string();
        let name = match name.as_str() {
            "c_int" => "int",
            "c_char" => "char",
            "c_void" => "void",
            "u32" => "uint32_t",
            "u64" => "uint64_t",
            "usize" => "size_t",
            "i32" => "int32_t",
            ours => ours,
        };
        return format!("{name} ");
    };
    let constant = if pointer.mutability.is_some() {
        ""
    } else {
        "const "
    };
    format!("{constant}{}*", in_c(&pointer.elem))
}

fn prototype(function: &ItemFn) -> String {
    let arguments = function.sig.inputs.iter().map(|argument| {
        let FnArg::Typed(argument) = argument else {
            panic!("no method");
        };
        format!("{}{}", in_c(&argument.ty), argument.pat.to_token_stream())
    });
    let arguments: Vec<String> = arguments.collect();
    let arguments = if arguments.is_empty() {
        "void".to_owned()
    } else {
        arguments.join(", ")
    };
    let ReturnType::Type(_, returned) = &function.sig.output else {
        panic!("every function returns something");
    };
    format!("{}{}({arguments});", in_c(returned), function.sig.ident)
}

fn structure(of: &ItemStruct) -> String {
    let Fields::Named(fields) = &of.fields else {
        panic!("a structure has names for its fields");
    };
    let field = |field: &syn::Field| {
        let name = field.ident.as_ref().expect("a named field");
        match &field.ty {
            Type::Array(array) => {
                let length = array.len.to_token_stream();
                format!("{}{name}[{length}];", in_c(&array.elem))
            }
            other => format!("{}{name};", in_c(other)),
        }
    };
    let fields: Vec<String> = fields.named.iter().map(field).collect();
    let name = &of.ident;
    format!("typedef struct {name} {{ {} }} {name};", fields.join(" "))
}

fn constant(of: &ItemConst) -> String {
    let value = of.expr.to_token_stream().to_string().replace("- ", "-");
    let negative = matches!(*of.expr, Expr::Unary(_));
    let value = if negative {
        format!("({value})")
    } else {
        value
    };
    format!("#define {} {value}", of.ident)
}

/// What source files export, as C declares it.
fn declarations(paths: &[&str]) -> Vec<String> {
    let sources = paths.iter().map(|path| syn::parse_file(&read(path)));
    let items = sources.flat_map(|source| source.unwrap().items);
    let declared = items.filter_map(|item| match &item {
        Item::Fn(function) if function.sig.abi.is_some() => Some(prototype(function)),
        Item::Struct(of) if matches!(of.vis, Visibility::Public(_)) => Some(structure(of)),
        Item::Const(of) if matches!(of.vis, Visibility::Public(_)) => Some(constant(of)),
        Item::Type(of) if of.ident == "rts_handler" => {
            Some("typedef void (*rts_handler)(rts_funargs *arg);".to_owned())
        }
        Item::Type(of) => Some(format!("typedef {}{};", in_c(&of.ty), of.ident)),
        _ => None,
    });
    declared.collect()
}

#[test]
fn every_declaration_stands_in_the_header() {
    for (source, path, ..) in PAIRS {
        let (header, declarations) = (header(path), declarations(source));
        assert!(declarations.len() >= 14, "{declarations:?}");
        for declaration in declarations {
            assert!(header.contains(&declaration), "missing: {declaration}");
        }
    }
}

#[test]
fn the_header_declares_nothing_else() {
    let names = |text: &str, prefix: &str| {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let ours = words.filter(|word| word.to_lowercase().starts_with(prefix));
        ours.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    for (source, path, prefix, own) in PAIRS {
        let mut declared = names(&declarations(source).join(" "), prefix);
        declared.extend(own.iter().map(|name| (*name).to_owned()));
        assert_eq!(names(&header(path), prefix), declared);
    }
}
