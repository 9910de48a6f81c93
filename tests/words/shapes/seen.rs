//! A value of a frame as it is on the wire, with no type known before.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Nil,
    Bool,
    Number(i128),
    Text(String),
    Bytes(usize),
    List(Vec<Seen>),
    Map(Vec<(String, Seen)>),
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Seen;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<Seen, E> {
                Ok(Seen::Nil)
            }
            fn visit_none<E>(self) -> Result<Seen, E> {
                Ok(Seen::Nil)
            }
            fn visit_bool<E>(self, _: bool) -> Result<Seen, E> {
                Ok(Seen::Bool)
            }
            fn visit_i64<E>(self, number: i64) -> Result<Seen, E> {
                Ok(Seen::Number(number.into()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Seen, E> {
                Ok(Seen::Number(number.into()))
            }
            fn visit_str<E>(self, text: &str) -> Result<Seen, E> {
                Ok(Seen::Text(text.to_owned()))
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Seen, E> {
                Ok(Seen::Bytes(bytes.len()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Seen, A::Error> {
                let mut list = Vec::new();
                while let Some(value) = seq.next_element()? {
                    list.push(value);
                }
                Ok(Seen::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Seen, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Seen::Map(fields))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Seen {
    /// Whether it is a value of the type `of`, or why not.
    pub fn fits(&self, of: &Value, shapes: &Value) -> Result<(), String> {
        if of["nothing"] == Value::Bool(true) && *self == Self::Nil {
            return Ok(());
        }
        let name = of["type"].as_str().ok_or_else(|| format!("no type in {of}"))?;
        match (name, self) {
            ("text", Self::Text(_)) | ("bool", Self::Bool) => Ok(()),
            ("u16", Self::Number(number)) if u16::try_from(*number).is_ok() => Ok(()),
            ("u32", Self::Number(number)) if u32::try_from(*number).is_ok() => Ok(()),
            ("u64", Self::Number(number)) if u64::try_from(*number).is_ok() => Ok(()),
            ("i64", Self::Number(number)) if i64::try_from(*number).is_ok() => Ok(()),
            ("bytes", Self::Bytes(length)) if of["length"].as_u64().is_none_or(|l| l == *length as u64) => {
                Ok(())
            }
            ("list", Self::List(list)) => {
                list.iter().try_for_each(|value| value.fits(&of["of"], shapes))?;
                match of["most"].as_u64() {
                    Some(most) if list.len() as u64 > most => Err(format!("a list of more than {most}")),
                    _ => Ok(()),
                }
            }
            ("tuple", Self::List(list)) => {
                let parts = of["of"].as_array().ok_or("a tuple of nothing")?;
                if parts.len() != list.len() {
                    return Err(format!("{} parts, not {}", list.len(), parts.len()));
                }
                list.iter().zip(parts).try_for_each(|(value, part)| value.fits(part, shapes))
            }
            _ => match shapes.get(name) {
                Some(shape) => self.has(shape, shapes).map_err(|why| format!("{name}: {why}")),
                None => Err(format!("{self:?} is no {name}")),
            },
        }
    }

    /// Whether it has this shape.
    fn has(&self, shape: &Value, shapes: &Value) -> Result<(), String> {
        match (shape["shape"].as_str(), self) {
            (Some("fields"), Self::Map(fields)) => fields_fit(fields, shape, shapes),
            (Some("words"), Self::Text(word)) => {
                let known = entry(shape, "words", "word", word).ok_or_else(|| format!("no word `{word}`"))?;
                if known.get("type").or(known.get("fields")).is_some() {
                    Err(format!("`{word}` holds more"))
                } else {
                    Ok(())
                }
            }
            (Some("words"), Self::Map(fields)) => {
                let [(word, value)] = fields.as_slice() else { return Err("not one word".to_owned()) };
                let known = entry(shape, "words", "word", word).ok_or_else(|| format!("no word `{word}`"))?;
                match (known.get("type"), value) {
                    (Some(_), value) => value.fits(known, shapes),
                    (None, Self::Map(fields)) => fields_fit(fields, known, shapes),
                    (None, _) => Err(format!("`{word}` holds {value:?}")),
                }
            }
            (Some("as"), value) => value.fits(shape, shapes),
            _ => Err(format!("{self:?} is not {}", shape["shape"])),
        }
    }
}

fn fields_fit(fields: &[(String, Seen)], shape: &Value, shapes: &Value) -> Result<(), String> {
    for (name, value) in fields {
        let field =
            entry(shape, "fields", "name", name).ok_or_else(|| format!("a field `{name}` nobody told of"))?;
        value.fits(field, shapes).map_err(|why| format!("{name}: {why}"))?;
    }
    for field in shape["fields"].as_array().into_iter().flatten() {
        let there = fields.iter().any(|(name, _)| field["name"] == name.as_str());
        if !there && field["optional"] != Value::Bool(true) {
            return Err(format!("no field {}", field["name"]));
        }
    }
    Ok(())
}

fn entry<'a>(shape: &'a Value, list: &str, by: &str, name: &str) -> Option<&'a Value> {
    shape[list].as_array()?.iter().find(|entry| entry[by] == name)
}
