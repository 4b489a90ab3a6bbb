/* cortiq: runs compiled language models (.cqa) inside a program.
 *
 * A model is loaded once and shared; a session is one conversation on it. Every function that can fail returns a status
 * code; cortiq_last_error() then has one sentence for people. Nothing throws, nothing writes to the standard streams.
 *
 * Threads: a cortiq_model may be used from any number of threads at once. A cortiq_session is used by one thread at a
 * time, with two exceptions that may be called while it works, from its callback too: cortiq_session_cancel() and
 * cortiq_session_select(). A callback may also ask for cortiq_session_position(). What else would change a session at
 * work fails with CORTIQ_INVALID; cortiq_session_free() cannot fail, and has to wait until the work is done.
 *
 * Stability: names, meanings and layouts here do not change within one major version. Structures begin with their own
 * size, so that later versions can append fields: initialise them with their macro, and set what differs.
 */
#ifndef CORTIQ_H
#define CORTIQ_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CORTIQ_API __attribute__((visibility("default")))
#else
#define CORTIQ_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---- */

typedef int32_t cortiq_status;
enum {
  CORTIQ_OK = 0,
  CORTIQ_INVALID = 1,     /* an argument or a file is damaged, foreign or contradicts itself */
  CORTIQ_UNSUPPORTED = 2, /* sound, but not there: a CPU feature, a tokenizer, a skill's descriptor */
  CORTIQ_IO = 3,          /* the operating system refused */
  CORTIQ_INTERNAL = 4,    /* a bug in the library */
  CORTIQ_NO_MEMORY = 5,
  CORTIQ_CANCELLED = 6 /* cortiq_session_cancel() was called; the session holds what was run before */
};

/* The sentence of the calling thread's latest failure; "" before the first. Valid until its next failure. */
CORTIQ_API const char* cortiq_last_error(void);
/* "0.1.0" */
CORTIQ_API const char* cortiq_version(void);

/* ---- models ---- */

typedef struct cortiq_model cortiq_model;

typedef struct cortiq_load_options {
  size_t size;
  int32_t verify_weights;  /* check the hash of every part of the weights: reads the whole file */
  int32_t large_pages;     /* weights in large pages: reads and copies the whole file */
  int32_t numa;            /* spread weights over the nodes of a machine that has several */
  uint64_t memory;         /* bytes for weights, caches and work space of all sessions; experts beyond them stay in the
                              file until needed. 0: no limit */
  const char* require_key; /* 64 hexadecimal digits, or a file that holds them: the ed25519 key that has to have signed
                              the artifact, of which every hash is checked then. Null: nobody has to */
  const char* device;      /* GPUs of an artifact compiled with --target vulkan: numbers with commas between them, as
                              cortiq-run --device list counts them; "auto": the first that is not a CPU itself, and
                              where there is none the CPU; null: the CPU. Sessions there are neither saved nor loaded,
                              give no embeddings and have the artifact's own cache type */
  uint64_t device_memory;  /* bytes of weights on each of them. 0: what is free */
  int32_t cpu_fallback;    /* what fails there goes on on the CPU */
} cortiq_load_options;
#define CORTIQ_LOAD_OPTIONS {sizeof(cortiq_load_options), 0, 0, 1, 0, 0, 0, 0, 0}

/* Maps and checks the artifact `path`. `options` may be null. */
CORTIQ_API cortiq_status cortiq_model_load(const char* path, const cortiq_load_options* options, cortiq_model** model);
/* Sessions keep what they need: a model may be freed before them. Null is ignored. */
CORTIQ_API void cortiq_model_free(cortiq_model* model);

/* Strings live as long as the model. */
typedef struct cortiq_model_info {
  size_t size;
  const char* name; /* may be "" */
  const char* architecture;
  const char* target;      /* what the code was compiled for */
  const char* text_absent; /* why there is no tokenizer; "" when there is one */
  int32_t exact;           /* 1: computed in f32; 0: the fast arm */
  uint64_t hidden;
  uint64_t layers;
  uint64_t vocab; /* logits a position */
  uint64_t max_context;
  uint64_t weight_bytes;
  uint64_t skills; /* how many skills and masks there are to select from */
  uint64_t masks;
  const char* device;      /* the GPUs that run it; "": the CPU does */
  const char* device_note; /* why, where `device` was asked for and the CPU runs it; else "" */
} cortiq_model_info;
#define CORTIQ_MODEL_INFO {sizeof(cortiq_model_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

