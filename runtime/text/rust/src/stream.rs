//! Text of a growing list of ids: what may be shown after each id, never half a character.

use crate::Result;
use crate::pieces::PieceState;
use crate::tokenizer::TextTokenizer;

/// Markup of tool calls stays visible even where a tokenizer calls it special: callers parse it.
const ALWAYS_SHOWN: [&str; 9] = [
    "<tool_call>",
    "</tool_call>",
    "<function",
    "</function>",
    "<param",
    "</param>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "[ARGS]",
];

pub struct StreamDecoder {
    skip_special: bool,
    state: PieceState,
    /// Bytes of a character that is not complete yet.
    pending: Vec<u8>,
    /// Ids whose text is not final, for decoders without a token-by-token form.
    window: Vec<u32>,
    shown: usize,
}

impl StreamDecoder {
    pub fn new(skip_special: bool) -> Self {
        Self { skip_special, state: PieceState::default(), pending: Vec::new(), window: Vec::new(), shown: 0 }
    }

    /// The text that `id` makes final.
    pub fn push(&mut self, tokenizer: &TextTokenizer, id: u32) -> Result<String> {
        let Some(token) = tokenizer.token_text(id) else {
            return Ok(String::new()); // rows of the output matrix beyond the vocabulary have no text
        };
        if self.skip_special && tokenizer.is_special(id) && !ALWAYS_SHOWN.contains(&token.as_str()) {
            return Ok(String::new());
        }
        if !tokenizer.pieces.is_token_by_token() {
            return self.push_window(tokenizer, id);
        }
        tokenizer.pieces.push(&token, &mut self.state, &mut self.pending);
        Ok(take_complete(&mut self.pending))
    }

    /// What is left at the end: a dangling part of a character is one U+FFFD.
    pub fn flush(&mut self, tokenizer: &TextTokenizer) -> Result<String> {
        let mut rest = String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned();
        if !self.window.is_empty() {
            let text = tokenizer.decode(&self.window, false)?;
            rest.push_str(text.get(self.shown..).unwrap_or_default());
            self.window.clear();
            self.shown = 0;
        }
        self.state = PieceState::default();
        Ok(rest)
    }

    fn push_window(&mut self, tokenizer: &TextTokenizer, id: u32) -> Result<String> {
        self.window.push(id);
        let text = tokenizer.decode(&self.window, false)?;
        if text.ends_with('\u{fffd}') {
            return Ok(String::new());
        }
        let delta = text.get(self.shown..).unwrap_or_default().to_owned();
        // Decoders look at most at the token before; one id of context is kept and the rest forgotten.
        self.window.drain(..self.window.len() - 1);
        self.shown = tokenizer.decode(&self.window, false)?.len();
        Ok(delta)
    }
}

/// Cuts the complete part off `pending`; each maximal ill-formed part becomes one U+FFFD.
fn take_complete(pending: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut rest = pending.as_slice();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                rest = &[];
                break;
            }
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                rest = after;
                match error.error_len() {
                    Some(length) => {
                        text.push('\u{fffd}');
                        rest = &rest[length..];
                    }
                    None => break,
                }
            }
        }
    }
    *pending = rest.to_vec();
    text
}
