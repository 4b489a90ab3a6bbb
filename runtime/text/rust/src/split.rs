//! Pre-tokenizers of byte-level models, without the library's account of where each piece came from.
//!
//! A text of a million digits is a million pieces, and the library keeps three allocations of offsets for each. Ids need
//! none of that: the same patterns are matched here over the text itself. Only the form that such models have is taken,
//! patterns whose matches stand alone and then the byte alphabet; any other pre-tokenizer is left to the library.

use tokenizers::pre_tokenizers::split::Split;
use tokenizers::tokenizer::pattern::Pattern;
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::Result;
use crate::tokenizer::describe;

/// Patterns beyond this are no model's; each is a level of recursion.
const MOST_PATTERNS: usize = 8;

pub struct ByteSplits<'a> {
    patterns: Vec<&'a Split>,
}

impl<'a> ByteSplits<'a> {
    /// Nothing where the pre-tokenizer is of another form.
    pub fn of(pre_tokenizer: &'a PreTokenizerWrapper) -> Option<Self> {
        let steps = match pre_tokenizer {
            PreTokenizerWrapper::Sequence(sequence) => sequence.as_ref(),
            single => std::slice::from_ref(single),
        };
        let (PreTokenizerWrapper::ByteLevel(bytes), patterns) = steps.split_last()? else { return None };
        if bytes.add_prefix_space || bytes.use_regex || patterns.len() > MOST_PATTERNS {
            return None;
        }
        let patterns = patterns.iter().map(|step| match step {
            PreTokenizerWrapper::Split(split)
                if split.behavior == SplitDelimiterBehavior::Isolated && !split.invert =>
            {
                Some(split)
            }
            _ => None,
        });
        Some(Self { patterns: patterns.collect::<Option<_>>()? })
    }

    /// Calls `visit` with each piece of `text`, in the alphabet of the vocabulary.
    pub fn each(&self, text: &str, visit: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
        let mut spelled = String::new();
        split(&self.patterns, text, &mut |piece| {
            spelled.clear();
            spelled.extend(piece.bytes().map(char_of_byte));
            visit(&spelled)
        })
    }
}

/// Pieces of `text` by the first pattern, each split by the others.
fn split(patterns: &[&Split], text: &str, visit: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    let Some((first, rest)) = patterns.split_first() else {
        return if text.is_empty() { Ok(()) } else { visit(text) };
    };
    for ((start, end), _) in (&first.regex).find_matches(text).map_err(describe)? {
        split(rest, &text[start..end], visit)?;
    }
    Ok(())
}

/// The byte-level alphabet: printable bytes stand for themselves, the other 68 for U+0100 upwards in order.
fn char_of_byte(byte: u8) -> char {
    let code = u32::from(byte);
    let code = match byte {
        0x00..=0x20 => 0x100 + code,
        0x7f..=0xa0 => 0x121 + code - 0x7f,
        0xad => 0x143,
        _ => code,
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}
