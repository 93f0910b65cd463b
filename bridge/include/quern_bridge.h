/* quern_bridge: tokenizers and chat templates of Rust, behind a small C ABI.
 *
 * Text is UTF-8 as pointer and length, never ended by NUL. What a call hands out in a quern_buffer or quern_ids belongs
 * to the bridge: the caller gives it back with the matching free function. A function that fails writes nothing but
 * `error` (a message for people, to be freed like any buffer). No panic leaves a call: it becomes QUERN_INTERNAL.
 * Objects are immutable once made, and may be used by any number of threads at once. No call starts a thread.
 */
#ifndef QUERN_BRIDGE_H
#define QUERN_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that someone else owns; `data` may be null when `size` is 0. */
typedef struct quern_bytes {
  const uint8_t* data;
  size_t size;
} quern_bytes;

/* Bytes that the bridge owns. All zero is empty. */
typedef struct quern_buffer {
  uint8_t* data;
  size_t size;
  size_t capacity;
} quern_buffer;

/* Token ids that the bridge owns. All zero is empty. */
typedef struct quern_ids {
  int32_t* data;
  size_t size;
  size_t capacity;
} quern_ids;

void quern_buffer_free(quern_buffer buffer);
void quern_ids_free(quern_ids ids);

typedef enum quern_status {
  QUERN_OK = 0,
  QUERN_INVALID = 1,     /* the input breaks its format, or the template refused it */
  QUERN_UNSUPPORTED = 2, /* well-formed, but of a kind that isn't known; the message names it */
  QUERN_INTERNAL = 3     /* a bug */
} quern_status;

/* ---- tokenizers ---- */

typedef struct quern_tokenizer quern_tokenizer;

typedef enum quern_vocabulary_kind {
  QUERN_BYTE_LEVEL_BPE = 0,
  QUERN_SENTENCE_PIECE_BPE = 1,
  QUERN_UNIGRAM = 2,
  QUERN_WORD_PIECE = 3
} quern_vocabulary_kind;

/* GGUF's numbers for what a token is. */
typedef enum quern_token_type {
  QUERN_TOKEN_NORMAL = 1,
  QUERN_TOKEN_UNKNOWN = 2,
  QUERN_TOKEN_CONTROL = 3,
  QUERN_TOKEN_USER_DEFINED = 4,
  QUERN_TOKEN_UNUSED = 5,
  QUERN_TOKEN_BYTE = 6
} quern_token_type;

/* A vocabulary as GGUF metadata describes it. Arrays are of token_count elements, or null where noted. */
typedef struct quern_vocabulary {
  quern_vocabulary_kind kind;
  const quern_bytes* tokens;
  const uint8_t* types; /* null: all normal */
  const float* scores;  /* null: none; needed by the SentencePiece kinds */
  size_t token_count;
  /* "left right", best first; byte-level BPE needs them, SentencePiece BPE derives absent ones */
  const quern_bytes* merges;
  size_t merge_count;
  quern_bytes pre;       /* the pre-tokenizer's name; byte-level BPE */
  bool add_space_prefix; /* SentencePiece kinds */
  bool remove_extra_spaces;
  quern_bytes character_map; /* SentencePiece's compiled normalization; empty for none */
  int32_t unknown_id;        /* -1: none */
} quern_vocabulary;

/* tokenizer.json. */
quern_status quern_tokenizer_from_json(quern_bytes json, quern_tokenizer** out, quern_buffer* error);
quern_status quern_tokenizer_from_vocabulary(const quern_vocabulary* vocabulary, quern_tokenizer** out,
                                             quern_buffer* error);
void quern_tokenizer_free(quern_tokenizer* tokenizer);

/* Token ids of `text`; adds none of its own. `plain`: special-token text is text like any other. */
quern_status quern_tokenizer_encode(const quern_tokenizer* tokenizer, quern_bytes text, bool plain, quern_ids* out,
                                    quern_buffer* error);
/* Ids are 0 to this, less one. */
int32_t quern_tokenizer_size(const quern_tokenizer* tokenizer);
/* The id of a token's own text, -1 for none. */
int32_t quern_tokenizer_id(const quern_tokenizer* tokenizer, quern_bytes text);
/* The id that the tokenizer's post-processor puts in front of a text, -1 for none. */
int32_t quern_tokenizer_prefix_id(const quern_tokenizer* tokenizer);

/* One token. Views live as long as the tokenizer. */
typedef struct quern_token {
  quern_bytes text;        /* the vocabulary's own spelling */
  quern_bytes bytes;       /* what it stands for inside a text */
  quern_bytes first_bytes; /* what it stands for at the beginning of one */
  bool special;
} quern_token;
/* False for an id that stands for nothing. */
bool quern_tokenizer_token(const quern_tokenizer* tokenizer, int32_t id, quern_token* out);

/* ---- chat templates ---- */

typedef struct quern_template quern_template;

/* Parses. QUERN_INVALID with reason and line. */
quern_status quern_template_parse(quern_bytes source, quern_template** out, quern_buffer* error);
void quern_template_free(quern_template* parsed);

typedef struct quern_chat {
  quern_bytes messages;  /* JSON array of objects */
  quern_bytes tools;     /* JSON array, empty for none */
  quern_bytes variables; /* JSON object, empty for none: bos_token and the like, and the caller's own */
  bool add_generation_prompt;
  bool continue_final_message;
  int64_t now_s; /* what strftime_now sees: local time as seconds since 1970-01-01 00:00 */
} quern_chat;

/* Renders. With a tokenizer, special-token text inside messages and tools is plain text and `ids` is filled; without
 * one, `ids` may be null. QUERN_INVALID with the template's own message for what it refuses. */
quern_status quern_template_render(const quern_template* parsed, const quern_chat* chat,
                                   const quern_tokenizer* tokenizer, quern_buffer* text, quern_ids* ids,
                                   quern_buffer* error);

#ifdef __cplusplus
}
#endif

#endif
