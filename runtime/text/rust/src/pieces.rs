//! The bytes that one token adds to a text, so that text can be shown while ids arrive.
//!
//! The library decodes whole lists; where its decoder works token by token the same steps are applied here to one token,
//! which keeps raw bytes as bytes until a character is complete. Other decoders fall back to decoding a window of ids.

use serde_json::Value as Json;

enum Step {
    ByteLevel,
    Replace {
        pattern: String,
        content: String,
    },
    ByteFallback,
    Metaspace {
        replacement: char,
        drop_first: bool,
    },
    WordPiece {
        prefix: String,
        cleanup: bool,
    },
    /// After Fuse: cut up to `count` times `content` from the start of the text.
    StripStart {
        content: char,
        count: usize,
    },
}

pub struct PieceDecoder {
    /// Nothing where the decoder has no token-by-token form.
    steps: Option<Vec<Step>>,
}

/// What a text's start still asks of its first tokens.
#[derive(Default)]
pub struct PieceState {
    started: bool,
    stripped: usize,
    strip_done: bool,
}

impl PieceState {
    /// Of a token that others stand before.
    pub fn inside() -> Self {
        Self { started: true, stripped: 0, strip_done: true }
    }
}

impl PieceDecoder {
    pub fn new(decoder: &Json) -> Self {
        let mut steps = Vec::new();
        let mut fused = false;
        let known = collect(decoder, &mut steps, &mut fused);
        Self { steps: known.then_some(steps) }
    }

    pub fn is_token_by_token(&self) -> bool {
        self.steps.is_some()
    }

    /// Appends the bytes of `token` (as the vocabulary spells it) to `out`.
    pub fn push(&self, token: &str, state: &mut PieceState, out: &mut Vec<u8>) {
        let first = !std::mem::replace(&mut state.started, true);
        let mut text = token.to_owned();
        let mut raw: Option<Vec<u8>> = None;
        for step in self.steps.iter().flatten() {
            if raw.is_some() {
                break; // what is bytes already is no longer touched by steps over characters
            }
            match step {
                Step::ByteLevel => raw = Some(byte_level(&text).unwrap_or_else(|| text.clone().into_bytes())),
                Step::Replace { pattern, content } => text = text.replace(pattern.as_str(), content),
                Step::ByteFallback => raw = byte_token(&text).map(|byte| vec![byte]),
                Step::Metaspace { replacement, drop_first } => {
                    let space = if first && *drop_first { "" } else { " " };
                    text = text.replace(*replacement, space);
                }
                Step::WordPiece { prefix, cleanup } => {
                    if !first {
                        text = match text.strip_prefix(prefix.as_str()) {
                            Some(rest) => rest.to_owned(),
                            None => format!(" {text}"),
                        };
                    }
                    if *cleanup {
                        text = tokenizers::decoders::wordpiece::cleanup(&text);
                    }
                }
                Step::StripStart { content, count } => {
                    while !state.strip_done {
                        if state.stripped < *count && text.starts_with(*content) {
                            text.remove(0);
                            state.stripped += 1;
                        } else if text.is_empty() && state.stripped < *count {
                            break;
                        } else {
                            state.strip_done = true;
                        }
                    }
                }
            }
        }
        match raw {
            Some(bytes) => {
                state.strip_done = true;
                out.extend_from_slice(&bytes);
            }
            None => out.extend_from_slice(text.as_bytes()),
        }
    }
}

fn collect(decoder: &Json, steps: &mut Vec<Step>, fused: &mut bool) -> bool {
    let text = |key: &str| decoder.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    let flag = |key: &str, default: bool| decoder.get(key).and_then(Json::as_bool).unwrap_or(default);
    match decoder.get("type").and_then(Json::as_str) {
        Some("Sequence") => {
            let parts = decoder.get("decoders").and_then(Json::as_array);
            parts.is_some_and(|parts| parts.iter().all(|part| collect(part, steps, fused)))
        }
        Some("ByteLevel") => {
            steps.push(Step::ByteLevel);
            true
        }
        Some("Replace") if !*fused => match decoder.pointer("/pattern/String").and_then(Json::as_str) {
            Some(pattern) => {
                steps.push(Step::Replace { pattern: pattern.to_owned(), content: text("content") });
                true
            }
            None => false,
        },
        Some("ByteFallback") if !*fused => {
            steps.push(Step::ByteFallback);
            true
        }
        Some("Fuse") => {
            *fused = true;
            true
        }
        Some("Metaspace") if !*fused => {
            let scheme = decoder.get("prepend_scheme").and_then(Json::as_str);
            let drop_first = scheme.map_or_else(|| flag("add_prefix_space", true), |scheme| scheme != "never");
            steps
                .push(Step::Metaspace { replacement: text("replacement").chars().next().unwrap_or('▁'), drop_first });
            true
        }
        Some("WordPiece") if !*fused => {
            steps.push(Step::WordPiece { prefix: text("prefix"), cleanup: flag("cleanup", true) });
            true
        }
        Some("Strip") if *fused && decoder.get("stop").and_then(Json::as_u64) == Some(0) => {
            let count = decoder.get("start").and_then(Json::as_u64).unwrap_or(0) as usize;
            match text("content").chars().next() {
                Some(content) => {
                    steps.push(Step::StripStart { content, count });
                    true
                }
                None => false,
            }
        }
        _ => false,
    }
}

fn byte_token(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// The bytes behind byte-level characters, or nothing if one of them is none (an added token's own text).
fn byte_level(text: &str) -> Option<Vec<u8>> {
    text.chars().map(byte_of_char).collect()
}

/// The inverse of the byte-level alphabet: printable bytes stand for themselves, the other 68 for U+0100 upwards in order.
fn byte_of_char(c: char) -> Option<u8> {
    let code = c as u32;
    match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => Some(code as u8),
        0x100..=0x120 => Some((code - 0x100) as u8),
        0x121..=0x142 => Some((code - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}
