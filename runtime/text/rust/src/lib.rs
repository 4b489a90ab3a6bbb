//! Tokenizers and chat templates behind a small C ABI (`runtime/text/text_abi.h` is the other side of it).
//!
//! Rules of the boundary: opaque handles, UTF-8 buffers with lengths, every failure as a message. Nothing unwinds across
//! it: each entry point runs inside `guard`, which turns a panic into an error.

mod abi;
mod chat;
mod compact;
mod constraint;
mod growth;
mod pieces;
mod schema;
mod split;
mod stream;
mod template;
mod tokenizer;

/// Failures are sentences for the user.
pub type Result<T> = std::result::Result<T, String>;
