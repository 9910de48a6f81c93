//! The sources of the project without their tests: what functions, constants and error types they have.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, FnArg, Item, Pat, Signature};
use tenure_tests::tree;

/// The crates whose words people read, by their folders.
const FOLDERS: [&str; 5] = ["actors/src", "protocol/src", "host/src", "controlplane/src", "controlplane/cli"];

/// One file.
pub struct Source {
    pub place: String,
    pub folder: &'static str,
    pub functions: Vec<Function>,
    pub constants: BTreeMap<String, Expr>,
    /// The module that each imported name comes from.
    pub imported: BTreeMap<String, String>,
    /// Enums and structs that are errors.
    pub errors: Vec<Item>,
    pub explains: Vec<syn::ItemImpl>,
}

/// One function or method.
#[derive(Clone)]
pub struct Function {
    /// The type whose method it is.
    pub of: Option<String>,
    pub name: String,
    /// The names of its parameters, `self` left out.
    pub parameters: Vec<String>,
    /// What it returns, as it is written.
    pub returns: String,
    pub body: syn::Block,
}

/// Every file.
pub fn all() -> Vec<Source> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        for path in tree::sources(&[folder]) {
            if !is_test(&path) {
                sources.push(one(folder, &path));
            }
        }
    }
    sources
}

/// Whether a file holds nothing but tests.
pub fn is_test(path: &Path) -> bool {
    let inside = path.strip_prefix(tree::root()).unwrap();
    inside.starts_with("tests")
        || inside.iter().any(|part| part == "tests")
        || inside.file_stem().is_some_and(|stem| stem == "tests" || stem == "golden")
}

fn one(folder: &'static str, path: &Path) -> Source {
    let file = syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap();
    let place = path.strip_prefix(tree::root()).unwrap().display().to_string();
    let mut found = Finding {
        source: Source {
            place,
            folder,
            functions: Vec::new(),
            constants: BTreeMap::new(),
            imported: BTreeMap::new(),
            errors: Vec::new(),
            explains: Vec::new(),
        },
        of: None,
    };
    found.visit_file(&file);
    found.source
}

struct Finding {
    source: Source,
    of: Option<String>,
}

impl Finding {
    fn function(&mut self, signature: &Signature, body: &syn::Block) {
        self.source.functions.push(Function {
            of: self.of.clone(),
            name: signature.ident.to_string(),
            parameters: parameters(signature),
            returns: signature.output.to_token_stream().to_string(),
            body: body.clone(),
        });
    }
}

/// The names of a function's parameters, `self` left out.
pub fn parameters(signature: &Signature) -> Vec<String> {
    let name = |input: &FnArg| match input {
        FnArg::Receiver(_) => None,
        FnArg::Typed(typed) => Some(match &*typed.pat {
            Pat::Ident(ident) => ident.ident.to_string(),
            _ => "_".to_owned(),
        }),
    };
    signature.inputs.iter().filter_map(name).collect()
}

impl<'ast> Visit<'ast> for Finding {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, error) = match item {
            Item::Enum(item) => (&item.attrs, item.variants.iter().any(|v| has(&v.attrs, "error"))),
            Item::Struct(item) => (&item.attrs, has(&item.attrs, "error")),
            Item::Mod(item) => (&item.attrs, false),
            Item::Fn(item) => (&item.attrs, false),
            Item::Impl(item) => (&item.attrs, false),
            _ => (&Vec::new(), false),
        };
        if only_for_tests(attributes) {
            return;
        }
        if error {
            self.source.errors.push(item.clone());
        }
        visit::visit_item(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_use_path(&mut self, path: &'ast syn::UsePath) {
        let module = path.ident.to_string();
        let mut name = |tree: &syn::UseTree| {
            if let syn::UseTree::Name(name) = tree {
                self.source.imported.insert(name.ident.to_string(), module.clone());
            }
        };
        match &*path.tree {
            syn::UseTree::Group(group) => group.items.iter().for_each(&mut name),
            tree => name(tree),
        }
        visit::visit_use_path(self, path);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.source.constants.insert(item.ident.to_string(), (*item.expr).clone());
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = self.of.replace(name_of(&item.self_ty));
        let explain = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if explain.is_some_and(|name| name.ident == "Explain") {
            self.source.explains.push(item.clone());
        }
        visit::visit_item_impl(self, item);
        self.of = of;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !only_for_tests(&item.attrs) {
            self.function(&item.sig, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }
}

/// The last name of a type.
pub fn name_of(of: &syn::Type) -> String {
    match of {
        syn::Type::Path(path) => path.path.segments.last().unwrap().ident.to_string(),
        syn::Type::Reference(reference) => name_of(&reference.elem),
        _ => String::new(),
    }
}

/// Whether one of the attributes has this name.
pub fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// Calls `each` for every token, also inside brackets.
pub fn tokens(stream: TokenStream, each: &mut impl FnMut(&TokenTree)) {
    for token in stream {
        each(&token);
        if let TokenTree::Group(group) = &token {
            tokens(group.stream(), each);
        }
    }
}
