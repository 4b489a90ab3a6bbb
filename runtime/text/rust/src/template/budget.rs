//! What one rendering may use. The counters belong to the rendering thread; `start` sets them, every helper charges them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use minijinja::Error;
use minijinja::value::{Value, ValueKind};

use super::invalid;

/// Bytes of texts and lists that may be produced in all: a floor, and so much for each byte of template and variables.
const FLOOR_BYTES: u64 = 24 << 20;
const BYTES_PER_INPUT_BYTE: u64 = 32;
/// What one list entry counts for.
pub const ENTRY_BYTES: usize = 48;
/// Lists of lists (and dictionaries) that may be built in all; bounds how deep the result can be nested.
const MAX_NESTINGS: u32 = 20_000;
const MAX_SECONDS: u64 = 1;

thread_local! {
    static BYTES_LEFT: Cell<u64> = const { Cell::new(0) };
    static SPENT: Cell<u64> = const { Cell::new(0) };
    static ENTRY_SHARE: Cell<u64> = const { Cell::new(0) };
    static NESTINGS_LEFT: Cell<u32> = const { Cell::new(0) };
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    static SENTINEL: Cell<Option<char>> = const { Cell::new(None) };
}

pub fn start(input_bytes: u64, sentinel: Option<char>) {
    BYTES_LEFT.set(FLOOR_BYTES.saturating_add(input_bytes.saturating_mul(BYTES_PER_INPUT_BYTE)));
    SPENT.set(0);
    ENTRY_SHARE.set(0);
    NESTINGS_LEFT.set(MAX_NESTINGS);
    // Large conversations get time in proportion; a template that only burns time does not.
    let extra = Duration::from_millis(input_bytes >> 14);
    DEADLINE.set(Some(Instant::now() + Duration::from_secs(MAX_SECONDS) + extra));
    SENTINEL.set(sentinel);
}

pub fn stop() {
    DEADLINE.set(None);
    SENTINEL.set(None);
}

pub fn sentinel() -> Option<char> {
    SENTINEL.get()
}

pub fn charge_bytes(count: usize) -> Result<(), Error> {
    let left = BYTES_LEFT.get();
    if count as u64 > left {
        return Err(exhausted(0, count as u64));
    }
    BYTES_LEFT.set(left - count as u64);
    SPENT.set(SPENT.get() + count as u64);
    if DEADLINE.get().is_some_and(|deadline| Instant::now() > deadline) {
        return Err(invalid("it runs longer than a chat template may"));
    }
    Ok(())
}

/// Charges `count` entries of a list that is about to be built, or turns of a loop.
pub fn charge_entries(count: usize) -> Result<(), Error> {
    let bytes = count.saturating_mul(ENTRY_BYTES);
    if bytes as u64 > BYTES_LEFT.get() {
        return Err(exhausted(bytes as u64, 0));
    }
    ENTRY_SHARE.set(ENTRY_SHARE.get() + bytes as u64);
    charge_bytes(bytes)
}

/// Says what the larger part of everything was used for, the last charge included.
fn exhausted(entries: u64, text: u64) -> Error {
    let entries = ENTRY_SHARE.get().saturating_add(entries);
    let text = SPENT.get().saturating_sub(ENTRY_SHARE.get()).saturating_add(text);
    invalid(if entries > text {
        "it takes more steps, or builds longer lists, than a chat template may"
    } else {
        "it produces more text than a chat template may"
    })
}

/// Charges a value that has just been made.
pub fn charge_value(value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Bytes => {
            charge_bytes(value.len().unwrap_or(0).max(value.as_str().map_or(0, str::len)))
        }
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let count = value.len().unwrap_or(0);
            charge_entries(count + 1)?;
            if value.kind() != ValueKind::Iterable && holds_containers(value)? {
                let left = NESTINGS_LEFT.get();
                if left == 0 {
                    return Err(invalid("it builds more nested lists than a chat template may"));
                }
                NESTINGS_LEFT.set(left - 1);
            }
            Ok(())
        }
        _ => charge_bytes(0),
    }
}

fn holds_containers(value: &Value) -> Result<bool, Error> {
    let map = value.kind() == ValueKind::Map;
    let mut found = false;
    for entry in value.try_iter()? {
        let entry = if map { value.get_item(&entry)? } else { entry };
        if is_namespace(&entry) {
            return Err(invalid("a namespace cannot be put into a list or dictionary"));
        }
        found = found || matches!(entry.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable);
    }
    Ok(found)
}

/// Namespaces are the only values that change; keeping them out of each other keeps values free of cycles.
pub fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}
