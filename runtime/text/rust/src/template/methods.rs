//! Methods of Python's str, dict and list. Those listed here are called as functions, so that a dictionary's own keys do not
//! hide them and so that what they produce can be bounded; the rest falls to minijinja's own compatibility methods.

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, State, Value};
use minijinja_contrib::pycompat;

use super::operators::Tuple;
use super::{budget, invalid, python};

type Method = fn(&Value, &[Value]) -> Result<Option<Value>, Error>;

struct Row {
    name: &'static str,
    function: &'static str,
    method: Method,
}

macro_rules! methods {
    ($($name:ident => $method:expr),* $(,)?) => {
        &[$(Row { name: stringify!($name), function: concat!("__py_m_", stringify!($name)), method: $method }),*]
    };
}

const METHODS: &[Row] = methods! {
    get => dict_get,
    items => dict_items,
    join => str_join,
    keys => dict_keys,
    partition => str_partition,
    removeprefix => |value, args| affix(value, args, |text, affix| text.strip_prefix(affix)),
    removesuffix => |value, args| affix(value, args, |text, affix| text.strip_suffix(affix)),
    replace => str_replace,
    rpartition => str_rpartition,
    rsplit => str_rsplit,
    split => str_split,
    splitlines => str_splitlines,
    swapcase => str_swapcase,
    values => dict_values,
};

/// The function that stands for a method's name.
pub fn function_of(name: &str) -> Option<&'static str> {
    METHODS.iter().find(|row| row.name == name).map(|row| row.function)
}

pub fn register(env: &mut Environment) {
    for row in METHODS {
        env.add_function(row.function, move |state: &State, args: Rest<Value>| -> Result<Value, Error> {
            let (value, args) = args.split_first().ok_or_else(|| invalid("a method has no object"))?;
            match (row.method)(value, args)? {
                Some(result) => Ok(result),
                None => value.call_method(state, row.name, args),
            }
        });
    }
}

/// Methods that are in no row.
pub fn unknown(state: &State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if method == "format"
        && let Some(format) = value.as_str()
    {
        if format.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 4) {
            return Err(invalid("a width in a format is too large"));
        }
        budget::charge_bytes(format.len().saturating_mul(64))?;
    }
    if method == "count" && args.first().is_some_and(|what| what.as_str() == Some("")) {
        return Err(invalid("count of an empty text is not supported"));
    }
    pycompat::unknown_method_callback(state, value, method, args)
}

fn text_argument<'a>(args: &'a [Value], at: usize) -> Result<&'a str, Error> {
    args.get(at).and_then(Value::as_str).ok_or_else(|| invalid("a text is missing as argument of a method"))
}

fn is_dict(value: &Value) -> bool {
    value.kind() == ValueKind::Map && !budget::is_namespace(value)
}

fn dict_get(value: &Value, args: &[Value]) -> Result<Option<Value>, Error> {
    if !is_dict(value) {
        return Ok(None);
    }
    let key = args.first().ok_or_else(|| invalid("get needs a key"))?;
    let found = value.get_item(key)?;
    Ok(Some(if found.is_undefined() { args.get(1).cloned().unwrap_or(Value::from(())) } else { found }))
}

fn dict_keys(value: &Value, _: &[Value]) -> Result<Option<Value>, Error> {
    if !is_dict(value) {
        return Ok(None);
    }
    Ok(Some(value.try_iter()?.collect::<Vec<_>>().into()))
}

fn dict_values(value: &Value, _: &[Value]) -> Result<Option<Value>, Error> {
    if !is_dict(value) {
        return Ok(None);
    }
    let values: Result<Vec<Value>, Error> = value.try_iter()?.map(|key| value.get_item(&key)).collect();
    Ok(Some(values?.into()))
}

fn dict_items(value: &Value, _: &[Value]) -> Result<Option<Value>, Error> {
    if !is_dict(value) {
        return Ok(None);
    }
    let mut items = Vec::new();
    for key in value.try_iter()? {
        let entry = value.get_item(&key)?;
        items.push(Value::from_object(Tuple(vec![key, entry])));
    }
    Ok(Some(items.into()))
}

fn str_join(value: &Value, args: &[Value]) -> Result<Option<Value>, Error> {
    let Some(separator) = value.as_str() else { return Ok(None) };
    let items = args.first().ok_or_else(|| invalid("join needs a list"))?;
    let mut out = String::new();
    for (at, item) in items.try_iter()?.enumerate() {
        let item = item.as_str().map(str::to_owned).ok_or_else(|| {
            invalid(format!("join needs texts, but item {at} is of type {}", python::type_name(&item)))
        })?;
        budget::charge_bytes(item.len() + separator.len())?;
        if at > 0 {
            out.push_str(separator);
        }
        out.push_str(&item);
    }
    Ok(Some(Value::from(out)))
}

fn affix(
    value: &Value,
    args: &[Value],
    strip: for<'t> fn(&'t str, &str) -> Option<&'t str>,
) -> Result<Option<Value>, Error> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let affix = text_argument(args, 0)?;
    Ok(Some(Value::from(strip(text, affix).unwrap_or(text))))
}

