//! One tokenizer: what a tokenizer.json describes, executed as the `tokenizers` crate executes it.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value as Json;
use tokenizers::tokenizer::pre_tokenizer::OffsetType;
use tokenizers::{
    AddedVocabulary, Encoding, Model, ModelWrapper, OffsetReferential, PostProcessor, PreTokenizedString, PreTokenizer,
    Tokenizer,
};

use crate::Result;
use crate::compact;
use crate::growth;
use crate::pieces::PieceDecoder;
use crate::split::ByteSplits;

/// The parts of a tokenizer.json that are looked at beside the library's own reading of it.
#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    added_tokens: Vec<AddedEntry>,
    #[serde(default)]
    normalizer: Json,
    #[serde(default)]
    pre_tokenizer: Json,
    #[serde(default)]
    decoder: Json,
}

#[derive(Deserialize)]
struct AddedEntry {
    id: u32,
    content: String,
}

pub struct TextTokenizer {
    pub inner: Tokenizer,
    /// The added tokens again, with special ones left unmatched: used when special text is to be taken as text.
    plain_added: AddedVocabulary,
    pub pieces: PieceDecoder,
    special_ids: HashSet<u32>,
    vocab_size: u32,
}

impl TextTokenizer {
    /// Reads a tokenizer.json or the compact form that `compact::pack` makes of one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (mut inner, outline) = if compact::is_compact(bytes) {
            let (inner, json) = compact::unpack(bytes)?;
            let outline: Outline = serde_json::from_slice(json).map_err(describe)?;
            (inner, outline)
        } else {
            let outline: Outline = serde_json::from_slice(bytes).map_err(describe)?;
            growth::check(&outline.normalizer, &outline.pre_tokenizer, &outline.decoder)?;
            let inner = Tokenizer::from_bytes(bytes).map_err(describe)?;
            (inner, outline)
        };
        for token in &outline.added_tokens {
            // The library gives ids by position and only logs when the file says otherwise.
            match inner.token_to_id(&token.content) {
                Some(id) if id == token.id || token.content.is_empty() => {}
                found => {
                    return Err(format!(
                        "the tokenizer's added token {:?} has id {} in the file, but {} by its vocabulary",
                        token.content,
                        token.id,
                        found.map_or("none".into(), |id| id.to_string())
                    ));
                }
            }
        }
        // What the model can hold is the runtime's affair; nothing is cut or padded in silence.
        inner.with_truncation(None).map_err(describe)?;
        inner.with_padding(None);
        // Dropout is for training: with it the same text would get other ids each time.
        if let ModelWrapper::BPE(bpe) = inner.get_model()
            && bpe.dropout.is_some()
        {
            let mut steady = bpe.clone();
            steady.dropout = None;
            inner.with_model(ModelWrapper::BPE(steady));
        }
        let mut plain_added = inner.get_added_vocabulary().clone();
        plain_added.set_encode_special_tokens(true);
        let added = inner.get_added_vocabulary().get_added_tokens_decoder();
        let special_ids = added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id).collect();
        let highest_added = added.keys().max().map_or(0, |id| id + 1);
        let vocab_size = highest_model_id(&inner).max(highest_added);
        let pieces = PieceDecoder::new(&outline.decoder);
        Ok(Self { inner, plain_added, pieces, special_ids, vocab_size })
    }

    /// Ids of a text. `add_special`: with what the post-processor adds; `parse_special`: special tokens spelled out in the
    /// text become their ids.
    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<u32>> {
        let added = if parse_special { self.inner.get_added_vocabulary() } else { &self.plain_added };
        self.finish(added.extract_and_normalize(self.inner.get_normalizer(), text), add_special)
    }

    /// Pre-tokenizes and tokenizes what added tokens left over.
    pub fn finish(&self, mut pieces: PreTokenizedString, add_special: bool) -> Result<Vec<u32>> {
        let model = self.inner.get_model();
        let mut encoding = if let Some(splits) = self.inner.get_pre_tokenizer().and_then(ByteSplits::of) {
            self.byte_pieces(&splits, &pieces)?
        } else {
            if let Some(pre_tokenizer) = self.inner.get_pre_tokenizer() {
                pre_tokenizer.pre_tokenize(&mut pieces).map_err(describe)?;
            }
            pieces.tokenize(|piece| model.tokenize(piece.get())).map_err(describe)?;
            pieces.into_encoding(None, 0, OffsetType::None).map_err(describe)?
        };
        if add_special && let Some(processor) = self.inner.get_post_processor() {
            encoding = processor.process(encoding, None, true).map_err(describe)?;
        }
        Ok(encoding.get_ids().to_vec())
    }

    /// As the library pre-tokenizes and tokenizes, for the splits that `ByteSplits` knows.
    fn byte_pieces(&self, splits: &ByteSplits, pieces: &PreTokenizedString) -> Result<Encoding> {
        let model = self.inner.get_model();
        let mut ids = Vec::new();
        for (text, _, tokens) in pieces.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            if let Some(tokens) = tokens {
                ids.extend(tokens.iter().map(|token| token.id));
                continue;
            }
            splits.each(text, &mut |piece| {
                ids.extend(model.tokenize(piece).map_err(describe)?.iter().map(|token| token.id));
                Ok(())
            })?;
        }
        Ok(ids.into_iter().map(|id| (id, String::new(), (0, 0), None, 0)).collect())
    }

    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        self.inner.decode(ids, skip_special).map_err(describe)
    }

    /// The entry as the vocabulary spells it.
    pub fn token_text(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.special_ids.contains(&id)
    }

    pub fn special_ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.special_ids.iter().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// One above the highest id.
    pub fn vocab_size(&self) -> u32 {
        self.vocab_size
    }
}

fn highest_model_id(inner: &Tokenizer) -> u32 {
    let model = inner.get_model();
    let count = model.get_vocab_size() as u32;
    // Almost every vocabulary numbers its entries without gaps; only the others are walked.
    if count == 0 || model.id_to_token(count - 1).is_some() && model.id_to_token(count).is_none() {
        return count;
    }
    model.get_vocab().values().max().map_or(0, |id| id.saturating_add(1))
}

pub fn describe(error: impl std::fmt::Display) -> String {
    error.to_string()
}
