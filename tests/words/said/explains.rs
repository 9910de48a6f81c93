//! What every error that explains itself can say: its variants with their texts, and the arms of its three functions
//! laid beside each other.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use syn::{Expr, Fields, ImplItem, Item};

use super::arms::{Arm, arms, laid_beside, tail};
use super::patterns::Pattern;
use super::sources::{Source, has, name_of};
use super::texts::{Reading, Scope, is_hole};
use super::{Said, each_of};

/// What this implementation says. A code that is another error's own is that error's to tell, and what came from the
/// other side of a wire is in its words.
pub fn rows(reading: &Reading<'_>, of: &syn::ItemImpl) -> Vec<Said> {
    let error = name_of(&of.self_ty);
    let [codes, meanings, remedies] = ["code", "meaning", "remedy"].map(|name| function(reading, of, name));
    let asked: Vec<&Pattern> =
        [&codes, &meanings, &remedies].into_iter().flatten().map(|arm| &arm.pattern).collect();
    let mut rows = Vec::new();
    for leaf in leaves(reading, &error, &asked, 0) {
        for (pattern, code) in laid_beside(&leaf, &codes) {
            if delegates(&code, "code") {
                continue;
            }
            for (pattern, means) in laid_beside(&pattern, &meanings) {
                for (pattern, remedy) in laid_beside(&pattern, &remedies) {
                    let text = |expr: &Expr| reading.texts(expr, &Scope::default());
                    let happened = happened(reading, &error, &pattern);
                    rows.extend(each_of(
                        &text(&code),
                        &happened,
                        &text(&means),
                        &text(&remedy),
                        reading.source,
                    ));
                }
            }
        }
    }
    rows.retain(|row| !is_hole(&row.means));
    rows
}

fn delegates(says: &Expr, name: &str) -> bool {
    matches!(says, Expr::MethodCall(call) if call.method == name)
}

/// The variants of an error; where an arm asks for those of an error inside, each of these.
fn leaves(reading: &Reading<'_>, error: &str, asked: &[&Pattern], depth: usize) -> Vec<Pattern> {
    let Some((source, Item::Enum(item))) = error_type(reading, error) else {
        return vec![Pattern::Any(None)];
    };
    let reading = Reading { source, all: reading.all };
    let mut leaves = Vec::new();
    for variant in &item.variants {
        let name = variant.ident.to_string();
        let plain = Pattern::Variant(name.clone(), Default::default());
        let inside: Vec<&Pattern> = asked
            .iter()
            .filter_map(|pattern| match pattern {
                Pattern::Variant(of, fields) if *of == name => fields.get("0"),
                _ => None,
            })
            .filter(|pattern| matches!(pattern, Pattern::Variant(..)))
            .collect();
        match variant.fields.iter().next() {
            Some(field) if !inside.is_empty() && depth < 3 => {
                for inner in self::leaves(&reading, &name_of(&field.ty), &inside, depth + 1) {
                    leaves.push(Pattern::Variant(name.clone(), [("0".to_owned(), inner)].into()));
                }
            }
            _ => leaves.push(plain),
        }
    }
    leaves
}

fn function(reading: &Reading<'_>, of: &syn::ItemImpl, name: &str) -> Vec<Arm> {
    let found = of.items.iter().find_map(|item| match item {
        ImplItem::Fn(item) if item.sig.ident == name => Some(&item.block),
        _ => None,
    });
    let block = found.unwrap_or_else(|| panic!("{name} of {}", name_of(&of.self_ty)));
    arms(reading, &tail(block), "self")
}

/// What `Display` says of what fits `pattern`, with the type of its cause behind it.
fn happened(reading: &Reading<'_>, error: &str, pattern: &Pattern) -> Vec<String> {
    let Some((source, item)) = error_type(reading, error) else { return vec![format!("{{{error}}}")] };
    let reading = Reading { source, all: reading.all };
    let mut said = Vec::new();
    match item {
        Item::Enum(item) => {
            for variant in &item.variants {
                let own = Pattern::Variant(variant.ident.to_string(), Default::default());
                if let Some(Pattern::Variant(_, inside)) = pattern.both(&own) {
                    let inner = |field: &str| inside.get(field).cloned().unwrap_or(Pattern::Any(None));
                    said.extend(display(&reading, &variant.attrs, &variant.fields, &inner));
                }
            }
        }
        Item::Struct(item) => {
            said.extend(display(&reading, &item.attrs, &item.fields, &|_| Pattern::Any(None)));
        }
        _ => panic!("{error} is no error"),
    }
    said.dedup();
    said
}