CORTIQ_API cortiq_status cortiq_model_describe(const cortiq_model* model, cortiq_model_info* info);

/* Id of the skill, name of the mask, at `index`; null beyond the last. Lives as long as the model. */
CORTIQ_API const char* cortiq_model_skill(const cortiq_model* model, uint64_t index);
CORTIQ_API const char* cortiq_model_mask(const cortiq_model* model, uint64_t index);

/* ---- text ----
 * Functions that fill a buffer set *count to what there is in all, and fill what fits. A null buffer of capacity 0 asks
 * for the count alone. Text is UTF-8 of a given length, without a closing zero. */

enum {
  CORTIQ_PLAIN = 0,
  CORTIQ_ADD_SPECIAL = 1,  /* with what the tokenizer puts around a text (BOS, EOS) */
  CORTIQ_PARSE_SPECIAL = 2 /* markers spelled out in the text become their tokens: not for text of strangers */
};

CORTIQ_API cortiq_status cortiq_encode(const cortiq_model* model, const char* text, size_t length, uint32_t flags,
                                       uint32_t* ids, size_t capacity, size_t* count);
/* Special tokens have no text. */
CORTIQ_API cortiq_status cortiq_decode(const cortiq_model* model, const uint32_t* ids, size_t id_count, char* text,
                                       size_t capacity, size_t* count);
/* A conversation through the model's own chat template. `json` is an object with `messages`, as chat programs know
 * them, and whatever else the template reads (`tools`, `enable_thinking`, …); `add_generation_prompt` is true unless
 * given. What messages say stays plain text, markers included. */
CORTIQ_API cortiq_status cortiq_encode_chat(const cortiq_model* model, const char* json, size_t length, uint32_t* ids,
                                            size_t capacity, size_t* count);

/* ---- sessions ---- */

typedef struct cortiq_session cortiq_session;

typedef struct cortiq_session_options {
  size_t size;
  uint32_t threads;     /* 0: what affinity, control group and cores allow */
  uint64_t max_context; /* tokens; 0: what the artifact was compiled for */
  const char* kv;       /* cache type: "f32", "f16", "q8"; null: the artifact's own */
} cortiq_session_options;
#define CORTIQ_SESSION_OPTIONS {sizeof(cortiq_session_options), 0, 0, 0}

/* `options` may be null. */
CORTIQ_API cortiq_status cortiq_session_create(cortiq_model* model, const cortiq_session_options* options,
                                               cortiq_session** session);
CORTIQ_API void cortiq_session_free(cortiq_session* session);

/* Tokens held. */
CORTIQ_API uint64_t cortiq_session_position(const cortiq_session* session);
/* Forgets everything after the first `position` tokens. */
CORTIQ_API cortiq_status cortiq_session_rewind(cortiq_session* session, uint64_t position);
/* Keeps what the session holds and `ids` begins with, forgets the rest, and sets *kept to its length. At least one of
 * the ids is never kept, so that ids + kept can be run: the start of a conversation need not be computed again. */
CORTIQ_API cortiq_status cortiq_session_keep(cortiq_session* session, const uint32_t* ids, size_t id_count,
                                             size_t* kept);

/* The ids that the session holds, as a buffer of cortiq_encode() is filled. */
CORTIQ_API cortiq_status cortiq_session_ids(const cortiq_session* session, uint32_t* ids, size_t capacity,
                                            size_t* count);

/* Writes what the session holds to `path`, which appears whole or not at all. */
CORTIQ_API cortiq_status cortiq_session_save(cortiq_session* session, const char* path);
/* Puts a saved session, of cortiq_session_save() or cortiq-run --save-session, in place of what the session holds: what
 * follows is what would have followed there, bit for bit. The file is checked as a stranger's. One of another artifact,
 * target, cache type, skill or mask is refused, and the session is as before; after damage it is empty. */
CORTIQ_API cortiq_status cortiq_session_load(cortiq_session* session, const char* path);

/* Appends `ids` (at least one) of a prompt, or of any text that is given. *logits: [rows x vocab], of every id when
 * `all`, else of the last one (rows = 1); valid until the session's next call. `logits` and `rows` may be null. */
