//! What may come next in an answer that has to follow a JSON schema, a grammar or a regular expression: the llguidance crate
//! over the vocabulary of a tokenizer.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokRxInfo, TokTrie, TokenId};
use llguidance::{Matcher, ParserFactory};

use crate::Result;
use crate::pieces::PieceState;
use crate::schema;
use crate::tokenizer::TextTokenizer;

/// Bytes of a grammar. Beyond the bounds on its steps, they bound its parsing.
const MOST_GRAMMAR_BYTES: usize = 256 << 10;
/// Bytes of a regular expression: some take time that grows with their square.
pub const MOST_REGEX_BYTES: usize = 16 << 10;
/// Brackets inside each other; both parsers work by recursion.
const MOST_NESTED: usize = 100;
/// For the recursion that is left: over rules that name rules, and over the branches of expressions. Taken only as touched.
const STACK_BYTES: usize = 512 << 20;
/// A kibibyte or two each.
const MOST_LEXER_STATES: usize = 50_000;

/// What a constraint is written in.
#[derive(Clone, Copy)]
pub enum Notation {
    /// A JSON schema that is followed in full.
    Schema,
    /// A JSON schema of which what cannot be followed is ignored.
    LooseSchema,
    Lark,
    Regex,
}

impl Notation {
    pub fn of(number: i32) -> Result<Self> {
        match number {
            0 => Ok(Self::Schema),
            1 => Ok(Self::LooseSchema),
            2 => Ok(Self::Lark),
            3 => Ok(Self::Regex),
            _ => Err(format!("there is no notation {number} for constraints")),
        }
    }
}

/// The entries of a tokenizer as bytes, in a tree.
pub struct Vocabulary {
    factory: ParserFactory,
    /// One above the highest id that may be chosen.
    count: usize,
    /// Stands for the end where the model has no token for it; the entry behind the last.
    no_end: TokenId,
}

impl Vocabulary {
    /// `count`: ids below it may be chosen. `ends`: those that end a text.
    pub fn new(tokenizer: &TextTokenizer, count: u32, ends: &[u32]) -> Result<Self> {
        let no_end = count;
        let mut words: Vec<Vec<u8>> = (0..count).map(|id| bytes_of(tokenizer, id)).collect();
        words.push([&[TokTrie::SPECIAL_TOKEN_MARKER], "\0no end".as_bytes()].concat());
        let ends: Vec<TokenId> = ends.iter().copied().filter(|id| *id < count).collect();
        for id in &ends {
            let word = &mut words[*id as usize];
            if word.first() != Some(&TokTrie::SPECIAL_TOKEN_MARKER) {
                word.insert(0, TokTrie::SPECIAL_TOKEN_MARKER);
            }
        }
        let ends = if ends.is_empty() { vec![no_end] } else { ends };
        let info = TokRxInfo::new(count + 1, ends[0]);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(&ends);
        // The model chooses how to cut what a grammar forces: nothing here has to know how the tokenizer would.
        let environment = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new(
            &(environment as llguidance::toktrie::TokEnv),
            InferenceCapabilities { ff_tokens: false, conditional_ff_tokens: false, backtrack: false, fork: false },
            &llguidance::earley::SlicedBiasComputer::general_slices(),
        )
        .map_err(|error| error.to_string())?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.max_lexer_states = MOST_LEXER_STATES;
        limits.precompute_large_lexemes = false;
        limits.verbose_errors = false;
        Ok(Self { factory, count: count as usize, no_end })
    }

    /// Fails, in one sentence, for what is wrong, too large, or cannot be followed by any text.
    pub fn constrain(&self, notation: Notation, source: &str) -> Result<Constraint> {
        let work = || self.constrain_here(notation, source);
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            match thread.map(|thread| thread.join()) {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err("the constraint is beyond what can be compiled".into()),
                Err(error) => Err(format!("there is no thread to compile the constraint: {error}")),
            }
        })
    }

    fn constrain_here(&self, notation: Notation, source: &str) -> Result<Constraint> {
        let grammar = match notation {
            Notation::Schema | Notation::LooseSchema => {
                let strict = matches!(notation, Notation::Schema);
                TopLevelGrammar::from_json_schema(schema::prepare(source, strict)?)
            }
            Notation::Lark | Notation::Regex => {
                let lark = matches!(notation, Notation::Lark);
                bound(source, lark)?;
                if lark { TopLevelGrammar::from_lark(source.to_owned()) } else { TopLevelGrammar::from_regex(source) }
            }
        };
        let failed = |error: String| match notation {
            Notation::Schema | Notation::LooseSchema => schema::locate(source, &sentence(&error)),
            Notation::Lark => format!("grammar: {}", sentence(&error)),
            Notation::Regex => format!("regular expression: {}", sentence(&error)),
        };
        let parser = self.factory.create_parser(grammar).map_err(|error| failed(format!("{error:#}")))?;
        let mut out = Constraint { matcher: Matcher::new(Ok(parser)), count: self.count, no_end: self.no_end };
        // The first step shows what would fail at once, and whether there is a text at all.
        let mut words = vec![0; self.count.div_ceil(32)];
        let complete = out.mask(&mut words).map_err(failed)?;
        if !complete && words.iter().all(|word| *word == 0) {
            return Err(failed("no text can follow it".into()));
        }
        Ok(out)
    }
}