/// The error of this name: of the file, else of its crate, else the only one there is.
fn error_type<'a>(reading: &Reading<'a>, name: &str) -> Option<(&'a Source, &'a Item)> {
    let named = |item: &&Item| match item {
        Item::Enum(item) => item.ident == name,
        Item::Struct(item) => item.ident == name,
        _ => false,
    };
    let own = reading.source;
    // `mistake/explain.rs` explains what `mistake.rs` declares.
    let above = own.place.rsplit_once('/').map(|(folder, _)| format!("{folder}.rs")).unwrap_or_default();
    let imported = own.imported.get(name).cloned().unwrap_or_default();
    let mut sources: Vec<&Source> = reading.all.iter().collect();
    sources.sort_by_key(|source| {
        (
            source.place != own.place,
            !source.place.ends_with(&format!("/{imported}.rs")),
            source.place != above,
            source.folder != own.folder,
        )
    });
    sources.into_iter().find_map(|source| source.errors.iter().find(named).map(|item| (source, item)))
}

fn display(
    reading: &Reading<'_>,
    attributes: &[syn::Attribute],
    fields: &Fields,
    inner: &dyn Fn(&str) -> Pattern,
) -> Vec<String> {
    let Some(error) = attributes.iter().find(|attribute| attribute.path().is_ident("error")) else {
        return Vec::new();
    };
    let list = error.meta.require_list().unwrap();
    if list.tokens.to_string() == "transparent" {
        let field = fields.iter().next().unwrap();
        return happened(reading, &name_of(&field.ty), &inner("0"));
    }
    let arguments = list
        .parse_args_with(syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated)
        .map(|arguments| arguments.into_iter().collect::<Vec<_>>());
    // Arguments such as `.0.short()` are no expressions: of those the text alone is read.
    let (text, arguments) = match arguments {
        Ok(all) => (first_text(&all[0]), all[1..].to_vec()),
        Err(_) => loose(list.tokens.clone()),
    };
    let mut say = |expr: &Expr| field_said(reading, fields, expr, inner);
    let mut said = reading.filled(&text, &arguments, &mut say);
    for (at, field) in fields.iter().enumerate() {
        let named = |text: &String| text.replace(&format!("{{_{at}"), &format!("{{{}", name_of(&field.ty)));
        said = said.iter().map(named).collect();
    }
    if let Some(cause) = fields.iter().find(|field| is_source(field)) {
        said.iter_mut().for_each(|text| text.push_str(&format!(": {{{}}}", name_of(&cause.ty))));
    }
    said
}

fn first_text(expr: &Expr) -> String {
    match expr {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => text.value(),
        _ => panic!("an error without a text"),
    }
}

/// The text of `"…", .0.short(), …` and its arguments, a leading dot read as `self.`, and `.0` as `_0`.
fn loose(tokens: TokenStream) -> (String, Vec<Expr>) {
    let spelled = of_self(tokens);
    let parser = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
    let all = syn::parse::Parser::parse2(parser, spelled.clone());
    let all: Vec<Expr> =
        all.unwrap_or_else(|why| panic!("not understood ({why}): {spelled}")).into_iter().collect();
    (first_text(&all[0]), all[1..].to_vec())
}

fn of_self(tokens: TokenStream) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let begins = matches!(out.last(), None | Some(TokenTree::Punct(_)));
        let after_self = matches!(&out[..], [.., TokenTree::Ident(name), TokenTree::Punct(dot)] if name == "self" && dot.as_char() == '.');
        match token {
            TokenTree::Punct(dot) if dot.as_char() == '.' && begins => {
                out.push(TokenTree::Ident(Ident::new("self", dot.span())));
                out.push(TokenTree::Punct(dot));
            }
            TokenTree::Literal(number) if after_self => {
                out.push(TokenTree::Ident(Ident::new(&format!("_{number}"), number.span())));
            }
            TokenTree::Group(group) => {
                out.push(TokenTree::Group(Group::new(group.delimiter(), of_self(group.stream()))));
            }
            other => out.push(other),
        }
    }
    out.into_iter().collect()
}

/// What a field says inside a text: its own texts where it is an error of ours that a pattern narrows, else its name.
fn field_said(
    reading: &Reading<'_>,
    fields: &Fields,
    expr: &Expr,
    inner: &dyn Fn(&str) -> Pattern,
) -> Vec<String> {
    let Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(at), .. }) = expr else {
        return reading.texts(expr, &Scope::default());
    };
    let at: usize = at.base10_parse().unwrap();
    let name = fields.iter().nth(at).map(|field| name_of(&field.ty)).unwrap_or_default();
    match inner(&at.to_string()) {
        narrowed @ Pattern::Variant(..) => happened(reading, &name, &narrowed),
        Pattern::Any(_) | Pattern::Value(_) => vec![format!("{{{name}}}")],
    }
}

fn is_source(field: &syn::Field) -> bool {
    has(&field.attrs, "source")
        || has(&field.attrs, "from")
        || field.ident.as_ref().is_some_and(|name| name == "source")
}
