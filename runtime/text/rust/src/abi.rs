//! The C functions. `text_abi.h` says what each means; here is only the crossing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use serde_json::Value as Json;

use crate::Result;
use crate::constraint::{Constraint, Notation, Vocabulary};
use crate::stream::StreamDecoder;
use crate::template::{Clock, Job, render};
use crate::tokenizer::TextTokenizer;
use crate::{chat, compact};

/// Bytes owned by this library until `cortiq_text_release`.
#[repr(C)]
pub struct Bytes {
    data: *mut u8,
    length: usize,
}

impl Bytes {
    fn of(bytes: Vec<u8>) -> Self {
        let boxed = bytes.into_boxed_slice();
        let length = boxed.len();
        Self { data: Box::into_raw(boxed).cast(), length }
    }
}

/// A borrowed run of bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    data: *const u8,
    length: usize,
}

impl View {
    /// # Safety
    /// The caller's bytes live as long as the call.
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.length == 0 { &[] } else { unsafe { slice::from_raw_parts(self.data, self.length) } }
    }

    /// # Safety
    /// As `bytes`.
    unsafe fn lossy<'a>(self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(unsafe { self.bytes() })
    }
}

/// Runs `work`; a failure or panic goes to `error` and 0 comes back.
///
/// # Safety
/// `error` points to a `Bytes` that may be overwritten.
unsafe fn guard(error: *mut Bytes, work: impl FnOnce() -> Result<()>) -> i32 {
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let reason = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("the text library gave up: {}", reason.unwrap_or("no reason given")))
    });
    match outcome {
        Ok(()) => 1,
        Err(message) => {
            unsafe { error.write(Bytes::of(message.into_bytes())) };
            0
        }
    }
}

fn ids_to_bytes(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_ne_bytes()).collect()
}

