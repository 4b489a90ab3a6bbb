//! Python's str() and repr() of template values.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::operators::Tuple;
use super::{budget, invalid};

const MAX_DEPTH: usize = 100;

/// str(value), charged.
pub fn text(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    match value.as_str() {
        Some(plain) => {
            budget::charge_bytes(plain.len())?;
            out.push_str(plain);
        }
        None if value.is_undefined() => {}
        None => repr(value, &mut out, 0)?,
    }
    Ok(out)
}

/// The name Python has for a value's type.
pub fn type_name(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "undefined",
        ValueKind::None => "None",
        ValueKind::Bool => "bool",
        ValueKind::Number if value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String => "str",
        ValueKind::Map => "dict",
        ValueKind::Seq => "list",
        ValueKind::Iterable => "iterator",
        _ => "object",
    }
}

fn repr(value: &Value, out: &mut String, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(invalid("a value is nested too deeply to be printed"));
    }
    let before = out.len();
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
        ValueKind::Number => out.push_str(&float(f64::try_from(value.clone())?)),
        ValueKind::String => quote(value.as_str().unwrap_or_default(), out),
        ValueKind::Map => return repr_map(value, out, depth),
        ValueKind::Seq | ValueKind::Iterable => return repr_list(value, out, depth),
        _ => out.push_str("<object>"),
    }
    budget::charge_bytes(out.len() - before + SEPARATOR_BYTES)
}

/// What a list's brackets and commas add to each item.
const SEPARATOR_BYTES: usize = 2;

fn repr_map(value: &Value, out: &mut String, depth: usize) -> Result<(), Error> {
    out.push('{');
    for (at, key) in value.try_iter()?.enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        repr(&key, out, depth + 1)?;
        out.push_str(": ");
        repr(&value.get_item(&key)?, out, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

fn repr_list(value: &Value, out: &mut String, depth: usize) -> Result<(), Error> {
    let tuple = value.downcast_object_ref::<Tuple>();
    out.push(if tuple.is_some() { '(' } else { '[' });
    for (at, item) in value.try_iter()?.enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        repr(&item, out, depth + 1)?;
    }
    out.push_str(match tuple {
        Some(tuple) if tuple.0.len() == 1 => ",)",
        Some(_) => ")",
        None => "]",
    });
    Ok(())
}

/// repr of a float: the shortest digits that read back, an exponent below 1e-4 and from 1e16 on.
pub fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{number}");
    if plain.contains('.') { plain } else { plain + ".0" }
}

fn quote(text: &str, out: &mut String) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let sentinel = budget::sentinel();
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) || Some(c) == sentinel => out.push(c),
            c if (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if (c as u32) < 0x10000 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push_str(&format!("\\U{:08x}", c as u32)),
        }
    }
    out.push(mark);
}

/// Python escapes controls, separators other than the space, format characters, private use and unassigned ones; the last
/// kind is not known here.
fn is_printable(c: char) -> bool {
    !(c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c as u32, 0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x180e | 0x200b..=0x200f | 0x202a..=0x202e
            | 0x2060..=0x206f | 0xe000..=0xf8ff | 0xfeff | 0xfff0..=0xfffb | 0xfffe..=0xffff | 0xe0000..=0x10ffff))
}
