//! Reads the protocol's sources. What it does not understand stops it: nothing is told that was not read.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use serde_json::{Map, Value, json};
use syn::{Attribute, Fields, GenericArgument, Item, PathArguments, Type};
use tenure_tests::tree;

/// Types whose form on the wire is written by hand or is another crate's.
const BY_HAND: [(&str, &str, u64); 2] = [("id.Digest", "bytes", 32), ("uuid.Uuid", "bytes", 16)];

/// The types of the protocol, by module and name, as in `operator.Nodes`.
pub struct Types {
    found: BTreeMap<String, Found>,
}

struct Found {
    item: Item,
    module: String,
    /// What its file imports, by name.
    imported: BTreeMap<String, String>,
    /// The constants of its file, for texts that name them.
    numbers: BTreeMap<String, u64>,
}

impl Types {
    pub fn of_the_protocol() -> Self {
        let mut found = BTreeMap::new();
        let root = tree::root().join("protocol/src");
        for path in tree::sources(&["protocol/src"]) {
            let inside = path.strip_prefix(&root).unwrap().with_extension("");
            let parts: Vec<&str> = inside.iter().map(|part| part.to_str().unwrap()).collect();
            let module = parts.join(".");
            let file = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let (numbers, imported) = (numbers(&file), imported(&file));
            for item in file.items.into_iter().flat_map(written_out) {
                let name = match &item {
                    Item::Struct(item) => item.ident.to_string(),
                    Item::Enum(item) => item.ident.to_string(),
                    _ => continue,
                };
                let (imported, numbers) = (imported.clone(), numbers.clone());
                let entry = Found { item, module: module.clone(), imported, numbers };
                found.insert(format!("{module}.{name}"), entry);
            }
        }
        Self { found }
    }

    /// The shapes of these types and of everything they are made of.
    pub fn reached_from(&self, roots: &[String]) -> Value {
        let mut shapes = Map::new();
        let mut open: Vec<String> = roots.to_vec();
        while let Some(name) = open.pop() {
            if shapes.contains_key(&name) {
                continue;
            }
            let shape = self.shape(&name);
            collect(&shape, &mut |of| {
                if of.contains('.') {
                    open.push(of.to_owned());
                }
            });
            shapes.insert(name, shape);
        }
        Value::Object(shapes)
    }

