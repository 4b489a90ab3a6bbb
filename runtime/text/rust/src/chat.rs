//! A conversation to ids: marker ids stand only where the template put them.
//!
//! The template is rendered with a sentinel character inside every marker that is spelled out in the variables, so that
//! neither the template's logic nor the tokenizer takes it for one. Then the sentinels are taken out again; each leaves the
//! position of a character that no marker may start at. Without such text in the variables nothing differs from rendering
//! and encoding in one go.

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value as Json;
use tokenizers::normalizer::Range;
use tokenizers::tokenizer::normalizer::NormalizedString;
use tokenizers::tokenizer::pre_tokenizer::PreTokenizedString;
use tokenizers::{AddedToken, Normalizer, Token};

use crate::Result;
use crate::template::{Clock, Job, render};
use crate::tokenizer::{TextTokenizer, describe};

pub struct Encoded {
    pub text: String,
    pub ids: Vec<u32>,
}

pub fn encode(tokenizer: &TextTokenizer, template: &str, variables: &Json, clock: Clock) -> Result<Encoded> {
    let markers = Markers::of(tokenizer);
    let sentinel = free_character(template, variables)?;
    let mut shielded = variables.clone();
    let mut found = false;
    if let Json::Object(map) = &mut shielded {
        for (name, value) in map.iter_mut() {
            // bos_token and its like are the tokenizer's own words, which the template is meant to print.
            if !name.ends_with("_token") {
                markers.shield(value, sentinel, Voice::Other, &mut found);
            }
        }
    }
    let rendered = render(&Job { source: template, variables: &shielded, clock, sentinel: found.then_some(sentinel) })?;
    if !found {
        let ids = tokenizer.encode(&rendered, false, true)?;
        return Ok(Encoded { text: rendered, ids });
    }
    let (text, guarded) = take_out(&rendered, sentinel);
    let ids = encode_guarded(tokenizer, &markers, &text, &guarded)?;
    Ok(Encoded { text, ids })
}

/// Whose words a part of the variables is.
#[derive(Clone, Copy, PartialEq)]
enum Voice {
    /// The model's earlier answers: markup that it wrote itself (thinking, tool calls) keeps its tokens.
    Model,
    Other,
}

struct Markers {
    ids: Vec<u32>,
    tokens: Vec<AddedToken>,
    automaton: Option<AhoCorasick>,
}

impl Markers {
    fn of(tokenizer: &TextTokenizer) -> Self {
        let mut added: Vec<(u32, AddedToken)> = tokenizer
            .inner
            .get_added_vocabulary()
            .get_added_tokens_decoder()
            .iter()
            .filter(|(_, token)| !token.content.is_empty())
            .map(|(id, token)| (*id, token.clone()))
            .collect();
        added.sort_by_key(|(id, _)| *id);
        let (ids, tokens): (Vec<u32>, Vec<AddedToken>) = added.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|token| token.content.as_str()))
            .ok();
        Self { ids, tokens, automaton }
    }

    /// Special tokens always are markers. Others are if they look like markup: an added word or run of spaces is text.
    fn is_marker(token: &AddedToken, voice: Voice) -> bool {
        let text = token.content.trim();
        let markup = (text.starts_with('<') && text.ends_with('>')) || (text.starts_with('[') && text.ends_with(']'));
        token.special || (markup && voice == Voice::Other)
    }

    fn shield(&self, value: &mut Json, sentinel: char, voice: Voice, found: &mut bool) {
        match value {
            Json::String(text) => {
                if let Some(safe) = self.shielded(text, sentinel, voice) {
                    *text = safe;
                    *found = true;
                }
            }
            Json::Array(items) => items.iter_mut().for_each(|item| self.shield(item, sentinel, voice, found)),
            Json::Object(map) => {
                let from_model = map.get("role").and_then(Json::as_str) == Some("assistant");
                let voice = if from_model { Voice::Model } else { voice };
                let old = std::mem::take(map);
                for (key, mut entry) in old {
                    self.shield(&mut entry, sentinel, voice, found);
                    let key = match self.shielded(&key, sentinel, voice) {
                        Some(safe) => {
                            *found = true;
                            safe
                        }
                        None => key,
                    };
                    map.insert(key, entry);
                }
            }
            _ => {}
        }
    }

    /// `text` with the sentinel after the first character of every marker in it, and of a marker that its end begins.
    fn shielded(&self, text: &str, sentinel: char, voice: Voice) -> Option<String> {
        let tokens = || self.tokens.iter().filter(|token| Self::is_marker(token, voice));
        let mut starts: Vec<usize> = Vec::new();
        for token in tokens() {
            // Every place, overlapping ones too: which of them would match depends on the text around.
            let first = token.content.chars().next().map_or(1, char::len_utf8);
            let mut from = 0;
            while let Some(at) = text.get(from..).and_then(|rest| rest.find(token.content.as_str())) {
                starts.push(from + at + first);
                from += at + first;
            }
            let longest = token.content.len().min(text.len() + 1);
            for length in first..longest {
                if token.content.is_char_boundary(length) && text.ends_with(&token.content[..length]) {
                    starts.push(text.len() - length + first);
                }
            }
        }
        if starts.is_empty() {
            return None;
        }
        starts.sort_unstable();
        starts.dedup();
        let mut safe = String::with_capacity(text.len() + 3 * starts.len());
        let mut at = 0;
        for start in starts {
            safe.push_str(&text[at..start]);
            safe.push(sentinel);
            at = start;
        }
        safe.push_str(&text[at..]);
        Some(safe)
    }
}

