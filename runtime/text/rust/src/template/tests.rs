//! Tests (`x is …`) that Python decides differently from the engine: bool is a number, a text is a sequence.

use minijinja::value::{ObjectRepr, ValueKind};
use minijinja::{Environment, Value};

pub fn register(env: &mut Environment) {
    env.add_test("callable", |value: &Value| {
        value.kind() == ValueKind::Plain && value.as_object().is_some_and(|object| object.repr() == ObjectRepr::Plain)
    });
    env.add_test("float", |value: &Value| value.kind() == ValueKind::Number && !value.is_integer());
    env.add_test("integer", |value: &Value| value.kind() == ValueKind::Number && value.is_integer());
    env.add_test("iterable", |value: &Value| {
        matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable)
    });
    env.add_test("number", |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool));
    env.add_test("sequence", |value: &Value| match value.kind() {
        ValueKind::String | ValueKind::Seq | ValueKind::Map => true,
        ValueKind::Iterable => value.len().is_some(),
        _ => false,
    });
}
