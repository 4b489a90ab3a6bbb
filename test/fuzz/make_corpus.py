#!/usr/bin/env python3
"""Makes the seeds of the fuzz targets: small files of every kind that the readers take.

Usage: make_corpus.py DIR [--artifact-seed PROGRAM]     writes DIR/TARGET/NAME
"""
import argparse
import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cases"))

import tiny_tokenizer
from containers import aligned, hash64, write_cmf, write_gguf

ARCH = {"arch_name": "llama", "hidden_size": 32, "intermediate_size": 64, "num_layers": 1, "num_attention_heads": 2, "num_kv_heads": 1,
        "head_dim": 16, "vocab_size": 8, "layer_types": ["FullAttention"], "rms_norm_eps": 1e-6, "max_position_embeddings": 64}


def filler(size):
    """Bytes that every codec can decode: no half is infinite."""
    return bytes((7 * i + 3) & 0xBF for i in range(size))


# (name, code, shape, payload): one tensor for each dtype of the format.
Q1T = filler(36) + struct.pack("<III", 0, 1, 3) + struct.pack("<HHHHHH", 5, 0x3C00, 0, 0xC000, 63, 1)
CMF_TENSORS = [
    ("f32", 0, (3,), filler(12)), ("f16", 1, (2, 64), filler(256)), ("bf16", 2, (2, 64), filler(256)),
    ("q8_row", 3, (2, 64), filler(132)), ("q4_block", 4, (2, 64), filler(72)), ("u8", 6, (8,), filler(8)), ("mix8_4", 5, (8,), filler(8)),
    ("u32", 17, (2,), filler(8)), ("u64", 18, (1,), filler(8)), ("q8_2f", 9, (2, 64), filler(260)),
    ("vbit", 8, (2, 64), bytes([3, 5]) + filler(72)),
    ("vbit_ro", 10, (2, 64), bytes([3, 5]) + filler(8) + struct.pack("<III", 0, 24, 64) + filler(64)),
    ("q4_tiled", 11, (2, 64), filler(72)), ("q1", 12, (2, 64), filler(24)),
    ("q1s", 13, (2, 64), filler(24) + struct.pack("<IIHIH", 2, 5, 0x3C00, 127, 0xC000)), ("q1t", 14, (2, 64), Q1T),
    ("q4tp", 15, (2, 64), filler(76)), ("q2tp", 16, (2, 64), filler(44)),
    ("q1g", 20, (2, 128), filler(36)), ("mxfp4", 21, (2, 64), filler(68)),
]

# (type id, weights a block, bytes a block)
GGUF_TYPES = [(0, 1, 4), (1, 1, 2), (2, 32, 18), (3, 32, 20), (6, 32, 22), (7, 32, 24), (8, 32, 34), (10, 256, 84), (11, 256, 110),
              (12, 256, 144), (13, 256, 176), (14, 256, 210), (15, 256, 292), (16, 256, 66), (17, 256, 74), (18, 256, 98), (19, 256, 50),
              (20, 32, 18), (21, 256, 110), (22, 256, 82), (23, 256, 136), (24, 1, 1), (29, 256, 56), (30, 1, 2), (34, 256, 54),
              (35, 256, 66), (39, 32, 17), (40, 64, 36), (41, 128, 18), (42, 64, 18), (43, 256, 104), (44, 256, 260), (142, 128, 34),
              (143, 32, 16)]

