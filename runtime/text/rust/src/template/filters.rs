//! Filters whose meaning in jinja2 differs from the engine's, or whose result needs a bound before it is made.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, Value};

use super::operators::{self, Tuple};
use super::{budget, invalid, json, methods, python};

pub fn register(env: &mut Environment) {
    // Without a use in chat templates and able to make much out of little.
    for name in ["slice", "pprint", "chain", "zip", "urlencode"] {
        env.remove_filter(name);
    }
    env.add_filter("batch", batch);
    env.add_filter("format", format);
    env.add_filter("float", |value: Value, default: Option<f64>| {
        Value::from(float(&value).unwrap_or(default.unwrap_or(0.0)))
    });
    env.add_filter("indent", indent);
    env.add_filter("int", int);
    env.add_filter("join", join);
    env.add_filter("list", list);
    env.add_filter("replace", replace);
    env.add_filter("round", round);
    env.add_filter("split", methods::split);
    env.add_filter("string", |value: Value| python::text(&value));
    env.add_filter("tojson", json::filter);
    env.add_filter("wordcount", |value: Value| -> Result<usize, Error> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        Ok(python::text(&value)?.split(|c| !is_word(c)).filter(|word| !word.is_empty()).count())
    });
}

fn list(value: Value) -> Result<Value, Error> {
    let count = value.as_str().map_or_else(|| value.len().unwrap_or(0), str::len);
    budget::charge_entries(count)?;
    let mut items = Vec::new();
    for item in value.try_iter()? {
        if items.len() >= count {
            budget::charge_entries(1)?;
        }
        items.push(item);
    }
    Ok(Value::from(items))
}

fn batch(value: Value, size: usize, fill: Option<Value>) -> Result<Value, Error> {
    if size == 0 {
        return Err(invalid("batch needs a size above 0"));
    }
    let items: Vec<Value> = value.try_iter()?.collect();
    budget::charge_entries(items.len())?;
    let mut batches = Vec::new();
    for chunk in items.chunks(size) {
        let mut chunk = chunk.to_vec();
        if let Some(fill) = &fill
            && !fill.is_none()
            && chunk.len() < size
        {
            budget::charge_entries(size - chunk.len())?;
            chunk.resize(size, fill.clone());
        }
        batches.push(Value::from(chunk));
    }
    Ok(Value::from(batches))
}

fn join(value: Value, separator: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let separator = match separator {
        Some(separator) => Some(separator),
        None => options.get::<Option<Value>>("d")?,
    };
    let attribute = options.get::<Option<Value>>("attribute")?;
    options.assert_all_used()?;
    let separator =
        separator.filter(|separator| !separator.is_none()).map_or(Ok(String::new()), |s| python::text(&s))?;
    let mut out = String::new();
    for (at, item) in value.try_iter()?.enumerate() {
        let item = match &attribute {
            Some(attribute) => item.get_item(attribute)?,
            None => item,
        };
        let item = python::text(&item)?;
        if at > 0 {
            budget::charge_bytes(separator.len())?;
            out.push_str(&separator);
        }
        out.push_str(&item);
    }
    Ok(Value::from(out))
}

fn replace(value: Value, old: Value, new: Value, count: Option<i64>) -> Result<Value, Error> {
    let (text, old, new) = (python::text(&value)?, python::text(&old)?, python::text(&new)?);
    methods::replace(&text, &old, &new, count).map(Value::from)
}

/// indent(width=4, first=false, blank=false); the width may be a text.
fn indent(
    value: Value,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<Value, Error> {
    const MAX_WIDTH: usize = 256;
    let width = width.or(options.get::<Option<Value>>("width")?).unwrap_or(Value::from(4));
    let first = first.or(options.get::<Option<bool>>("first")?).unwrap_or(false);
    let blank = blank.or(options.get::<Option<bool>>("blank")?).unwrap_or(false);
    options.assert_all_used()?;
    let margin = match (width.as_str(), width.as_usize()) {
        (Some(text), _) if text.len() <= MAX_WIDTH => text.to_owned(),
        (None, Some(count)) if count <= MAX_WIDTH => " ".repeat(count),
        _ => return Err(invalid("the width of indent is too large")),
    };
    let text = python::text(&value)?;
    budget::charge_bytes(text.matches('\n').count().saturating_add(1).saturating_mul(margin.len()))?;
    let mut out = String::new();
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let wanted = if at == 0 { first } else { blank || !line.is_empty() };
        if wanted {
            out.push_str(&margin);
        }
        out.push_str(line);
    }
    Ok(Value::from(out))
}

fn format(value: Value, args: minijinja::value::Rest<Value>) -> Result<Value, Error> {
    let format = value.as_str().ok_or_else(|| invalid("format needs a text"))?;
    operators::printf(format, &Value::from_object(Tuple(args.0))).map(Value::from)
}

fn float(value: &Value) -> Option<f64> {
    match value.kind() {
        ValueKind::Bool => Some(f64::from(value.is_true() as u8)),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        ValueKind::String => value.as_str()?.trim().replace('_', "").parse().ok(),
        _ => None,
    }
}

/// int(default=0, base=10): texts of floats are cut; what is no number gives the default.
fn int(value: Value, default: Option<Value>, base: Option<u32>) -> Value {
    let whole = match value.kind() {
        ValueKind::Number if value.is_integer() => return value,
        ValueKind::String => {
            value.as_str().and_then(|text| i128::from_str_radix(text.trim(), base.unwrap_or(10).clamp(2, 36)).ok())
        }
        _ => None,
    };
    let whole = whole.or_else(|| float(&value).filter(|number| number.abs() < 1e30).map(|number| number as i128));
    whole.map_or_else(|| default.unwrap_or(Value::from(0)), operators::whole)
}

/// round(precision=0, method="common"): halves go to the even neighbour, as in Python.
fn round(value: Value, precision: Option<i64>, method: Option<String>) -> Result<Value, Error> {
    if value.kind() != ValueKind::Number {
        return Err(invalid("round needs a number"));
    }
    let number = f64::try_from(value)?;
    let precision = precision.unwrap_or(0);
    if !(-300..=300).contains(&precision) {
        return Err(invalid("the precision of round is too large"));
    }
    let scale = 10f64.powi(precision as i32);
    let rounded = match method.as_deref() {
        None | Some("common") if precision >= 0 => {
            // The decimal form is exact, so it rounds the number itself and not a scaled neighbour.
            std::format!("{number:.*}", precision as usize).parse().unwrap_or(number)
        }
        None | Some("common") => (number * scale).round_ties_even() / scale,
        Some("ceil") => (number * scale).ceil() / scale,
        Some("floor") => (number * scale).floor() / scale,
        Some(other) => return Err(invalid(format!("round has no method {other}"))),
    };
    Ok(Value::from(rounded))
}
