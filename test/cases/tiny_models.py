#!/usr/bin/env python3
"""Makes tiny models with random weights, so that every operation and every codec runs end to end without any other file.

Usage: tiny_models.py DIR [--filter REGEX]     writes DIR/NAME.cmf and DIR/NAME.gguf
       tiny_models.py --list                   prints the names

Every case is one row of CASES. The same (name, seed) gives the same bytes on every machine.
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
import tiny_tokenizer
from containers import write_cmf, write_gguf

ROPE_BASE = 10000.0
NORM_EPS = 1e-5
CONTEXT = 256


@dataclass(frozen=True)
class Shape:
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    layers: int = 2


# Columns of a matrix are `hidden`, `ffn` or heads * head_dim: each shape's three are what its codecs permit, and no more even than that.
ODD = Shape(hidden=67, ffn=101, heads=6, kv_heads=3, head_dim=10)
BY32 = Shape(hidden=96, ffn=160, heads=6, kv_heads=2, head_dim=16)
BY256 = Shape(hidden=256, ffn=512, heads=8, kv_heads=2, head_dim=32)


@dataclass(frozen=True)
class Case:
    arch: str          # llama, qwen2, qwen3, or a name of tiny_mixers
    container: str     # cmf, gguf
    codecs: tuple      # matrices take them in turn
    shape: Shape
    tied: bool = False
    label: str = ""

    @property
    def name(self):
        return f"{self.arch}-{self.label or self.codecs[0]}.{self.container}"


CASES = [
    # One row a codec; the architecture changes from row to row.
    Case("llama", "cmf", ("f32",), ODD),
    Case("qwen3", "cmf", ("f16",), ODD),
    Case("llama", "cmf", ("bf16",), ODD, tied=True),
    Case("qwen2", "cmf", ("q8_row",), ODD),
    Case("llama", "cmf", ("q8_2f",), ODD),
    Case("qwen3", "cmf", ("q4_block",), ODD),
    Case("qwen2", "cmf", ("q4_tiled",), BY32),
    Case("llama", "cmf", ("q4tp",), BY32),
    Case("qwen2", "cmf", ("blr",), BY32, tied=True),
    Case("llama", "gguf", ("f32",), ODD),
    Case("qwen3", "gguf", ("f16",), ODD, tied=True),
    Case("qwen3", "gguf", ("bf16",), ODD),
    Case("llama", "gguf", ("q4_0",), BY32),
    Case("qwen2", "gguf", ("q4_1",), BY32),
    Case("qwen3", "gguf", ("q5_0",), BY32),
    Case("llama", "gguf", ("q5_1",), BY32, tied=True),
    Case("qwen2", "gguf", ("q8_0",), BY32),
    Case("llama", "gguf", ("q4_k",), BY256),
    Case("qwen2", "gguf", ("q5_k",), BY256),
    Case("qwen3", "gguf", ("q6_k",), BY256),
    Case("llama", "gguf", ("iq4_nl",), BY32),
    # Parts of one fused product in different codecs.
    Case("qwen3", "cmf", ("q4tp", "q8_row", "f16", "q4_tiled", "q8_2f", "q4_block", "bf16"), BY32, label="mixed"),
    Case("llama", "gguf", ("q4_k", "q6_k", "q8_0", "q5_k", "q4_1", "f16", "iq4_nl"), BY256, label="mixed"),
    # Layers with recurrent state.
    Case("lfm2", "cmf", ("f32",), ODD),
    Case("qwen3next", "cmf", ("q4tp",), BY32),
    Case("gated_delta", "cmf", ("f16",), ODD),
    Case("kda", "cmf", ("f32",), ODD),
    Case("kda_bounded", "cmf", ("f16",), ODD),
    Case("vmf_phase", "cmf", ("f32",), ODD),
    Case("vmf_phase_delta", "cmf", ("f16",), ODD),
    # The same model in both containers: the logits have to be equal.
    Case("llama", "cmf", ("f16",), BY32, label="twin"),
    Case("llama", "gguf", ("f16",), BY32, label="twin"),
    Case("qwen2", "cmf", ("f16",), BY32, label="twin"),
    Case("qwen2", "gguf", ("f16",), BY32, label="twin"),
    Case("lfm2", "cmf", ("f16",), BY32, label="twin"),
    Case("lfm2", "gguf", ("f16",), BY32, label="twin"),
    Case("qwen3next", "cmf", ("f16",), BY32, label="twin"),
    Case("qwen3next", "gguf", ("f16",), BY32, label="twin"),
]

HEAD_NORMS = {"qwen3", "lfm2", "qwen3next"}
GATED_QUERIES = {"qwen3next"}  # each head's queries, then a gate as wide

GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def matrices(case):
    """(canonical name, rows, cols) of every matrix."""
    s = case.shape
    yield "model.embed_tokens.weight", tiny_tokenizer.VOCAB, s.hidden
    for i in range(s.layers):
        p = f"model.layers.{i}."
        if mixer := tiny_mixers.of(case.arch, i):
            for suffix, rows, cols in mixer.matrices(s.hidden):
                yield p + suffix, rows, cols
        else:
            yield p + "self_attn.q_proj.weight", s.heads * s.head_dim * (2 if case.arch in GATED_QUERIES else 1), s.hidden
            yield p + "self_attn.k_proj.weight", s.kv_heads * s.head_dim, s.hidden
            yield p + "self_attn.v_proj.weight", s.kv_heads * s.head_dim, s.hidden
            yield p + "self_attn.o_proj.weight", s.hidden, s.heads * s.head_dim
        yield p + "mlp.gate_proj.weight", s.ffn, s.hidden
        yield p + "mlp.up_proj.weight", s.ffn, s.hidden
        yield p + "mlp.down_proj.weight", s.hidden, s.ffn
    if not case.tied:
        yield "lm_head.weight", tiny_tokenizer.VOCAB, s.hidden


def vectors(case):
    """(canonical name, length or shape, mean, sometimes a spread) of every norm, bias and list of taps."""
    s = case.shape
    for i in range(s.layers):
        p = f"model.layers.{i}."
        yield p + "input_layernorm.weight", s.hidden, 1.0
        yield p + "post_attention_layernorm.weight", s.hidden, 1.0
        if mixer := tiny_mixers.of(case.arch, i):
            for suffix, length, *numbers in mixer.vectors(s.hidden):
                yield p + suffix, length, *numbers
        if case.arch == "qwen2":
            yield p + "self_attn.q_proj.bias", s.heads * s.head_dim, 0.0
            yield p + "self_attn.k_proj.bias", s.kv_heads * s.head_dim, 0.0
            yield p + "self_attn.v_proj.bias", s.kv_heads * s.head_dim, 0.0
        if case.arch in HEAD_NORMS and not tiny_mixers.of(case.arch, i):
            yield p + "self_attn.q_norm.weight", s.head_dim, 1.0
            yield p + "self_attn.k_norm.weight", s.head_dim, 1.0
    yield "model.norm.weight", s.hidden, 1.0


def tensors(case):
    """(canonical name, codec, shape, payload); each tensor has its own random stream, so a twin in the other container has the same."""
    table = packing.CMF if case.container == "cmf" else packing.GGUF
    stream = lambda name: random.Random(zlib.crc32(f"{case.arch} {name}".encode()))
    for turn, (name, rows, cols) in enumerate(matrices(case)):
        # A fused group's parts have to differ: the turn counts matrices, and groups are shorter than the list of codecs.
        codec = case.codecs[turn % len(case.codecs)]
        spread = 1.0 if name.startswith("model.embed") else cols ** -0.5
        yield name, codec, (rows, cols), table[codec][2](stream(name), rows, cols, spread)
    for name, length, mean, *spread in vectors(case):
        rng = stream(name)
        shape = length if isinstance(length, tuple) else (length,)
        values = [rng.gauss(mean, *(spread or [0.2])) for _ in range(math.prod(shape))]
        yield name, "f32", shape, packing.struct.pack(f"<{len(values)}f", *values)


def gguf_name(name, own):
    """The file's name of a canonical one; `own` are the words of the architecture."""
    parts = re.fullmatch(r"(?:model\.layers\.(\d+)\.)?(.+)\.(weight|bias)", name)
    if name.startswith("blk."):
        return name
    layer, word, kind = parts.groups()
    return (f"blk.{layer}." if layer else "") + f"{({**GGUF_NAMES, **own})[word]}.{kind}"


