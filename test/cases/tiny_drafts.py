#!/usr/bin/env python3
"""Tiny models with a block that guesses the token after the next one (MTP), in both containers.

Usage: tiny_drafts.py DIR [--filter REGEX]     writes DIR/NAME.cmf and DIR/NAME.gguf

The guesses are `random` (so is all else), or by construction `right` or `wrong`: the trunk hardly changes the embedding of its
token, and row s(t) of the head is row t of the embedding, so that s(t) follows t; the block then hands on the embedding of the
token that it is given, or that of the token before.
"""
import argparse
import math
import os
import random
import re
import sys
import zlib
from dataclasses import dataclass

import packing
import tiny_mixers
import tiny_models
import tiny_tokenizer
from containers import write_cmf, write_gguf

VOCAB = tiny_tokenizer.VOCAB
TEXTS = 256
EXPERTS, USED, EXPERT_WIDTH = 5, 2, 64
QUIET = 0.02  # of what blocks add to the stream where guesses are not random


@dataclass(frozen=True)
class Case:
    base: tiny_models.Case
    guesses: str = "random"  # random, right, wrong
    experts: bool = False
    own_ends: bool = False   # an embedding and a head of the block's own
    layers: int = 2

    @property
    def name(self):
        return "-".join(filter(None, ["mtp", self.base.arch, self.base.codecs[0], self.guesses, "moe" if self.experts else "",
                                      "own" if self.own_ends else ""])) + "." + self.base.container


def case(arch, container, codecs, shape=tiny_models.BY32, **how):
    return Case(tiny_models.Case(arch, container, codecs, shape), **how)


CASES = [
    case("qwen3", "cmf", ("f16",), guesses="right"),
    case("qwen3", "cmf", ("f16",), guesses="wrong"),
    case("qwen3", "cmf", ("q4tp", "q8_row", "q4_tiled")),
    case("qwen3", "cmf", ("q8_2f",), experts=True),
    case("llama", "cmf", ("q8_row",), shape=tiny_models.ODD, own_ends=True),
    case("qwen3next", "cmf", ("f16",), guesses="right"),
    case("qwen3next", "cmf", ("f16",), guesses="wrong"),
    case("qwen3next", "cmf", ("q4tp",), experts=True),
    case("kda", "cmf", ("f16",)),
    case("vmf_phase_delta", "cmf", ("f16",)),
    case("lfm2", "cmf", ("q4_block",)),
    case("qwen3", "gguf", ("q8_0",)),
    case("qwen3", "gguf", ("f16",), guesses="right"),
    case("llama", "gguf", ("q4_k", "q6_k"), shape=tiny_models.BY256, own_ends=True),
    case("qwen3next", "gguf", ("f16",), guesses="right"),
    case("qwen3next", "gguf", ("q8_0",)),
]

GATED = {"qwen3next"}


def follower(token):
    """s: one cycle through all ids that have a text of their own, and one of the others."""
    return (token + 73) % TEXTS if token < TEXTS else TEXTS + (token + 1 - TEXTS) % (VOCAB - TEXTS)


def draft_matrices(c):
    s = c.base.shape
    p = "model.mtp.layers.0."
    yield "model.mtp.eh_proj.weight", s.hidden, 2 * s.hidden
    yield p + "self_attn.q_proj.weight", s.heads * s.head_dim * (2 if c.base.arch in GATED else 1), s.hidden
    yield p + "self_attn.k_proj.weight", s.kv_heads * s.head_dim, s.hidden
    yield p + "self_attn.v_proj.weight", s.kv_heads * s.head_dim, s.hidden
    yield p + "self_attn.o_proj.weight", s.hidden, s.heads * s.head_dim
    yield p + "mlp.gate_proj.weight", s.ffn, s.hidden
    yield p + "mlp.up_proj.weight", s.ffn, s.hidden
    yield p + "mlp.down_proj.weight", s.hidden, s.ffn
    if c.own_ends:
        yield "model.mtp.embed_tokens.weight", VOCAB, s.hidden
        yield "model.mtp.lm_head.weight", VOCAB, s.hidden


def matrices(c):
    """All of them, the dense blocks replaced by experts where the model has some."""
    for name, rows, cols in [*tiny_models.matrices(c.base), *draft_matrices(c)]:
        role = re.search(r"mlp\.(gate|up|down)_proj\.weight$", name)
        if not role or not c.experts:
            yield name, rows, cols
            continue
        stem = name[:name.index("mlp.")] + "mlp."
        if role[1] == "gate":
            yield stem + "gate.weight", EXPERTS, c.base.shape.hidden
        for e in range(EXPERTS):
            shape = (c.base.shape.hidden, EXPERT_WIDTH) if role[1] == "down" else (EXPERT_WIDTH, c.base.shape.hidden)
            yield f"{stem}experts.{e}.{role[1]}_proj.weight", *shape


def vectors(c):
    s = c.base.shape
    yield from tiny_models.vectors(c.base)
    for name in ("enorm", "hnorm", "norm", "layers.0.input_layernorm", "layers.0.post_attention_layernorm"):
        yield f"model.mtp.{name}.weight", s.hidden, 1.0
    if c.base.arch in tiny_models.HEAD_NORMS:
        yield "model.mtp.layers.0.self_attn.q_norm.weight", s.head_dim, 1.0
        yield "model.mtp.layers.0.self_attn.k_norm.weight", s.head_dim, 1.0