/// # Safety
/// `ids` holds `count` numbers.
unsafe fn ids_of<'a>(ids: *const u32, count: usize) -> &'a [u32] {
    if count == 0 { &[] } else { unsafe { slice::from_raw_parts(ids, count) } }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_release(bytes: Bytes) {
    if !bytes.data.is_null() {
        drop(unsafe { Box::from_raw(slice::from_raw_parts_mut(bytes.data, bytes.length)) });
    }
}

/// A panic inside the library is reported as an error; it need not be printed as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_quiet() {
    std::panic::set_hook(Box::new(|_| {}));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_tokenizer_new(
    source: View,
    out: *mut *mut TextTokenizer,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            let tokenizer = TextTokenizer::from_bytes(source.bytes())?;
            out.write(Box::into_raw(Box::new(tokenizer)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_tokenizer_free(tokenizer: *mut TextTokenizer) {
    if !tokenizer.is_null() {
        drop(unsafe { Box::from_raw(tokenizer) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_compact(json: View, out: *mut Bytes, error: *mut Bytes) -> i32 {
    unsafe {
        guard(error, || {
            let source = json.bytes();
            let packed = if compact::is_compact(source) { None } else { compact::pack(source)? };
            out.write(Bytes::of(packed.unwrap_or_else(|| source.to_vec())));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_encode(
    tokenizer: &TextTokenizer,
    text: View,
    add_special: bool,
    parse_special: bool,
    out: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            let ids = tokenizer.encode(&text.lossy(), add_special, parse_special)?;
            out.write(Bytes::of(ids_to_bytes(&ids)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_decode(
    tokenizer: &TextTokenizer,
    ids: *const u32,
    count: usize,
    skip_special: bool,
    out: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            let text = tokenizer.decode(ids_of(ids, count), skip_special)?;
            out.write(Bytes::of(text.into_bytes()));
            Ok(())
        })
    }
}

/// 1 and the text, or 0 where the id has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_token_text(tokenizer: &TextTokenizer, id: u32, out: *mut Bytes) -> i32 {
    match tokenizer.token_text(id) {
        Some(text) => {
            unsafe { out.write(Bytes::of(text.into_bytes())) };
            1
        }
        None => 0,
    }
}

/// The id of a vocabulary entry, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_token_id(tokenizer: &TextTokenizer, text: View) -> i64 {
    std::str::from_utf8(unsafe { text.bytes() })
        .ok()
        .and_then(|text| tokenizer.inner.token_to_id(text))
        .map_or(-1, i64::from)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_vocab_size(tokenizer: &TextTokenizer) -> u32 {
    tokenizer.vocab_size()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_special_ids(tokenizer: &TextTokenizer, out: *mut Bytes) {
    unsafe { out.write(Bytes::of(ids_to_bytes(&tokenizer.special_ids()))) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_stream_new(skip_special: bool) -> *mut StreamDecoder {
    Box::into_raw(Box::new(StreamDecoder::new(skip_special)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_stream_free(stream: *mut StreamDecoder) {
    if !stream.is_null() {
        drop(unsafe { Box::from_raw(stream) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_stream_push(
    stream: &mut StreamDecoder,
    tokenizer: &TextTokenizer,
    id: u32,
    out: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            out.write(Bytes::of(stream.push(tokenizer, id)?.into_bytes()));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_stream_flush(
    stream: &mut StreamDecoder,
    tokenizer: &TextTokenizer,
    out: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            out.write(Bytes::of(stream.flush(tokenizer)?.into_bytes()));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_render(
    template: View,
    variables: View,
    now: View,
    out: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            let variables = parse_variables(variables.bytes())?;
            let source = template_source(template.bytes())?;
            let clock = Clock::parse(&now.lossy())?;
            let text = render(&Job { source, variables: &variables, clock, sentinel: None })?;
            out.write(Bytes::of(text.into_bytes()));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_encode_chat(
    tokenizer: &TextTokenizer,
    template: View,
    variables: View,
    now: View,
    text: *mut Bytes,
    ids: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            let variables = parse_variables(variables.bytes())?;
            let source = template_source(template.bytes())?;
            let clock = Clock::parse(&now.lossy())?;
            let encoded = chat::encode(tokenizer, source, &variables, clock)?;
            text.write(Bytes::of(encoded.text.into_bytes()));
            ids.write(Bytes::of(ids_to_bytes(&encoded.ids)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_vocabulary_new(
    tokenizer: &TextTokenizer,
    count: u32,
    ends: *const u32,
    end_count: usize,
    out: *mut *mut Vocabulary,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            let vocabulary = Vocabulary::new(tokenizer, count, ids_of(ends, end_count))?;
            out.write(Box::into_raw(Box::new(vocabulary)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_vocabulary_free(vocabulary: *mut Vocabulary) {
    if !vocabulary.is_null() {
        drop(unsafe { Box::from_raw(vocabulary) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_constraint_new(
    vocabulary: &Vocabulary,
    notation: i32,
    source: View,
    out: *mut *mut Constraint,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            let constraint = vocabulary.constrain(Notation::of(notation)?, &source.lossy())?;
            out.write(Box::into_raw(Box::new(constraint)));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_constraint_copy(
    constraint: &Constraint,
    out: *mut *mut Constraint,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            out.write(Box::into_raw(Box::new(constraint.copy())));
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_constraint_free(constraint: *mut Constraint) {
    if !constraint.is_null() {
        drop(unsafe { Box::from_raw(constraint) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_constraint_mask(
    constraint: &mut Constraint,
    words: *mut u32,
    count: usize,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            constraint.mask(slice::from_raw_parts_mut(words, count))?;
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cortiq_text_constraint_accept(
    constraint: &mut Constraint,
    id: u32,
    complete: *mut bool,
    error: *mut Bytes,
) -> i32 {
    unsafe {
        guard(error, || {
            complete.write(constraint.accept(id)?);
            Ok(())
        })
    }
}

fn template_source(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes)
        .map_err(|error| format!("the chat template is not UTF-8 from byte {} on", error.valid_up_to()))
}

fn parse_variables(bytes: &[u8]) -> Result<Json> {
    let variables: Json = serde_json::from_slice(bytes)
        .map_err(|error| format!("the variables of the chat template are not JSON: {error}"))?;
    if variables.is_object() {
        Ok(variables)
    } else {
        Err("the variables of the chat template are no JSON object".into())
    }
}
