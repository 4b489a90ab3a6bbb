//! The compact form of a BPE tokenizer.json: the same content with vocabulary and merges as plain tables, so that start-up
//! does not pay for parsing megabytes of JSON. Little-endian:
//!   magic, u32 length of the JSON rest, the rest (model.vocab and model.merges empty),
//!   u32 entries, per entry u32 id, u32 length, bytes; u32 merges, per merge u32 left id, u32 right id.

use std::collections::HashMap;

use serde_json::Value as Json;
use tokenizers::models::bpe::BPE;
use tokenizers::{ModelWrapper, Tokenizer};

use crate::tokenizer::describe;
use crate::{Result, growth};

const MAGIC: &[u8; 8] = b"CQTOK\x01\r\n";

pub fn is_compact(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The compact form, or nothing where only the JSON form exists (models other than BPE).
pub fn pack(json: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut root: Json = serde_json::from_slice(json).map_err(describe)?;
    let Some(model) = root.get_mut("model").and_then(Json::as_object_mut) else {
        return Ok(None);
    };
    let is_bpe = match model.get("type").and_then(Json::as_str) {
        Some(kind) => kind == "BPE",
        None => model.contains_key("merges"),
    };
    if !is_bpe {
        return Ok(None);
    }
    model.insert("type".into(), "BPE".into());
    let (Some(Json::Object(vocab)), Some(Json::Array(merges))) = (model.remove("vocab"), model.remove("merges")) else {
        return Ok(None);
    };
    model.insert("vocab".into(), Json::Object(Default::default()));
    model.insert("merges".into(), Json::Array(Vec::new()));
    let mut ids: HashMap<&str, u32> = HashMap::with_capacity(vocab.len());
    let mut out = MAGIC.to_vec();
    if vocab.values().any(|id| id.as_u64().is_none_or(|id| id >= 2 * vocab.len() as u64)) {
        return Ok(None); // too sparse for tables by id
    }
    let mut taken = vec![false; 2 * vocab.len()];
    let rest = serde_json::to_vec(&root).map_err(describe)?;
    put(&mut out, rest.len())?;
    out.extend_from_slice(&rest);
    put(&mut out, vocab.len())?;
    for (token, id) in &vocab {
        let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
        let id = id.ok_or_else(|| format!("the id of token {token:?} is not a 32-bit number"))?;
        if std::mem::replace(&mut taken[id as usize], true) {
            return Ok(None); // merges by id need one token an id
        }
        ids.insert(token, id);
        put(&mut out, id as usize)?;
        put(&mut out, token.len())?;
        out.extend_from_slice(token.as_bytes());
    }
    put(&mut out, merges.len())?;
    for merge in &merges {
        let (left, right) = match merge {
            Json::String(pair) => match pair.split_once(' ') {
                Some((left, right)) if !right.contains(' ') => (left, right),
                _ => return Ok(None), // the library's reading of odd lines is its own
            },
            Json::Array(pair) if pair.len() == 2 => match (pair[0].as_str(), pair[1].as_str()) {
                (Some(left), Some(right)) => (left, right),
                _ => return Err("a merge is not a pair of texts".into()),
            },
            _ => return Err("a merge is neither a text nor a pair".into()),
        };
        for side in [left, right] {
            let id = ids.get(side).ok_or_else(|| format!("a merge names {side:?}, which is no token"))?;
            put(&mut out, *id as usize)?;
        }
    }
    Ok(Some(out))
}

/// The tokenizer, and the JSON rest for what else is read from it.
pub fn unpack(bytes: &[u8]) -> Result<(Tokenizer, &[u8])> {
    let mut at = Reader { bytes: &bytes[MAGIC.len()..] };
    let length = at.number()? as usize;
    let rest = at.take(length)?;
    let entries = at.count(8)?;
    let mut vocab = VocabMap::with_capacity(entries);
    // Ids are almost always dense; the bound keeps a damaged one from asking for memory.
    let mut texts: Vec<Option<&str>> = vec![None; entries.saturating_mul(2)];
    for _ in 0..entries {
        let id = at.number()?;
        let length = at.number()? as usize;
        let text = std::str::from_utf8(at.take(length)?).map_err(|_| DAMAGED.to_string())?;
        vocab.insert(text.to_owned(), id);
        *texts.get_mut(id as usize).ok_or(DAMAGED)? = Some(text);
    }
    let merge_count = at.count(8)?;
    let mut merges = Vec::with_capacity(merge_count);
    for _ in 0..merge_count {
        let mut side = || -> Result<String> {
            let text = texts.get(at.number()? as usize).copied().flatten().ok_or(DAMAGED)?;
            Ok(text.to_owned())
        };
        merges.push((side()?, side()?));
    }
    let mut root: Json = serde_json::from_slice(rest).map_err(describe)?;
    growth::check(&root["normalizer"], &root["pre_tokenizer"], &root["decoder"])?;
    let added = root.as_object_mut().and_then(|root| root.remove("added_tokens"));
    let settings: BpeSettings = serde_json::from_value(root["model"].clone()).map_err(describe)?;
    let mut inner: Tokenizer = serde_json::from_value(root).map_err(describe)?;
    inner.with_model(ModelWrapper::BPE(settings.build(vocab, merges)?));
    if let Some(added) = added {
        let added: Vec<tokenizers::AddedToken> = serde_json::from_value(added).map_err(describe)?;
        inner.add_tokens(&added);
    }
    Ok((inner, rest))
}

#[derive(serde::Deserialize)]
struct BpeSettings {
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: Option<bool>,
    #[serde(default)]
    byte_fallback: Option<bool>,
    #[serde(default)]
    ignore_merges: Option<bool>,
}

impl BpeSettings {
    fn build(self, vocab: VocabMap, merges: Vec<(String, String)>) -> Result<BPE> {
        let mut builder = BPE::builder().vocab_and_merges(vocab, merges);
        if let Some(dropout) = self.dropout {
            builder = builder.dropout(dropout);
        }
        if let Some(token) = self.unk_token {
            builder = builder.unk_token(token);
        }
        if let Some(prefix) = self.continuing_subword_prefix {
            builder = builder.continuing_subword_prefix(prefix);
        }
        if let Some(suffix) = self.end_of_word_suffix {
            builder = builder.end_of_word_suffix(suffix);
        }
        builder
            .fuse_unk(self.fuse_unk.unwrap_or(false))
            .byte_fallback(self.byte_fallback.unwrap_or(false))
            .ignore_merges(self.ignore_merges.unwrap_or(false))
            .build()
            .map_err(describe)
    }
}

type VocabMap = ahash::AHashMap<String, u32>;

const DAMAGED: &str = "the tokenizer tables are damaged; compile the model again";

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(length).ok_or(DAMAGED)?;
        self.bytes = tail;
        Ok(head)
    }

    fn number(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| DAMAGED)?))
    }

    /// A count of records of at least `record` bytes each, bounded by what is left.
    fn count(&mut self, record: usize) -> Result<usize> {
        let count = self.number()? as usize;
        if count > self.bytes.len() / record { Err(DAMAGED.into()) } else { Ok(count) }
    }
}

fn put(out: &mut Vec<u8>, number: usize) -> Result<()> {
    let number = u32::try_from(number).map_err(|_| "the tokenizer is too large for its compact form".to_string())?;
    out.extend_from_slice(&number.to_le_bytes());
    Ok(())
}
