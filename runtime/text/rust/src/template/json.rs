//! `tojson` with the meaning of Python's json.dumps, as transformers sets it up (ensure_ascii off).

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, Value};
use serde_json::Value as Json;

use super::{budget, invalid, python};

const MAX_DEPTH: usize = 100;
const MAX_INDENT: usize = 64;

struct Style {
    ascii: bool,
    sort: bool,
    indent: Option<String>,
    item: String,
    key: String,
}

pub fn filter(value: Value, positional_indent: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let indent = match options.get::<Option<Value>>("indent")?.or(positional_indent) {
        Some(level) if !level.is_none() && !level.is_undefined() => Some(match (level.as_str(), level.as_i64()) {
            (Some(text), _) if text.len() <= MAX_INDENT => text.to_owned(),
            (None, Some(count)) if count <= MAX_INDENT as i64 => " ".repeat(count.max(0) as usize),
            _ => return Err(invalid("the indent of tojson is neither a small number nor a short text")),
        }),
        _ => None,
    };
    let mut style = Style {
        ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        item: if indent.is_some() { ",".into() } else { ", ".into() },
        key: ": ".into(),
        indent,
    };
    if let Some(pair) = options.get::<Option<Value>>("separators")?
        && !pair.is_none()
    {
        let part = |at| pair.get_item_by_index(at).ok().and_then(|part| part.as_str().map(str::to_owned));
        match (part(0), part(1)) {
            (Some(item), Some(key)) if item.len() + key.len() <= MAX_INDENT => {
                style.item = item;
                style.key = key;
            }
            _ => return Err(invalid("the separators of tojson are not two short texts")),
        }
    }
    options.assert_all_used()?;
    let mut out = String::new();
    write(&value, &style, 0, &mut out)?;
    Ok(Value::from(out))
}

fn write(value: &Value, style: &Style, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(invalid("a value is nested too deeply for tojson"));
    }
    budget::charge_bytes(1)?;
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => number(value, out)?,
        ValueKind::String => quote(value.as_str().unwrap_or_default(), style.ascii, out),
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort {
                keys.sort();
            }
            out.push('{');
            for (at, key) in keys.iter().enumerate() {
                separate(at, style, depth + 1, out);
                match key.as_str() {
                    Some(text) => quote(text, style.ascii, out),
                    None => {
                        let mut text = String::new();
                        match key.kind() {
                            ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                                write(key, style, depth + 1, &mut text)?
                            }
                            _ => return Err(invalid("a key of a dictionary is no text, number, bool or None")),
                        }
                        quote(&text, style.ascii, out);
                    }
                }
                out.push_str(&style.key);
                write(&value.get_item(key)?, style, depth + 1, out)?;
            }
            close('}', keys.is_empty(), style, depth, out);
        }
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            let mut empty = true;
            for (at, item) in value.try_iter()?.enumerate() {
                empty = false;
                separate(at, style, depth + 1, out);
                write(&item, style, depth + 1, out)?;
            }
            close(']', empty, style, depth, out);
        }
        _ => return Err(invalid(format!("{} cannot be written as JSON", python::type_name(value)))),
    }
    Ok(())
}

fn separate(at: usize, style: &Style, depth: usize, out: &mut String) {
    if at > 0 {
        out.push_str(&style.item);
    }
    line(style, depth, out);
}

fn close(mark: char, empty: bool, style: &Style, depth: usize, out: &mut String) {
    if !empty {
        line(style, depth, out);
    }
    out.push(mark);
}

fn line(style: &Style, depth: usize, out: &mut String) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn number(value: &Value, out: &mut String) -> Result<(), Error> {
    if value.is_integer() {
        out.push_str(&value.to_string());
        return Ok(());
    }
    let number = f64::try_from(value.clone())?;
    out.push_str(&match number {
        n if n.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        n => python::float(n),
    });
    Ok(())
}

fn quote(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || (ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// About how many bytes a JSON value holds.
pub fn rough_size(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len() + 2,
        Json::Array(items) => items.iter().map(rough_size).sum::<usize>() + 2,
        Json::Object(map) => map.iter().map(|(key, value)| key.len() + 4 + rough_size(value)).sum::<usize>() + 2,
        _ => 8,
    }
}
