//! How much longer a text can become inside a tokenizer. Stages that replace one text by another multiply: eight of them
//! that turn one letter into twenty make ten gigabytes of a word. Such a tokenizer is refused before it is built, because
//! building already runs its normalizer over the added tokens.

use serde_json::Value as Json;

use crate::Result;

/// Longest result a byte of text. Real tokenizers stay below 2000, most below 20.
const MOST: u64 = 4096;

/// Refuses a tokenizer of which one of these parts can exceed the bound.
pub fn check(normalizer: &Json, pre_tokenizer: &Json, decoder: &Json) -> Result<()> {
    for (part, stage) in [("normalizer", normalizer), ("pre-tokenizer", pre_tokenizer), ("decoder", decoder)] {
        if growth(stage) > MOST {
            return Err(format!(
                "the tokenizer's {part} can make a text more than {MOST} times as long, which is not run"
            ));
        }
    }
    Ok(())
}

/// An upper bound of bytes after the stage for one byte before it. Fields decide before the type does: the library
/// also takes stages that do not name their type.
fn growth(stage: &Json) -> u64 {
    let lists = ["normalizers", "pretokenizers", "decoders"];
    if let Some(stages) = lists.iter().find_map(|list| stage.get(list)?.as_array()) {
        return stages.iter().fold(1, |all, stage| all.saturating_mul(growth(stage)));
    }
    let length = |field: &str| stage.get(field).and_then(Json::as_str).map(|text| text.len() as u64);
    if let (Some(content), Some(pattern)) = (length("content"), stage.get("pattern")) {
        return match pattern.get("String").and_then(Json::as_str).map_or(0, str::len) as u64 {
            0 => content + 1, // a regular expression, or nothing: it may match between any two bytes
            pattern => content.div_ceil(pattern).max(1),
        };
    }
    if let Some(prepended) = length("prepend") {
        return prepended + 1;
    }
    if let Some(map) = stage.get("precompiled_charsmap").and_then(Json::as_str) {
        return longest_replacement(map);
    }
    match stage.get("type").and_then(Json::as_str) {
        Some("NFKC" | "NFKD") => 11, // U+FDFA
        Some("BertNormalizer") => 6,
        Some("Metaspace") => 4,
        Some("NFC" | "NFD") => 3,
        Some("ByteLevel" | "Lowercase" | "WordPiece" | "BPEDecoder") => 2,
        _ => 1,
    }
}

/// The longest text in a SentencePiece character map: base64 of u32 trie size, the trie, texts with a zero byte after each.
fn longest_replacement(base64: &str) -> u64 {
    let mut bytes = Vec::with_capacity(base64.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for digit in base64.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    let Some((head, rest)) = bytes.split_first_chunk::<4>() else {
        return 1;
    };
    let texts = rest.get(u32::from_le_bytes(*head) as usize..).unwrap_or_default();
    texts.split(|byte| *byte == 0).map(|text| text.len() as u64).max().unwrap_or(0).max(1)
}