TEMPLATES = {
    "chatml": tiny_tokenizer.TEMPLATE,
    "methods": "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m['role'] == 'user' %}{% set ns.n = ns.n + 1 %}"
               "{{ m.content.strip().split('\\n')[-1] | trim }}{% elif loop.first %}{{ raise_exception('no ' ~ m.role) }}{% else %}"
               "{{- m.content.replace('<think>', '')[::-1] }}{% endif %}{% endfor %}{{ ns.n }}{{ messages[1:] | length }}",
    "tools": "{%- macro show(x) -%}{{ x | tojson(indent=2) }}{%- endmacro %}{% for t in tools or [] %}{{ show(t) }}{% endfor %}"
             "{% for m in messages %}{% if m.tool_calls is defined %}{% for c in m.tool_calls %}{{ c.function.arguments | items | list }}"
             "{% for k, v in c.function.arguments | dictsort %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endif %}{% endfor %}",
    "clock": "{{ strftime_now('%Y-%m-%d %H:%M') }}{{ '%5.2f' % 3.14159 }}{{ 'a,b'.split(',') | join('-') }}{{ {'a': [1, none, true]} | string }}",
    "filters": "{{ messages | map(attribute='role') | unique | list }}{{ messages | selectattr('role', 'equalto', 'user') | list | length }}"
               "{{ [3, 1, 2] | sort(reverse=true) | first }}{{ range(3) | sum }}{{ 'x' * 3 }}{{ (1, 2)[0] // 2 ** 3 % 5 }}{{ 'é' | upper | title }}",
}