CORTIQ_API cortiq_status cortiq_session_run(cortiq_session* session, const uint32_t* ids, size_t id_count, int32_t all,
                                            const float** logits, size_t* rows);
/* The same for an id that was chosen from the logits of the one before, as cortiq_session_generate() does it. Artifacts
 * may compute prompts in other numbers than what is generated, and more slowly where there is but one id at a time. */
CORTIQ_API cortiq_status cortiq_session_append(cortiq_session* session, uint32_t id, const float** logits);

enum {
  CORTIQ_POOL_MEAN = 0, /* of all ids */
  CORTIQ_POOL_LAST = 1  /* of the last id */
};

/* One vector for `ids`, of length 1: of the model's last hidden states as `pooling` says. Fills what fits of its
 * cortiq_model_info.hidden numbers, and sets *count to all of them. Runs from an empty session, which it leaves empty;
 * the session's skill and mask are in force. */
CORTIQ_API cortiq_status cortiq_session_embed(cortiq_session* session, const uint32_t* ids, size_t id_count,
                                              int32_t pooling, float* vector, size_t capacity, size_t* count);

/* Puts a skill and a mask in force from the next step on. `skill`: an id, several with weights ("a:0.7,b:0.3"), "none",
 * or null for what applies when nothing is said; `mask`: a name, "none" or null. What the session holds was computed
 * before: rewind to 0 to have it computed anew. May be called while the session works. */
CORTIQ_API cortiq_status cortiq_session_select(cortiq_session* session, const char* skill, const char* mask);

/* Makes the generation that another thread is in end with CORTIQ_CANCELLED, after the step it is at; a session that
 * does nothing is not affected. */
CORTIQ_API void cortiq_session_cancel(cortiq_session* session);

/* ---- generation ---- */

typedef struct cortiq_generate_options {
  size_t size;
  uint64_t max_tokens;      /* UINT64_MAX: as many as the context holds */
  float temperature;        /* 0: always the most likely token */
  uint32_t top_k;           /* 0: all */
  float top_p;              /* 1: all */
  float min_p;              /* 0: all */
  float repetition_penalty; /* 1: none; 0: what suits the temperature, none at 0 and 1.1 above */
  float presence_penalty;   /* 0: none */
  uint32_t penalty_window;  /* tokens that penalties look back; 0: all */
  uint64_t seed;
  int32_t ignore_end;       /* the model's own end tokens do not end the text */
  const uint32_t* stop_ids; /* further ids that end it; they are not part of it */
  size_t stop_id_count;
} cortiq_generate_options;
#define CORTIQ_GENERATE_OPTIONS                                                                                        \
  {sizeof(cortiq_generate_options), UINT64_MAX, 0.7f, 40, 0.9f, 0.05f, 0.0f, 0.0f, 0, 0, 0, 0, 0}

enum { CORTIQ_FINISH_STOP = 0, CORTIQ_FINISH_LENGTH = 1, CORTIQ_FINISH_CALLBACK = 2 };

typedef struct cortiq_result {
  size_t size;
  int32_t finish;
  uint64_t prompt_tokens;
  uint64_t tokens; /* that were generated */
  double prefill_seconds;
  double first_token_seconds;
  double decode_seconds; /* of the tokens after the first */
  uint64_t guessed;      /* tokens guessed ahead, where the model can, and those that were right */
  uint64_t accepted;
} cortiq_result;
#define CORTIQ_RESULT {sizeof(cortiq_result), 0, 0, 0, 0, 0, 0, 0, 0}

#define CORTIQ_NO_ID UINT32_MAX

/* Called with each token as it is chosen, and the text that became final with it (never inside a character; empty for a
 * model without tokenizer). Text left at the end comes with CORTIQ_NO_ID. Anything but 0 ends the generation; the token
 * then counts as generated. */
typedef int32_t (*cortiq_token_callback)(void* user, uint32_t id, const char* text, size_t length);

/* Runs `ids` behind what the session holds, then generates. `options` and `result` may be null. The last token is
 * chosen, but not run: position is one less than the tokens in all. */
CORTIQ_API cortiq_status cortiq_session_generate(cortiq_session* session, const uint32_t* ids, size_t id_count,
                                                 const cortiq_generate_options* options, cortiq_token_callback callback,
                                                 void* user, cortiq_result* result);

#ifdef __cplusplus
}
#endif

#endif
