//! Python's operators on template values, registered as the functions that `rewrite` calls.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, FormatStyle, Value, format_filter};

use super::{budget, invalid, python};

/// A tuple: a list that prints with parentheses.
#[derive(Debug)]
pub struct Tuple(pub Vec<Value>);

impl Object for Tuple {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }
}

pub fn register(env: &mut Environment) {
    env.add_function("__py_add", add);
    env.add_function("__py_mul", multiply);
    env.add_function("__py_mod", modulo);
    env.add_function("__py_floordiv", floor_divide);
    env.add_function("__py_concat", concat);
    env.add_function("__py_tuple", |items: Rest<Value>| Value::from_object(Tuple(items.0)));
    env.add_function("__py_charge", |value: Value| budget::charge_value(&value).map(|()| value));
    env.add_function("__py_settable", |value: Value| {
        if budget::is_namespace(&value) {
            return Err(invalid("a namespace cannot be stored in a namespace"));
        }
        Ok(value)
    });
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn integer(value: &Value) -> Option<i128> {
    match value.kind() {
        ValueKind::Bool => Some(value.is_true() as i128),
        ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok(),
        _ => None,
    }
}

fn float(value: &Value) -> Option<f64> {
    match value.kind() {
        ValueKind::Bool => Some(value.is_true() as u8 as f64),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        _ => None,
    }
}

fn refuse(operator: &str, left: &Value, right: &Value) -> Error {
    if left.is_undefined() || right.is_undefined() {
        return Error::new(ErrorKind::UndefinedError, format!("an undefined value is used with {operator}"));
    }
    invalid(format!("{operator} does not work between {} and {}", python::type_name(left), python::type_name(right)))
}

fn add(left: Value, right: Value) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        budget::charge_bytes(a.len() + b.len())?;
        return Ok(Value::from([a, b].concat()));
    }
    if is_list(&left) && is_list(&right) {
        budget::charge_entries(left.len().unwrap_or(0) + right.len().unwrap_or(0))?;
        let items: Vec<Value> = left.try_iter()?.chain(right.try_iter()?).collect();
        let tuple = left.downcast_object_ref::<Tuple>().is_some();
        return Ok(if tuple { Value::from_object(Tuple(items)) } else { Value::from(items) });
    }
    if let (Some(a), Some(b)) = (integer(&left), integer(&right)) {
        return a.checked_add(b).map(whole).ok_or_else(|| invalid("the sum is too large"));
    }
    match (float(&left), float(&right)) {
        (Some(a), Some(b)) => Ok(Value::from(a + b)),
        _ => Err(refuse("+", &left, &right)),
    }
}

fn multiply(left: Value, right: Value) -> Result<Value, Error> {
    for (sequence, times) in [(&left, &right), (&right, &left)] {
        let Some(times) = integer(times) else { continue };
        let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
        if let Some(text) = sequence.as_str() {
            budget::charge_bytes(text.len().saturating_mul(times))?;
            return Ok(Value::from(if text.is_empty() { String::new() } else { text.repeat(times) }));
        }
        if is_list(sequence) {
            let items: Vec<Value> = sequence.try_iter()?.collect();
            budget::charge_entries(items.len().saturating_mul(times))?;
            let mut all = Vec::new();
            if !items.is_empty() {
                for _ in 0..times {
                    all.extend_from_slice(&items);
                }
            }
            return Ok(Value::from(all));
        }
    }
    if let (Some(a), Some(b)) = (integer(&left), integer(&right)) {
        return a.checked_mul(b).map(whole).ok_or_else(|| invalid("the product is too large"));
    }
    match (float(&left), float(&right)) {
        (Some(a), Some(b)) => Ok(Value::from(a * b)),
        _ => Err(refuse("*", &left, &right)),
    }
}

fn modulo(left: Value, right: Value) -> Result<Value, Error> {
    if let Some(format) = left.as_str() {
        return printf(format, &right).map(Value::from);
    }
    if let (Some(a), Some(b)) = (integer(&left), integer(&right)) {
        // The remainder has the divisor's sign.
        let remainder = a.checked_rem(b).ok_or_else(|| invalid("division by zero"))?;
        return Ok(whole(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder }));
    }
    match (float(&left), float(&right)) {
        (Some(_), Some(0.0)) => Err(invalid("division by zero")),
        (Some(a), Some(b)) => Ok(Value::from(a - b * (a / b).floor())),
        _ => Err(refuse("%", &left, &right)),
    }
}

fn floor_divide(left: Value, right: Value) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (integer(&left), integer(&right)) {
        let quotient = a.checked_div(b).ok_or_else(|| invalid("division by zero"))?;
        return Ok(whole(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }));
    }
    match (float(&left), float(&right)) {
        (Some(_), Some(0.0)) => Err(invalid("division by zero")),
        (Some(a), Some(b)) => Ok(Value::from((a / b).floor())),
        _ => Err(refuse("//", &left, &right)),
    }
}

fn concat(left: Value, right: Value) -> Result<Value, Error> {
    let mut text = python::text(&left)?;
    text.push_str(&python::text(&right)?);
    Ok(Value::from(text))
}

/// `format % arguments`; widths that only serve to fill memory are refused.
pub fn printf(format: &str, arguments: &Value) -> Result<String, Error> {
    let mut digits = 0;
    for byte in format.bytes() {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > 4 {
            return Err(invalid("a width in a format is too large"));
        }
    }
    if format.contains('*') {
        return Err(invalid("a width taken from the arguments is not supported"));
    }
    budget::charge_bytes(format.len().saturating_mul(64))?;
    let arguments = match arguments.downcast_object_ref::<Tuple>() {
        Some(tuple) => tuple.0.clone(),
        None => vec![arguments.clone()],
    };
    let mut shown = Vec::with_capacity(arguments.len());
    for argument in arguments {
        // %s is Python's str, so what is no number is turned into its text first.
        shown.push(if matches!(argument.kind(), ValueKind::Number | ValueKind::Map) {
            argument
        } else {
            Value::from(python::text(&argument)?)
        });
    }
    format_filter(FormatStyle::Printf, format, &shown)
}

/// An integer in the engine's smallest form.
pub fn whole(number: i128) -> Value {
    match i64::try_from(number) {
        Ok(small) => Value::from(small),
        Err(_) => Value::from(number),
    }
}
