//! JSON schemas on their way to the grammar compiler: bounds, references that lead nowhere, and the place of a failure.

use std::collections::HashSet;

use llguidance::api::ParserLimits;
use llguidance::{GrammarBuilder, JsonCompileOptions};
use serde_json::{Value as Json, json};

use crate::Result;
use crate::constraint::{MOST_REGEX_BYTES, sentence};

const MOST_BYTES: usize = 256 << 10;
/// Parts of a schema that are compiled alone to find the one that fails.
const MOST_TRIES: usize = 400;
/// Between values, instead of any amount: a model that likes blanks could go on with them for ever.
const WHITESPACE: &str = r"[ \t]{1,16}|\n[ \t]{0,32}";

/// The schema with our options in it. Fails for what is no schema, for too large ones and for references in a circle.
pub fn prepare(source: &str, strict: bool) -> Result<Json> {
    let mut schema = parse(source)?;
    check_references(&schema)?;
    check_patterns(&schema)?;
    if let Json::Object(map) = &mut schema {
        map.insert("x-guidance".into(), options(strict));
    }
    Ok(schema)
}

/// A failure of the schema as a whole, with the place in it where there is one.
pub fn locate(source: &str, message: &str) -> String {
    let Ok(schema) = parse(source) else { return message.to_owned() };
    let mut tries = 0;
    match deepest_failure(&schema, &schema, "#".into(), &mut tries) {
        Some((path, reason)) => format!("the JSON schema fails at {path}: {reason}"),
        None => format!("the JSON schema fails at #: {message}"),
    }
}

fn options(strict: bool) -> Json {
    json!({"whitespace_pattern": WHITESPACE, "lenient": !strict, "coerce_one_of": true})
}

fn parse(source: &str) -> Result<Json> {
    if source.len() > MOST_BYTES {
        return Err(format!("the JSON schema has {} bytes, at most are {MOST_BYTES}", source.len()));
    }
    let schema: Json = serde_json::from_str(source).map_err(|error| format!("the JSON schema is not JSON: {error}"))?;
    if schema.is_object() || schema.is_boolean() {
        Ok(schema)
    } else {
        Err("the JSON schema fails at #: it is neither an object nor true or false".into())
    }
}

/// Every schema inside of `schema`, with its path; keywords that hold values are left out.
fn each_part(schema: &Json, path: String, see: &mut impl FnMut(&Json, &str) -> Result<()>) -> Result<()> {
    see(schema, &path)?;
    let Json::Object(map) = schema else { return Ok(()) };
    for (key, value) in map {
        let here = format!("{path}/{}", escape(key));
        match (key.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Json::Object(parts),
            ) => {
                for (name, part) in parts {
                    each_part(part, format!("{here}/{}", escape(name)), see)?;
                }
            }
            ("anyOf" | "allOf" | "oneOf" | "prefixItems" | "items", Json::Array(parts)) => {
                for (at, part) in parts.iter().enumerate() {
                    each_part(part, format!("{here}/{at}"), see)?;
                }
            }
            (
                "items"
                | "additionalProperties"
                | "additionalItems"
                | "not"
                | "contains"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "unevaluatedProperties",
                part,
            ) => each_part(part, here, see)?,
            _ => {}
        }
    }
    Ok(())
}

/// References have to lead to a part of this schema, and not to themselves without a value on the way.
fn check_references(schema: &Json) -> Result<()> {
    each_part(schema, "#".into(), &mut |part, path| {
        let (mut at, mut seen) = (part, HashSet::new());
        while let Some(reference) = at.get("$ref") {
            let Some(name) = reference.as_str() else {
                return Err(format!("the JSON schema fails at {path}/$ref: a reference has to be a string"));
            };
            if !seen.insert(name) {
                return Err(format!("the JSON schema fails at {path}/$ref: {name:?} leads back to itself"));
            }
            at = resolve(schema, name)
                .ok_or_else(|| format!("the JSON schema fails at {path}/$ref: there is no {name:?} in it"))?;
        }
        Ok(())
    })
}

fn check_patterns(schema: &Json) -> Result<()> {
    each_part(schema, "#".into(), &mut |part, path| {
        let names = part.get("patternProperties").and_then(Json::as_object).into_iter().flat_map(|parts| parts.keys());
        let own = part.get("pattern").and_then(Json::as_str);
        match names.map(String::as_str).chain(own).find(|pattern| pattern.len() > MOST_REGEX_BYTES) {
            None => Ok(()),
            Some(pattern) => Err(format!(
                "the JSON schema fails at {path}: a pattern has {} bytes, at most are {MOST_REGEX_BYTES}",
                pattern.len()
            )),
        }
    })
}

fn resolve<'a>(schema: &'a Json, reference: &str) -> Option<&'a Json> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() || pointer == "/" { Some(schema) } else { schema.pointer(pointer) }
}

/// The innermost part that fails alone as well, in the order of the schema.
fn deepest_failure(root: &Json, part: &Json, path: String, tries: &mut usize) -> Option<(String, String)> {
    *tries += 1;
    if *tries > MOST_TRIES {
        return None;
    }
    let reason = compile_alone(root, part).err()?;
    let mut inner = None;
    let _ = each_child(part, &path, &mut |child, at| {
        if inner.is_none() {
            inner = deepest_failure(root, child, at, tries);
        }
    });
    inner.or(Some((path, reason)))
}

fn each_child(part: &Json, path: &str, see: &mut impl FnMut(&Json, String)) -> Result<()> {
    let mut outermost = true;
    let mut skip: Option<String> = None;
    each_part(part, path.to_owned(), &mut |child, at| {
        if std::mem::take(&mut outermost) || skip.as_deref().is_some_and(|above| at.starts_with(above)) {
            return Ok(());
        }
        skip = Some(format!("{at}/"));
        see(child, at.to_owned());
        Ok(())
    })
}

fn compile_alone(root: &Json, part: &Json) -> Result<()> {
    let mut schema = part.clone();
    if let (Json::Object(map), Json::Object(root)) = (&mut schema, root) {
        for name in ["$defs", "definitions"] {
            if let (Some(definitions), false) = (root.get(name), map.contains_key(name)) {
                map.insert(name.into(), definitions.clone());
            }
        }
    }
    let builder = GrammarBuilder::new(None, ParserLimits::default());
    JsonCompileOptions { coerce_one_of: true, ..JsonCompileOptions::default() }
        .json_to_llg_no_validate(builder, schema)
        .map(|_| ())
        .map_err(|error| sentence(&format!("{error:#}")))
}

/// A name in a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