def write(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as out:
        out.write(data)


def cmf_header(**more):
    return {"format": "cmf", "version": 2, "quant_type": "F16", "arch": ARCH, **more}


def masks_section():
    """One mask of ARCH's single layer: FFN row, head byte, gate byte."""
    meta = '{"default_task":"t","masks":[{"task_id":1,"name":"t","description":null,"sparsity":0.5,"quality":null,"parent":null,"priority":"Fallback","blob_off":%4d,"blob_len":10}]}'
    blob = aligned(8 + len(meta % 0), 8)
    text = (meta % blob).encode()
    return (struct.pack("<II", 1, len(text)) + text).ljust(blob, b"\0") + filler(10)


def index_section():
    return struct.pack("<II", 1, 0) + struct.pack("<IIII", 1, 0, 2, 2) + struct.pack("<HHBB", 0, 1, 0, 1) + bytes(2)


def append_section(path, slot, data, feature=0):
    """Puts `data` behind the file and names it in the envelope: the form of a tail append."""
    raw = bytearray(open(path, "rb").read())
    struct.pack_into("<QQ", raw, slot, len(raw), len(data))
    features, = struct.unpack_from("<I", raw, 12)
    struct.pack_into("<I", raw, 12, features | feature)
    with open(path, "wb") as out:
        out.write(raw + data)


def clear_hashes(path):
    """A hash of 0 is no hash: changes of the header then reach what lies behind it."""
    raw = bytearray(open(path, "rb").read())
    raw[0x70:0x80] = bytes(16)
    with open(path, "wb") as out:
        out.write(raw)


def make_cmf(folder):
    os.makedirs(folder, exist_ok=True)
    path = lambda name: os.path.join(folder, name)
    write_cmf(path("codecs"), cmf_header(), CMF_TENSORS, b"")
    skill = {"id": "s", "name": "S", "layers": [0]}
    write_cmf(path("text"), cmf_header(tokenizer_config=tiny_tokenizer.cmf_config(), skills=[skill], provenance={"a": [1, 2]}),
              CMF_TENSORS[:2], tiny_tokenizer.tokenizer_json())
    write_cmf(path("masks"), cmf_header(calibration={"temperature": 1.5}, segments=[{"kind": "base", "id": "b", "data_start": 0, "data_end": 12}]),
              CMF_TENSORS[:1], b"")
    append_section(path("masks"), 0x40, masks_section(), feature=2)
    append_section(path("masks"), 0x60, index_section())
    hybrid = dict(ARCH, arch_name="qwen3_next", layer_types=["LinearAttention", "FullAttention"], num_layers=2, yarn={"factor": 4.0, "original_max_position_embeddings": 64},
                  moe={"num_experts": 4, "top_k": 2, "moe_intermediate_size": 32}, linear_core={"kind": "gated_delta_net", "num_heads": 2, "value_head_dim": 16},
                  linear_conv_kernel_dim=4, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=16, linear_value_head_dim=16)
    write_cmf(path("hybrid"), cmf_header(arch=hybrid), CMF_TENSORS[:3], b"")
    write_cmf(path("mla"), cmf_header(arch=dict(ARCH, mla={"kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16},
                                                rope_freq_factors=[1.0] * 8, attention_heads_per_layer=[2])), CMF_TENSORS[:1], b"")
    make_extensions(path("extensions"))
    for name in os.listdir(folder):
        clear_hashes(path(name))


def make_extensions(path):
    """A genome with a skill of each kind and a router, in a model of two layers."""
    hash_text, width = "0123456789abcdef", 4
    arch = dict(ARCH, hidden_size=width, num_layers=2, layer_types=["FullAttention"] * 2,
                moe={"num_experts": 1, "top_k": 1, "moe_intermediate_size": width, "router_resonance": True})
    bound = {"genome_id": "g", "generation": 1, "master_trunk_hash": hash_text}
    selection = {"metric": "mse_unit", "phi_layer": 0, "rank": 1, "mean": "AAAAAAAAAAA=", "basis": "AAAAAAAAAAA="}
    effect = lambda layer, switch: {"first_affected_layer": layer, "switch": switch, "state_bytes_added": 0}
    name = "model.layers.1.mlp.up_proj.weight"
    skills = [
        {"id": "f", "kind": "ffn_replace", "status": "active", "bound": bound, "layers": [1], "selection": selection,
         "state_effect": effect(1, "transparent"), "overrides": [{"name": name, "base_hash": hash_text}]},
        {"id": "e", "kind": "expert_append", "status": "active", "bound": bound, "layers": [1], "state_effect": effect(1, "sequence_start"),
         "experts": {"count": 1, "shell_quantile": 0.9, "rank": 0}},
        {"id": "l", "kind": "lookup", "status": "retired", "bound": bound, "state_effect": effect(0, "transparent"),
         "lookup": {"entries": 2, "keys": 2, "key_norm": "cmf-key-v2", "langs": ["en"], "fields": ["a"], "policy": "key_first"}}]
    router = {"version": 2, "policy": "backbone_gated", "granularity": "request", "margin": 0.1, "skills_hash": hash_text, "base": selection,
              "phi": {"layer": 0, "pool": "span_mean", "norm": "unit", "prefix_ids": [1], "suffix_ids": []}}
    genome = {"id": "g", "generation": 1, "status": "sealed", "trunk_hash": hash_text, "encoding": "q4tp", "master_trunk_hash": hash_text, "moe_experts": 1}
    tensors = [(prefix + name, 0, (4, 4), filler(64)) for prefix in ("", "skill.f.")]
    for expert in ("model.layers.1.mlp.experts.0.", "skill.e.model.layers.1.mlp.experts.1."):
        tensors += [(expert + matrix, 0, (4, 4), filler(64)) for matrix in ("gate_proj.weight", "up_proj.weight", "down_proj.weight")]
        tensors += [(expert + "desc.mu", 0, (4,), filler(16)), (expert + "desc.bias", 0, (1,), bytes(4)), (expert + "desc.shell", 0, (1,), bytes(4))]
    table = "skill.l.lookup."
    tensors += [(table + "keys.hash", 18, (2,), struct.pack("<QQ", 3, 9)), (table + "keys.entry", 17, (2,), struct.pack("<II", 0, 1)),
                (table + "entries.off", 18, (3,), struct.pack("<QQQ", 0, 2, 10)), (table + "text", 6, (10,), b'{}{"a": 1}')]
    lineage = [{"seq": 1, "event": "made"}, {"seq": 4, "event": "sealed"}]
    write_cmf(path, cmf_header(arch=arch, genome=genome, lineage=lineage, skills=skills, router=router), tensors, b'{"model":{}}')
    raw = bytearray(open(path, "rb").read())
    features, = struct.unpack_from("<I", raw, 12)
    struct.pack_into("<I", raw, 12, features | 1 << 9 | 1 << 10 | 1 << 13)
    with open(path, "wb") as out:
        out.write(raw)


def make_gguf(folder):
    os.makedirs(folder, exist_ok=True)
    path = lambda name: os.path.join(folder, name)
    model = {"general.architecture": "llama", "llama.block_count": 1, "llama.embedding_length": 256, "llama.rope.freq_base": 10000.0,
             "llama.attention.head_count": [2, 2], "general.alignment": 32}
    write_gguf(path("text"), {**model, **tiny_tokenizer.gguf_metadata()}, [("token_embd.weight", 1, (2, 4), filler(16))])
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581", "a", "b", "ab", "\u2581ab"]
    kinds = [2, 3, 3] + [6] * 256 + [1] * 5
    for kind in ("llama", "t5", "bert"):
        write_gguf(path(kind), {**model, "tokenizer.ggml.model": kind, "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": pieces,
                                "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.bos_token_id": 1,
                                "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.add_bos_token": True}, [])
    tensors = [(f"t{kind}", kind, (2, max(block, 8)), filler(2 * max(block, 8) // block * size)) for kind, block, size in GGUF_TYPES]
    write_gguf(path("types"), model, tensors)
    # Every scalar type once, and arrays of arrays.
    scalars = [("B", 0, 200), ("b", 1, -3), ("H", 2, 60000), ("h", 3, -300), ("I", 4, 1), ("i", 5, -1), ("f", 6, 0.5), ("?", 7, True), ("Q", 10, 1 << 40),
               ("q", 11, -1), ("d", 12, 0.25)]
    entries = b""
    for code, kind, value in scalars:
        key = f"k{kind}".encode()
        entries += struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + struct.pack("<" + code, value)
    nested = struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 4, 2) + struct.pack("<II", 1, 2)
    entries += struct.pack("<Q", 1) + b"n" + struct.pack("<I", 9) + nested
    write(folder, "values", struct.pack("<4sIQQ", b"GGUF", 3, 0, len(scalars) + 1) + entries)


def make_tokenizers(folder):
    bpe = tiny_tokenizer.tokenizer_json()
    write(folder, "bpe", bpe)
    write(folder, "bpe_text", bpe + b"\0" + "The hat\u2581 the <|im_end|>\n\n 12\xE9".encode())
    base = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "post_processor": None}
    flags = {"single_word": False, "lstrip": True, "rstrip": True, "normalized": False, "special": True}
    added = [{"id": 0, "content": "<unk>", **flags}]
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["\u2581", -1.5], ["a", -2.0], ["\u2581a", -3.0]], "byte_fallback": False}
    write(folder, "unigram", json.dumps({**base, "added_tokens": added, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]},
                                         "pre_tokenizer": metaspace, "decoder": metaspace, "model": unigram}).encode())
    wordpiece = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                 "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "the": 3, "##s": 4}}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}}
    write(folder, "wordpiece", json.dumps({**base, "post_processor": template, "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                                           "strip_accents": None, "lowercase": True}, "pre_tokenizer": {"type": "BertPreTokenizer"},
                                           "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}, "model": wordpiece}).encode())
    split = {"type": "Split", "pattern": {"Regex": "(?<=a)b|c+"}, "behavior": "MergedWithPrevious", "invert": False}
    fallback = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "ignore_merges": True,
                "vocab": {"<unk>": 0, **{f"<0x{b:02X}>": b + 1 for b in range(256)}, "a": 257, "b": 258, "ab": 259}, "merges": [["a", "b"]]}
    write(folder, "fallback", json.dumps({**base, "added_tokens": added, "normalizer": {"type": "Prepend", "prepend": "\u2581"},
                                          "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"}]},
                                          "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                                                       {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}, "model": fallback}).encode())


def make_templates(folder):
    for name, text in TEMPLATES.items():
        write(folder, name, text.encode())
    variables = {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "x": {"y": [1, 2.5, None, "z"]}, "add_generation_prompt": False}
    write(folder, "variables", b"{{ x.y[-1] }}{% for m in messages %}{{ m.content[0].text }}{% endfor %}\0" + json.dumps(variables).encode())


def make_safetensors(folder):
    """Checkpoint folders as safetensors_fuzz.cpp takes them: parts with a zero byte between them."""
    hidden, ffn, heads, head_dim, vocab = 32, 32, 2, 16, 3
    config = {"hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": 1, "num_attention_heads": heads, "num_key_value_heads": 1,
              "head_dim": head_dim, "vocab_size": vocab, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "eos_token_id": [2]}
    layer = {"self_attn.q_proj.weight": (heads * head_dim, hidden), "self_attn.k_proj.weight": (head_dim, hidden), "self_attn.v_proj.weight": (head_dim, hidden),
             "self_attn.o_proj.weight": (hidden, heads * head_dim), "input_layernorm.weight": (hidden,), "post_attention_layernorm.weight": (hidden,),
             "mlp.gate_proj.weight": (ffn, hidden), "mlp.up_proj.weight": (ffn, hidden), "mlp.down_proj.weight": (hidden, ffn)}
    biases = {f"self_attn.{part}_proj.bias": layer[f"self_attn.{part}_proj.weight"][:1] for part in "qkv"}
    norms = {"self_attn.q_norm.weight": (head_dim,), "self_attn.k_norm.weight": (head_dim,)}
    names = {"eos_token": {"content": "b"}, "bos_token": "a", "chat_template": [{"name": "default", "template": "{{ messages }}"}]}
    cases = {
        "llama": ("BF16", {"model_type": "llama", "rope_theta": 1e4, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                  "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}, {}),
        "mistral": ("F16", {"model_type": "mistral", "sliding_window": 16, "tie_word_embeddings": True, "rope_parameters": {"rope_type": "linear", "factor": 2}}, {}),
        "qwen2": ("F32", {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1, "hidden_act": "gelu"}, biases),
        "qwen3": ("BF16", {"model_type": "qwen3", "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 32, "attention_factor": 1.1}}, norms),
    }
    for name, (dtype, more, tensors) in cases.items():
        shapes = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,), **{f"model.layers.0.{n}": s for n, s in {**layer, **tensors}.items()}}
        if not more.get("tie_word_embeddings"):
            shapes["lm_head.weight"] = (vocab, hidden)
        header, at = {"__metadata__": {"format": "pt"}}, 0
        for tensor, shape in shapes.items():
            size = {"F32": 4, "F16": 2, "BF16": 2}[dtype]
            for extent in shape:
                size *= extent
            header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
            at += size
        index = {"metadata": {}, "weight_map": {tensor: "model.safetensors" for tensor in shapes}} if name == "qwen3" else None
        write(folder, name, b"\0".join([json.dumps({**config, **more}).encode(), json.dumps(names).encode(), json.dumps(index).encode() if index else b"",
                                        json.dumps(header).encode(), filler(at)]))
    whole = json.dumps({"a": {"dtype": "F8_E4M3", "shape": [2, 2], "data_offsets": [0, 4]}, "b": {"dtype": "U64", "shape": [], "data_offsets": [4, 12]}}).encode()
    write(folder, "whole", struct.pack("<Q", len(whole)) + whole + filler(12))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--artifact-seed", help="the program that writes the artifact")
    args = parser.parse_args()
    inside = lambda *names: os.path.join(args.folder, *names)
    make_cmf(inside("cmf"))
    make_gguf(inside("gguf"))
    make_safetensors(inside("safetensors"))
    make_tokenizers(inside("tokenizer"))
    make_templates(inside("template"))
    os.makedirs(inside("artifact"), exist_ok=True)
    if args.artifact_seed:
        subprocess.run([args.artifact_seed, inside("artifact", "tiny"), inside("artifact", "targets"), inside("tokenizer", "bpe"), inside("tokenizer", "section")], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