    fn shape(&self, name: &str) -> Value {
        let found = self.found.get(name).unwrap_or_else(|| panic!("no type {name}"));
        let mut shape = match &found.item {
            Item::Struct(item) => self.structure(name, found, item),
            Item::Enum(item) => self.words(found, item),
            _ => panic!("{name} is no type"),
        };
        let attributes = match &found.item {
            Item::Struct(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            _ => panic!("{name} is no type"),
        };
        shape["means"] = json!(found.said(attributes));
        shape
    }

    fn structure(&self, name: &str, found: &Found, item: &syn::ItemStruct) -> Value {
        if let Some((_, of, length)) = BY_HAND.iter().find(|(known, ..)| *known == name) {
            return json!({ "shape": "as", "type": of, "length": length });
        }
        let serde = serde(&item.attrs);
        if serde.contains_key("try_from") {
            assert_eq!(serde["try_from"], "String", "{name}: another form than text");
            let mut shape = json!({ "shape": "as", "type": "text" });
            if let Some(rule) = item.attrs.iter().find(|attribute| attribute.path().is_ident("rule")) {
                shape["rule"] = json!(literal(&rule.meta.require_list().unwrap().tokens));
            }
            return shape;
        }
        let alone = serde.contains_key("transparent") || matches!(item.fields, Fields::Unnamed(_));
        if alone {
            let field = item.fields.iter().next().unwrap_or_else(|| panic!("{name} holds nothing"));
            let mut shape = self.field(found, field);
            shape["shape"] = json!("as");
            return shape;
        }
        let all = serde.contains_key("default");
        json!({ "shape": "fields", "fields": self.fields(found, &item.fields, all) })
    }

    fn words(&self, found: &Found, item: &syn::ItemEnum) -> Value {
        let serde = serde(&item.attrs);
        assert_eq!(serde.get("rename_all").map(String::as_str), Some("snake_case"), "{}", item.ident);
        assert!(!serde.contains_key("tag") && !serde.contains_key("untagged"), "{}", item.ident);
        let words: Vec<Value> = item
            .variants
            .iter()
            .map(|variant| {
                let mut word = match &variant.fields {
                    Fields::Unit => json!({}),
                    Fields::Unnamed(fields) => {
                        assert_eq!(fields.unnamed.len(), 1, "{}", variant.ident);
                        self.field(found, &fields.unnamed[0])
                    }
                    Fields::Named(_) => json!({ "fields": self.fields(found, &variant.fields, false) }),
                };
                word["word"] = json!(snake(&variant.ident.to_string()));
                word["means"] = json!(found.said(&variant.attrs));
                word
            })
            .collect();
        json!({ "shape": "words", "words": words })
    }

    fn fields(&self, found: &Found, fields: &Fields, all_optional: bool) -> Vec<Value> {
        fields
            .iter()
            .map(|field| {
                let serde = serde(&field.attrs);
                assert!(!serde.contains_key("flatten"), "{}: a flattened field", found.module);
                let own = field.ident.as_ref().unwrap().to_string();
                let mut shape = self.field(found, field);
                shape["name"] = json!(serde.get("rename").unwrap_or(&own));
                shape["means"] = json!(found.said(&field.attrs));
                // serde takes a field that may be nothing for one that may be left out.
                if all_optional || serde.contains_key("default") || shape["nothing"] == json!(true) {
                    shape["optional"] = json!(true);
                }
                shape
            })
            .collect()
    }

    fn field(&self, found: &Found, field: &syn::Field) -> Value {
        let serde = serde(&field.attrs);
        let mut shape = match serde.get("with").map(String::as_str) {
            Some("serde_bytes") => bytes(&field.ty),
            Some(other) => panic!("{other} writes a field"),
            None => self.of(found, &field.ty),
        };
        if let Some(by) = serde.get("deserialize_with") {
            let most = by.rsplit(',').next().unwrap().trim().trim_end_matches('>').trim();
            shape["most"] = json!(most.parse::<u64>().unwrap_or_else(|_| panic!("{by} is no bound")));
        }
        shape
    }

    fn of(&self, found: &Found, of: &Type) -> Value {
        match of {
            Type::Tuple(tuple) => {
                let parts: Vec<Value> = tuple.elems.iter().map(|part| self.of(found, part)).collect();
                json!({ "type": "tuple", "of": parts })
            }
            Type::Path(path) => {
                let last = path.path.segments.last().unwrap();
                let inner = match &last.arguments {
                    PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
                        Some(GenericArgument::Type(inner)) => Some(self.of(found, inner)),
                        _ => None,
                    },
                    _ => None,
                };
                match (last.ident.to_string().as_str(), inner) {
                    ("Option", Some(mut inner)) => {
                        inner["nothing"] = json!(true);
                        inner
                    }
                    ("Vec", Some(inner)) => json!({ "type": "list", "of": inner }),
                    ("String", None) => json!({ "type": "text" }),
                    (plain @ ("bool" | "u16" | "u32" | "u64" | "i64"), None) => json!({ "type": plain }),
                    ("Uuid", None) => json!({ "type": "bytes", "length": 16 }),
                    (name, None) => json!({ "type": self.resolve(found, &path.path, name) }),
                    (name, Some(_)) => panic!("{name}<…> in {}", found.module),
                }
            }
            other => panic!("{} in {}", other.to_token_stream(), found.module),
        }
    }

    /// Which type `name` is in this file: by its path, of the file itself, imported, or the only one of the name.
    fn resolve(&self, found: &Found, path: &syn::Path, name: &str) -> String {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let inside: Vec<&str> = parts.iter().map(String::as_str).filter(|part| *part != "crate").collect();
        if inside.len() > 1 {
            return inside.join(".");
        }
        let here = format!("{}.{name}", found.module);
        if self.found.contains_key(&here) {
            return here;
        }
        if let Some(imported) = found.imported.get(name).filter(|imported| self.found.contains_key(*imported))
        {
            return imported.clone();
        }
        let suffix = format!(".{name}");
        let all: Vec<&String> = self.found.keys().filter(|known| known.ends_with(&suffix)).collect();
        assert_eq!(all.len(), 1, "which `{name}` in {}? {all:?}", found.module);
        all[0].clone()
    }
}

impl Found {
    /// The docs of an item as one text: without the numbers of promises, with the value of a constant for its name.
    fn said(&self, attributes: &[Attribute]) -> String {
        let lines: Vec<String> = attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("doc"))
            .map(|attribute| literal(&attribute.meta.require_name_value().unwrap().value.to_token_stream()))
            .collect();
        let mut text = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        for (name, value) in &self.numbers {
            text = text.replace(&format!("[`{name}`]"), &value.to_string());
        }
        text = text.replace("[`", "`").replace("`]", "`");
        without_numbers_of_promises(&text)
    }
}