fn str_partition(value: &Value, args: &[Value]) -> Result<Option<Value>, Error> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let separator = text_argument(args, 0)?;
    let parts = match text.split_once(separator) {
        Some((before, after)) => [before, separator, after],
        None => [text, "", ""],
    };
    Ok(Some(Value::from_object(Tuple(parts.into_iter().map(Value::from).collect()))))
}

fn str_rpartition(value: &Value, args: &[Value]) -> Result<Option<Value>, Error> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let separator = text_argument(args, 0)?;
    let parts = match text.rsplit_once(separator) {
        Some((before, after)) => [before, separator, after],
        None => ["", "", text],
    };
    Ok(Some(Value::from_object(Tuple(parts.into_iter().map(Value::from).collect()))))
}

/// str.replace, charged before it happens: one short text can stand for a long one in many places.
pub fn replace(text: &str, old: &str, new: &str, count: Option<i64>) -> Result<String, Error> {
    let limit = count.filter(|count| *count >= 0).map_or(usize::MAX, |count| count as usize);
    let places = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    budget::charge_bytes(places.min(limit).saturating_mul(new.len()).saturating_add(text.len()))?;
    Ok(text.replacen(old, new, limit))
}

fn str_replace(value: &Value, args: &[Value]) -> Result<Option<Value>, Error> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let count = args.get(2).and_then(Value::as_i64);
    Ok(Some(Value::from(replace(text, text_argument(args, 0)?, text_argument(args, 1)?, count)?)))
}

/// Separator and limit of split and rsplit; without separator white space splits and empty parts vanish.
fn split_arguments<'a>(args: &'a [Value]) -> Result<(Option<&'a str>, usize), Error> {
    let separator = match args.first() {
        None => None,
        Some(value) if value.is_none() => None,
        Some(value) => Some(
            value
                .as_str()
                .filter(|text| !text.is_empty())
                .ok_or_else(|| invalid("split needs a text that is not empty"))?,
        ),
    };
    let limit = args.get(1).and_then(Value::as_i64).filter(|limit| *limit >= 0);
    Ok((separator, limit.map_or(usize::MAX, |limit| limit as usize)))
}

fn list(parts: impl Iterator<Item = impl AsRef<str>>) -> Result<Value, Error> {
    let mut items = Vec::new();
    for part in parts {
        budget::charge_entries(1)?;
        items.push(Value::from(part.as_ref()));
    }
    Ok(Value::from(items))
}

fn str_split(value: &Value, args: &[Value]) -> Result<Option<Value>, Error> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let (separator, limit) = split_arguments(args)?;
    let pieces = limit.saturating_add(1);
    Ok(Some(match separator {
        Some(separator) => list(text.splitn(pieces, separator))?,
        None => {
            let mut rest = text.trim_start();
            let mut cuts = 0;
            list(std::iter::from_fn(|| {
                if rest.is_empty() {
                    return None;
                }
                let end = if cuts == limit {
                    rest.trim_end().len()
                } else {
                    rest.find(char::is_whitespace).unwrap_or(rest.len())
                };
                let (part, after) = rest.split_at(end);
                cuts += 1;
                rest = after.trim_start();
                Some(part)
            }))?
        }
    }))
}

/// The filter of the same name.
pub fn split(value: Value, separator: Option<Value>, limit: Option<Value>) -> Result<Value, Error> {
    let none = || Value::from(());
    let args = [separator.unwrap_or_else(none), limit.unwrap_or_else(none)];
    str_split(&value, &args)?.ok_or_else(|| invalid("split needs a text"))
}

fn str_rsplit(value: &Value, args: &[Value]) -> Result<Option<Value>, Error> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let (separator, limit) = split_arguments(args)?;
    let mut parts: Vec<&str> = match separator {
        Some(separator) => {
            budget::charge_entries(text.matches(separator).count())?;
            text.rsplitn(limit.saturating_add(1), separator).collect()
        }
        None if limit == usize::MAX => return str_split(value, &[]),
        None => return Err(invalid("rsplit with a limit needs a separator")),
    };
    parts.reverse();
    Ok(Some(list(parts.into_iter())?))
}

fn str_splitlines(value: &Value, args: &[Value]) -> Result<Option<Value>, Error> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let keep = args.first().is_some_and(Value::is_true);
    let mut rest = text;
    Ok(Some(list(std::iter::from_fn(|| {
        if rest.is_empty() {
            return None;
        }
        let is_break = |c: char| {
            matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
        };
        let end = rest.find(is_break).unwrap_or(rest.len());
        let mark = match rest[end..].chars().next() {
            Some('\r') if rest[end..].starts_with("\r\n") => 2,
            Some(c) => c.len_utf8(),
            None => 0,
        };
        let line = &rest[..if keep { end + mark } else { end }];
        rest = &rest[end + mark..];
        Some(line)
    }))?))
}

fn str_swapcase(value: &Value, _: &[Value]) -> Result<Option<Value>, Error> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    Ok(Some(Value::from(out)))
}
