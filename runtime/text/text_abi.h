#pragma once

// The C boundary to the text library (rust/src/abi.rs), for the files beside this one.
// Texts are UTF-8 with a length; ill-formed parts are read as U+FFFD. Functions that return int32_t give 1 on success;
// on 0 the sentence of the failure is in `error`. Every CortiqTextBytes that a call fills is given back with
// cortiq_text_release(). Handles may be shared between threads, except streams and constraints.

#include <cstddef>
#include <cstdint>

extern "C" {

struct CortiqTextBytes {
  uint8_t* data;
  size_t length;
};

struct CortiqTextView {
  const uint8_t* data;
  size_t length;
};

struct CortiqTextTokenizer;
struct CortiqTextStream;
struct CortiqTextVocabulary;
struct CortiqTextConstraint;

void cortiq_text_release(CortiqTextBytes bytes);
/// Keeps the library from printing on stderr when it catches a panic of its own.
void cortiq_text_quiet();

int32_t cortiq_text_tokenizer_new(CortiqTextView source, CortiqTextTokenizer** out, CortiqTextBytes* error);
void cortiq_text_tokenizer_free(CortiqTextTokenizer* tokenizer);
int32_t cortiq_text_compact(CortiqTextView json, CortiqTextBytes* out, CortiqTextBytes* error);

// Ids come back as native u32, four bytes each.
int32_t cortiq_text_encode(const CortiqTextTokenizer* tokenizer, CortiqTextView text, bool add_special,
                           bool parse_special, CortiqTextBytes* ids, CortiqTextBytes* error);
int32_t cortiq_text_decode(const CortiqTextTokenizer* tokenizer, const uint32_t* ids, size_t count, bool skip_special,
                           CortiqTextBytes* text, CortiqTextBytes* error);
/// 0 for an id without text; nothing is filled then.
int32_t cortiq_text_token_text(const CortiqTextTokenizer* tokenizer, uint32_t id, CortiqTextBytes* text);
/// -1 for a text that is no entry.
int64_t cortiq_text_token_id(const CortiqTextTokenizer* tokenizer, CortiqTextView text);
uint32_t cortiq_text_vocab_size(const CortiqTextTokenizer* tokenizer);
void cortiq_text_special_ids(const CortiqTextTokenizer* tokenizer, CortiqTextBytes* ids);

CortiqTextStream* cortiq_text_stream_new(bool skip_special);
void cortiq_text_stream_free(CortiqTextStream* stream);
int32_t cortiq_text_stream_push(CortiqTextStream* stream, const CortiqTextTokenizer* tokenizer, uint32_t id,
                                CortiqTextBytes* text, CortiqTextBytes* error);
int32_t cortiq_text_stream_flush(CortiqTextStream* stream, const CortiqTextTokenizer* tokenizer, CortiqTextBytes* text,
                                 CortiqTextBytes* error);

int32_t cortiq_text_render(CortiqTextView chat_template, CortiqTextView variables, CortiqTextView now,
                           CortiqTextBytes* text, CortiqTextBytes* error);
int32_t cortiq_text_encode_chat(const CortiqTextTokenizer* tokenizer, CortiqTextView chat_template,
                                CortiqTextView variables, CortiqTextView now, CortiqTextBytes* text,
                                CortiqTextBytes* ids, CortiqTextBytes* error);

/// `count`: ids below it may be chosen.
int32_t cortiq_text_vocabulary_new(const CortiqTextTokenizer* tokenizer, uint32_t count, const uint32_t* ends,
                                   size_t end_count, CortiqTextVocabulary** out, CortiqTextBytes* error);
void cortiq_text_vocabulary_free(CortiqTextVocabulary* vocabulary);
/// `notation`: 0 a JSON schema, 1 one of which what cannot be followed is ignored, 2 a Lark grammar, 3 an expression.
int32_t cortiq_text_constraint_new(const CortiqTextVocabulary* vocabulary, int32_t notation, CortiqTextView source,
                                   CortiqTextConstraint** out, CortiqTextBytes* error);
int32_t cortiq_text_constraint_copy(const CortiqTextConstraint* constraint, CortiqTextConstraint** out,
                                    CortiqTextBytes* error);
void cortiq_text_constraint_free(CortiqTextConstraint* constraint);
/// One bit an id into `count` words: whether it may come next.
int32_t cortiq_text_constraint_mask(CortiqTextConstraint* constraint, uint32_t* words, size_t count,
                                    CortiqTextBytes* error);
int32_t cortiq_text_constraint_accept(CortiqTextConstraint* constraint, uint32_t id, bool* complete,
                                      CortiqTextBytes* error);

} // extern "C"