/// The state of one answer.
pub struct Constraint {
    matcher: Matcher,
    count: usize,
    no_end: TokenId,
}

impl Constraint {
    pub fn copy(&self) -> Self {
        Self { matcher: self.matcher.deep_clone(), count: self.count, no_end: self.no_end }
    }

    /// One bit an id: whether it may come next. True: the text may end here though no token says so.
    pub fn mask(&mut self, words: &mut [u32]) -> Result<bool> {
        let allowed = self.matcher.compute_mask_or_eos().map_err(|error| sentence(&error.to_string()))?;
        let bits = allowed.as_slice();
        for (at, word) in words.iter_mut().enumerate() {
            *word = bits.get(at).copied().unwrap_or(0);
        }
        for id in self.count..words.len() * 32 {
            words[id / 32] &= !(1 << (id % 32));
        }
        Ok(allowed.is_allowed(self.no_end))
    }

    /// `id` was chosen. True: nothing can follow.
    pub fn accept(&mut self, id: u32) -> Result<bool> {
        self.matcher.consume_token(id).map_err(|error| sentence(&error.to_string()))?;
        Ok(self.matcher.is_stopped())
    }
}

fn bytes_of(tokenizer: &TextTokenizer, id: u32) -> Vec<u8> {
    let Some(token) = tokenizer.token_text(id) else { return Vec::new() };
    let mut out = Vec::new();
    if tokenizer.is_special(id) {
        out.push(TokTrie::SPECIAL_TOKEN_MARKER);
        out.extend_from_slice(token.as_bytes());
    } else if tokenizer.pieces.is_token_by_token() {
        tokenizer.pieces.push(&token, &mut PieceState::inside(), &mut out);
    } else if let Ok(text) = tokenizer.decode(&[id], false)
        && !text.contains('\u{fffd}')
    {
        out = text.into_bytes();
    }
    // The marker of special tokens is a byte of its own; as text it is in no character.
    if !tokenizer.is_special(id) && out.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) {
        out.clear();
    }
    out
}

fn bound(source: &str, strings: bool) -> Result<()> {
    if source.trim().is_empty() {
        return Err("the grammar or regular expression is empty".into());
    }
    let most = if strings { MOST_GRAMMAR_BYTES } else { MOST_REGEX_BYTES };
    if source.len() > most {
        return Err(format!("the grammar or regular expression has {} bytes, at most are {most}", source.len()));
    }
    // Strings of a grammar hold no structure; an expression has none of its own, and counts what it escapes for nothing.
    let (mut level, mut deepest, mut quoted) = (0usize, 0, false);
    let mut bytes = source.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'"' if strings => quoted = !quoted,
            b'(' | b'[' | b'{' if !quoted => {
                level += 1;
                deepest = deepest.max(level);
            }
            b')' | b']' | b'}' if !quoted => level = level.saturating_sub(1),
            _ => {}
        }
    }
    if deepest > MOST_NESTED {
        return Err(format!("the grammar or regular expression nests more than {MOST_NESTED} brackets"));
    }
    Ok(())
}

/// The first line of a library's message, without its own advice, of a length to print.
pub fn sentence(message: &str) -> String {
    let mut line = String::new();
    for part in message.lines().map(str::trim).filter(|part| !part.is_empty()).take(2) {
        if !line.is_empty() {
            line.push_str("; ");
        }
        line.push_str(part);
    }
    const MOST: usize = 300;
    if line.len() > MOST {
        let end = (0..=MOST).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        line.truncate(end);
        line.push('…');
    }
    line
}