def interleave_heads(payload, rows, head_dim):
    """Half-split rotary rows to neighbouring pairs, as files of the llama architecture have them: row s*d/2+i goes to 2i+s."""
    size = len(payload) // rows
    out = []
    for row in range(rows):
        head, at = divmod(row, head_dim)
        source = head * head_dim + at % 2 * (head_dim // 2) + at // 2
        out.append(payload[source * size:(source + 1) * size])
    return b"".join(out)


def write_as_cmf(case, path):
    s = case.shape
    header = {
        "format": "cmf", "version": 2, "quant_type": "F16",
        "arch": {
            "arch_name": case.arch, "hidden_size": s.hidden, "intermediate_size": s.ffn, "num_layers": s.layers,
            "num_attention_heads": s.heads, "num_kv_heads": s.kv_heads, "head_dim": s.head_dim,
            "vocab_size": tiny_tokenizer.VOCAB, "layer_types": [m.layer_type if (m := tiny_mixers.of(case.arch, i)) else "FullAttention" for i in range(s.layers)], "rms_norm_eps": NORM_EPS,
            "norm_style": "qwen", "rope_theta": ROPE_BASE, "tie_word_embeddings": case.tied,
            "max_position_embeddings": CONTEXT, **(m.arch if (m := tiny_mixers.of(case.arch, 0)) else {}),
        },
        "tokenizer_config": tiny_tokenizer.cmf_config(),
    }
    rows = [(name, packing.CMF[codec][0], shape, payload) for name, codec, shape, payload in tensors(case)]
    write_cmf(path, header, sorted(rows), tiny_tokenizer.tokenizer_json())


def write_as_gguf(case, path):
    s = case.shape
    a = case.arch + "."
    metadata = {
        "general.architecture": case.arch, "general.name": case.name, "general.quantization_version": 2,
        a + "block_count": s.layers, a + "context_length": CONTEXT, a + "embedding_length": s.hidden,
        a + "feed_forward_length": s.ffn, a + "attention.head_count": s.heads, a + "attention.head_count_kv": s.kv_heads,
        a + "attention.key_length": s.head_dim, a + "attention.value_length": s.head_dim,
        a + "rope.dimension_count": s.head_dim, a + "rope.freq_base": ROPE_BASE,
        a + "attention.layer_norm_rms_epsilon": NORM_EPS,
        **tiny_tokenizer.gguf_metadata(),
    }
    mixer = tiny_mixers.of(case.arch, 0)
    if mixer:
        metadata |= {a + key: value for key, value in mixer.gguf_keys.items()}
    if case.arch == "lfm2":  # layers without key/value heads have the convolution
        metadata[a + "attention.head_count_kv"] = [0] + [s.kv_heads] * (s.layers - 1)
    rows = []
    for name, codec, shape, payload in mixer.to_gguf(tensors(case)) if mixer else tensors(case):
        if case.arch == "llama" and re.search(r"self_attn\.[qk]_proj\.", name):
            payload = interleave_heads(payload, shape[0], s.head_dim)
        rows.append((gguf_name(name, mixer.gguf_names if mixer else {}), packing.GGUF[codec][0], shape, payload))
    write_gguf(path, metadata, rows)


def write(case, folder):
    path = os.path.join(folder, case.name)
    (write_as_cmf if case.container == "cmf" else write_as_gguf)(case, path)
    return path


def twins():
    """Pairs of cases that are one model in two containers."""
    by_arch = {}
    for case in CASES:
        if case.label == "twin":
            by_arch.setdefault(case.arch, []).append(case)
    return [tuple(pair) for pair in by_arch.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--filter", default="")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    chosen = [case for case in CASES if re.search(args.filter, case.name)]
    if args.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not args.folder:
        parser.error("name the folder to write to")
    os.makedirs(args.folder, exist_ok=True)
    for case in chosen:
        print(write(case, args.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