def structured(c, name, rows, cols):
    """The values of a matrix that makes guesses right or wrong, or None where it may be any."""
    hidden = c.base.shape.hidden

    def embedding(token):
        rng = random.Random(f"e{token}")
        return [rng.choice((-1.0, 1.0)) for _ in range(hidden)]

    if name == "model.embed_tokens.weight":
        return [v for token in range(rows) for v in embedding(token)]
    if name == "lm_head.weight":
        table = {follower(token): embedding(token) for token in range(rows)}
        return [v * 0.25 for token in range(rows) for v in table[token]]
    if name == "model.mtp.eh_proj.weight":
        first = 0 if c.guesses == "right" else hidden
        return [1.0 if column == first + row else 0.0 for row in range(rows) for column in range(cols)]
    return None


def tensors(c):
    """As tiny_models.tensors()."""
    table = packing.CMF if c.base.container == "cmf" else packing.GGUF
    stream = lambda name: random.Random(zlib.crc32(f"{c.base.arch} {name}".encode()))
    for turn, (name, rows, cols) in enumerate(matrices(c)):
        codec = c.base.codecs[turn % len(c.base.codecs)]
        if cols % table[codec][1]:
            codec = "f16"
        values = structured(c, name, rows, cols) if c.guesses != "random" else None
        spread = 1.0 if "embed_tokens" in name else cols ** -0.5
        if c.guesses != "random" and re.search(r"(o_proj|out_proj|down_proj)\.weight$", name):
            spread *= QUIET
        payload = b"".join(map(packing.f16, values)) if values else table[codec][2](stream(name), rows, cols, spread)
        yield name, "f16" if values else codec, (rows, cols), payload
    for name, length, mean, *spread in vectors(c):
        rng = stream(name)
        shape = length if isinstance(length, tuple) else (length,)
        plain = c.guesses != "random" and name.endswith("norm.weight")
        values = [1.0 if plain else rng.gauss(mean, *(spread or [0.2])) for _ in range(math.prod(shape))]
        yield name, "f32", shape, packing.struct.pack(f"<{len(values)}f", *values)


def write_as_cmf(c, path):
    s, arch = c.base.shape, c.base.arch
    mixers = [tiny_mixers.of(arch, i) for i in range(s.layers)]
    header = {
        "format": "cmf", "version": 2, "quant_type": "F16",
        "arch": {
            "arch_name": arch, "hidden_size": s.hidden, "intermediate_size": s.ffn, "num_layers": s.layers,
            "num_attention_heads": s.heads, "num_kv_heads": s.kv_heads, "head_dim": s.head_dim, "vocab_size": VOCAB,
            "layer_types": [m.layer_type if m else "FullAttention" for m in mixers], "rms_norm_eps": tiny_models.NORM_EPS,
            "norm_style": "qwen", "rope_theta": tiny_models.ROPE_BASE, "tie_word_embeddings": False,
            "max_position_embeddings": tiny_models.CONTEXT, **(mixers[0].arch if mixers[0] else {}),
            "mtp": {"num_layers": 1, "share_lm_head": not c.own_ends, "share_embed": not c.own_ends},
        },
        "tokenizer_config": tiny_tokenizer.cmf_config(),
    }
    if c.experts:
        header["arch"]["moe"] = {"num_experts": EXPERTS, "top_k": USED, "moe_intermediate_size": EXPERT_WIDTH, "norm_topk_prob": True}
    rows = [(name, packing.CMF[codec][0], shape, payload) for name, codec, shape, payload in tensors(c)]
    write_cmf(path, header, sorted(rows), tiny_tokenizer.tokenizer_json())


NEXTN = {"eh_proj": "eh_proj", "enorm": "enorm", "hnorm": "hnorm", "norm": "shared_head_norm", "embed_tokens": "embed_tokens",
         "lm_head": "shared_head_head"}


def gguf_name(c, name, own):
    block = c.base.shape.layers
    if inner := re.fullmatch(r"model\.mtp\.layers\.0\.(.+)", name):
        return tiny_models.gguf_name(f"model.layers.{block}.{inner[1]}", own)
    if outer := re.fullmatch(r"model\.mtp\.(\w+)\.weight", name):
        return f"blk.{block}.nextn.{NEXTN[outer[1]]}.weight"
    return tiny_models.gguf_name(name, own)


def write_as_gguf(c, path):
    s, arch = c.base.shape, c.base.arch
    a = arch + "."
    metadata = {
        "general.architecture": arch, "general.name": c.name, "general.quantization_version": 2,
        a + "block_count": s.layers + 1, a + "nextn_predict_layers": 1, a + "context_length": tiny_models.CONTEXT,
        a + "embedding_length": s.hidden, a + "feed_forward_length": [s.ffn] * (s.layers + 1), a + "attention.head_count": s.heads,
        a + "attention.head_count_kv": s.kv_heads, a + "attention.key_length": s.head_dim,
        a + "attention.value_length": s.head_dim, a + "rope.dimension_count": s.head_dim, a + "rope.freq_base": tiny_models.ROPE_BASE,
        a + "attention.layer_norm_rms_epsilon": tiny_models.NORM_EPS, **tiny_tokenizer.gguf_metadata(),
    }
    mixer = tiny_mixers.of(arch, 0)
    if mixer:
        metadata |= {a + key: value for key, value in mixer.gguf_keys.items()}
    rows = []
    for name, codec, shape, payload in mixer.to_gguf(tensors(c)) if mixer else tensors(c):
        if arch == "llama" and re.search(r"self_attn\.[qk]_proj\.", name):
            payload = tiny_models.interleave_heads(payload, shape[0], s.head_dim)
        rows.append((gguf_name(c, name, mixer.gguf_names if mixer else {}), packing.GGUF[codec][0], shape, payload))
    write_gguf(path, metadata, rows)


def write(c, folder):
    path = os.path.join(folder, c.name)
    (write_as_cmf if c.base.container == "cmf" else write_as_gguf)(c, path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--filter", default="")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    for c in CASES:
        if re.search(args.filter, c.name):
            print(write(c, args.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