/// `text (N-01)` without what stands in those brackets.
fn without_numbers_of_promises(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (") {
        let (inside, behind) = after.split_once(')').unwrap_or((after, ""));
        let number = |part: &str| {
            part.trim().split_once('-').is_some_and(|(letter, digits)| {
                letter.len() == 1 && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        out.push_str(before);
        if !inside.split(',').all(number) {
            out.push_str(&format!(" ({inside})"));
        }
        rest = behind;
    }
    out + rest
}

/// The types that a macro of ours declares, written out; any other item as it is.
fn written_out(item: Item) -> Vec<Item> {
    let Item::Macro(of) = &item else { return vec![item] };
    let called = of.mac.path.to_token_stream().to_string();
    let tokens = of.mac.tokens.clone();
    let (docs, rest) = split(tokens);
    let name = match rest.first() {
        Some(TokenTree::Ident(name)) => name.clone(),
        _ => return Vec::new(),
    };
    let text = match called.as_str() {
        "name" => {
            let rule = rest.iter().filter(|token| matches!(token, TokenTree::Literal(_))).nth(1).unwrap();
            format!("{docs} #[serde(try_from = \"String\")] #[rule({rule})] struct {name}(Box<str>);")
        }
        "random_id" => format!("{docs} #[serde(transparent)] struct {name}(Uuid);"),
        "number" => format!("{docs} #[serde(transparent)] struct {name}(u64);"),
        _ => return Vec::new(),
    };
    vec![syn::parse_str(&text).unwrap()]
}

/// The attributes at the front of what a macro is given, and the rest.
fn split(tokens: TokenStream) -> (TokenStream, Vec<TokenTree>) {
    let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while matches!(&tokens[at..], [TokenTree::Punct(hash), TokenTree::Group(_), ..] if hash.as_char() == '#')
    {
        at += 2;
    }
    let rest = tokens.split_off(at);
    (tokens.into_iter().collect(), rest)
}

/// What a file imports from its own crate, by the last name.
fn imported(file: &syn::File) -> BTreeMap<String, String> {
    fn walk(tree: &syn::UseTree, path: &[String], into: &mut BTreeMap<String, String>) {
        let join = |last: &syn::Ident| path.iter().cloned().chain([last.to_string()]).collect::<Vec<_>>();
        match tree {
            syn::UseTree::Path(inner) if inner.ident == "crate" => walk(&inner.tree, path, into),
            syn::UseTree::Path(inner) => walk(&inner.tree, &join(&inner.ident), into),
            syn::UseTree::Name(name) => {
                drop(into.insert(name.ident.to_string(), join(&name.ident).join(".")))
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|inner| walk(inner, path, into)),
            syn::UseTree::Rename(_) | syn::UseTree::Glob(_) => {}
        }
    }
    let mut into = BTreeMap::new();
    for item in &file.items {
        if let Item::Use(item) = item {
            walk(&item.tree, &[], &mut into);
        }
    }
    into
}

/// The whole numbers among the constants of a file.
fn numbers(file: &syn::File) -> BTreeMap<String, u64> {
    file.items
        .iter()
        .filter_map(|item| match item {
            Item::Const(item) => {
                Some((item.ident.to_string(), number(&item.expr.to_token_stream().to_string())?))
            }
            _ => None,
        })
        .collect()
}

fn number(text: &str) -> Option<u64> {
    text.split('*').map(|part| part.trim().replace('_', "").parse::<u64>().ok()).product()
}

/// What the serde attributes of an item say.
fn serde(attributes: &[Attribute]) -> BTreeMap<String, String> {
    let mut said = BTreeMap::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute
            .parse_nested_meta(|meta| {
                let value = match meta.value() {
                    Ok(value) => value.parse::<syn::LitStr>()?.value(),
                    Err(_) => String::new(),
                };
                said.insert(meta.path.require_ident()?.to_string(), value);
                Ok(())
            })
            .unwrap();
    }
    said
}

fn bytes(of: &Type) -> Value {
    match of {
        Type::Array(array) => {
            let length = number(&array.len.to_token_stream().to_string()).unwrap();
            json!({ "type": "bytes", "length": length })
        }
        _ => json!({ "type": "bytes" }),
    }
}

fn literal(tokens: &TokenStream) -> String {
    syn::parse2::<syn::LitStr>(tokens.clone()).unwrap().value()
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for (at, char) in name.chars().enumerate() {
        if char.is_uppercase() && at > 0 {
            out.push('_');
        }
        out.extend(char.to_lowercase());
    }
    out
}

/// Every type a shape names.
fn collect(shape: &Value, each: &mut impl FnMut(&str)) {
    match shape {
        Value::Object(fields) => {
            if let Some(Value::String(of)) = fields.get("type") {
                each(of);
            }
            fields.values().for_each(|value| collect(value, each));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