/// A private-use character that neither the template nor the variables hold.
fn free_character(template: &str, variables: &Json) -> Result<char> {
    let variables = variables.to_string();
    ('\u{e000}'..='\u{f8ff}')
        .find(|c| !template.contains(*c) && !variables.contains(*c))
        .ok_or_else(|| "the messages hold every private-use character there is; take some out".into())
}

/// The text without sentinels, and the positions of the characters before them.
fn take_out(rendered: &str, sentinel: char) -> (String, Vec<usize>) {
    let mut text = String::with_capacity(rendered.len());
    let mut guarded = Vec::new();
    let mut last = 0;
    for c in rendered.chars() {
        if c == sentinel {
            guarded.push(last);
        } else {
            last = text.len();
            text.push(c);
        }
    }
    (text, guarded)
}

/// Encodes with added tokens matched everywhere but at the guarded positions.
fn encode_guarded(tokenizer: &TextTokenizer, markers: &Markers, text: &str, guarded: &[usize]) -> Result<Vec<u32>> {
    let mut pieces: PreTokenizedString = text.into();
    pieces.split(|_, whole| Ok(split(markers, &whole, guarded))).map_err(describe)?;
    if let Some(normalizer) = tokenizer.inner.get_normalizer() {
        pieces.normalize(|piece| normalizer.normalize(piece)).map_err(describe)?;
    }
    tokenizer.finish(pieces, false)
}

fn split(
    markers: &Markers,
    whole: &NormalizedString,
    guarded: &[usize],
) -> Vec<(NormalizedString, Option<Vec<Token>>)> {
    let text = whole.get();
    let mut parts: Vec<(Option<u32>, std::ops::Range<usize>)> = Vec::new();
    let (mut done, mut from) = (0, 0);
    while let Some(found) = markers.automaton.as_ref().and_then(|automaton| automaton.find(&text[from..])) {
        let (mut start, mut end) = (from + found.start(), from + found.end());
        let token = &markers.tokens[found.pattern().as_usize()];
        let inside_word = token.single_word
            && (text[..start].chars().next_back().is_some_and(is_word)
                || text[end..].chars().next().is_some_and(is_word));
        if inside_word || guarded.binary_search(&start).is_ok() {
            from = start + text[start..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        if token.lstrip {
            start = text[..start].trim_end().len().max(done);
        }
        if token.rstrip {
            end = text.len() - text[end..].trim_start().len();
        }
        if done < start {
            parts.push((None, done..start));
        }
        parts.push((Some(markers.ids[found.pattern().as_usize()]), start..end));
        (done, from) = (end, end);
    }
    if done < text.len() {
        parts.push((None, done..text.len()));
    }
    parts
        .into_iter()
        .filter_map(|(id, range)| {
            let piece = whole.slice(Range::Normalized(range))?;
            let tokens = id.map(|id| vec![Token::new(id, piece.get().to_owned(), (0, piece.get().len()))]);
            Some((piece, tokens))
        })
        .collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
