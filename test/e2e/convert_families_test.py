#!/usr/bin/env python3
"""cortiq-convert on every family that CMF describes. Checkpoints are made from the CMF fixtures, in the names, fusions and orders that their
families use, and have to become the same tensors and header again. GGUF fixtures have to give the logits of their own, where this build runs both.
"""
import array
import glob
import json
import math
import os
import struct
import sys

import harness
from convert_test import Convert, load, write_json, write_safetensors

# What the reference of the CMF file may differ by from that of the GGUF file, relative to the largest logit: 0 unless the two containers
# hold another number. qwen35: a decay and its logarithm. Granite: a factor on each block's output, which CMF has in the weights.
GGUF_BOUNDS = {"qwen35": 2e-6, "granite": 2e-6}
HOMELESS = {"gpt-oss": "biases", "olmo2": "norm", "starcoder2": "norms with biases", "deepseek2": "expert_group_count"}
LOGIT_TOLERANCE = 5e-4  # of the fixtures, absolute
SKIPPED_FIELDS = {"mtp"}


class CmfFile:
    """Header and directory, read by other code than ours."""

    def __init__(self, path):
        self.path = path
        self.raw = open(path, "rb").read()
        header, header_size, directory, _, data, _ = struct.unpack_from("<6Q", self.raw, 0x10)
        self.header = json.loads(self.raw[header:header + header_size])
        self.tensors = {}
        count, pool = struct.unpack_from("<2Q", self.raw, directory)
        for i in range(count):
            at = directory + 16 + 56 * i
            name_at, name_size, dtype, dims = struct.unpack_from("<IHBB", self.raw, at)
            shape = struct.unpack_from(f"<{dims}I", self.raw, at + 8)
            offset, size = struct.unpack_from("<2Q", self.raw, at + 32)
            name = self.raw[directory + pool + name_at:directory + pool + name_at + name_size].decode()
            self.tensors[name] = (dtype, shape, data + offset, size)

    def arch(self):
        return {k: v for k, v in self.header["arch"].items() if v is not None and k not in SKIPPED_FIELDS}

    def f32(self, name):
        dtype, _, offset, size = self.tensors[name]
        assert dtype == 0, name
        return self.raw[offset:offset + size]


class Weights:
    """Decoded tensors of one model as lists of rows, each a bytes object of f32."""

    def __init__(self, convert, fixture):
        self.rows, self.shapes = {}, {}
        out = convert.scratch.path("tensor.f32")
        for name, (_, shape, _, _) in fixture.tensors.items():
            result = harness.run([os.path.join(convert.args.bin, "cortiq-inspect"), fixture.path, "--tensor", name, "-o", out])
            why_not = harness.why_not_success(result)
            if why_not:
                raise RuntimeError(why_not)
            raw = open(out, "rb").read()
            os.remove(out)
            size = 4 * (shape[-1] if len(shape) > 1 else 1)
            self.rows[name] = [raw[i:i + size] for i in range(0, len(raw), size)]
            self.shapes[name] = tuple(shape)

    def pop(self, name):
        return self.rows.pop(name), self.shapes.pop(name)

    def put(self, name, rows, shape):
        self.rows[name], self.shapes[name] = rows, tuple(shape)

    def rename(self, *pairs):
        for name in list(self.rows):
            new = name
            for old, word in pairs:
                new = new.replace(old, word)
            if new != name:
                self.put(new, *self.pop(name))

    def join(self, names, new, shape=None):
        """Rows of several tensors, one after the other."""
        rows, width = [], None
        for name in names:
            part, part_shape = self.pop(name)
            rows, width = rows + part, part_shape[-1]
        self.put(new, rows, shape or (len(rows), width))


def to_neighbours(rows, size):
    """Heads of `size` rows: halves (i, i + size / 2) to neighbours (2i, 2i + 1)."""
    out = []
    for at in range(0, len(rows), size):
        head = rows[at:at + size]
        out += [head[i // 2 + i % 2 * (size // 2)] for i in range(size)]
    return out


def fuse(w, arch):
    for i in range(arch["num_layers"]):
        a, m = f"model.layers.{i}.self_attn.", f"model.layers.{i}.mlp."
        w.join([a + p + "_proj.weight" for p in "qkv"], a + "qkv_proj.weight")
        w.join([m + "gate_proj.weight", m + "up_proj.weight"], m + "gate_up_proj.weight")


def interleave_latent(w, arch):
    rope, nope, rank = (arch["mla"][k] for k in ("qk_rope_head_dim", "qk_nope_head_dim", "kv_lora_rank"))
    for name in list(w.rows):
        if name.endswith(("self_attn.q_proj.weight", "q_b_proj.weight")):
            rows, shape = w.pop(name)
            heads = [rows[at:at + rope + nope] for at in range(0, len(rows), rope + nope)]
            w.put(name, [row for head in heads for row in head[rope:] + to_neighbours(head[:rope], rope)], shape)
        elif name.endswith("kv_a_proj_with_mqa.weight"):
            rows, shape = w.pop(name)
            w.put(name, rows[:rank] + to_neighbours(rows[rank:], rope), shape)
    w.rename((".mlp.shared_expert.", ".mlp.shared_experts."))


def lfm_names(w, arch):
    w.rename((".input_layernorm.", ".operator_norm."), (".post_attention_layernorm.", ".ffn_norm."), (".mlp.", ".feed_forward."),
             ("self_attn.o_proj", "self_attn.out_proj"), ("self_attn.q_norm", "self_attn.q_layernorm"),
             ("self_attn.k_norm", "self_attn.k_layernorm"), (".short_conv.", ".conv."), ("model.norm.", "model.embedding_norm."),
             (".gate_proj.", ".w1."), (".up_proj.", ".w3."), (".down_proj.", ".w2."))


def group_delta(w, arch):
    """Queries, keys, values and gates of each key head together, and its b and a."""
    nk, dk, nv, dv = (arch["linear_" + k] for k in ("num_key_heads", "key_head_dim", "num_value_heads", "value_head_dim"))
    turns = nv // nk
    for i, kind in enumerate(arch["layer_types"]):
        if kind != "LinearAttention":
            continue
        p = f"model.layers.{i}.linear_attn."
        (qkv, shape), (z, _), (a, _), (b, _) = (w.pop(p + f"in_proj_{s}.weight") for s in ("qkv", "z", "a", "b"))
        q, k, v = qkv[:nk * dk], qkv[nk * dk:2 * nk * dk], qkv[2 * nk * dk:]
        fused, gates = [], []
        for g in range(nk):
            heads = slice(g * turns * dv, (g + 1) * turns * dv)
            fused += q[g * dk:(g + 1) * dk] + k[g * dk:(g + 1) * dk] + v[heads] + z[heads]
            gates += b[g * turns:(g + 1) * turns] + a[g * turns:(g + 1) * turns]
        w.put(p + "in_proj_qkvz.weight", fused, (len(fused), shape[-1]))
        w.put(p + "in_proj_ba.weight", gates, (len(gates), shape[-1]))


def stack_experts(w, arch):
    count, width, hidden = arch["moe"]["num_experts"], arch["moe"]["moe_intermediate_size"], arch["hidden_size"]
    for i in range(arch["num_layers"]):
        p = f"model.layers.{i}.mlp.experts."
        w.join([p + f"{e}.{s}_proj.weight" for e in range(count) for s in ("gate", "up")], p + "gate_up_proj", (count, 2 * width, hidden))
        w.join([p + f"{e}.down_proj.weight" for e in range(count)], p + "down_proj", (count, hidden, width))
    w.rename(("model.", "model.language_model."))


def hunyuan_names(w, arch):
    w.rename((".q_norm.", ".query_layernorm."), (".k_norm.", ".key_layernorm."))


def common_config(arch, model_type):
    config = {"model_type": model_type, "hidden_size": arch["hidden_size"], "intermediate_size": arch["intermediate_size"],
              "num_hidden_layers": arch["num_layers"], "num_attention_heads": arch["num_attention_heads"],
              "num_key_value_heads": arch["num_kv_heads"], "head_dim": arch["head_dim"], "vocab_size": arch["vocab_size"],
              "rms_norm_eps": arch["rms_norm_eps"], "rope_theta": arch["rope_theta"],
              "max_position_embeddings": arch["max_position_embeddings"], "tie_word_embeddings": arch["tie_word_embeddings"]}
    for field in ("query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping", "sliding_window", "rope_local_base_freq"):
        if field in arch:
            config[field] = arch[field]
    kinds = {"FullAttention": "full_attention", "SlidingAttention": "sliding_attention", "ShortConv": "conv", "LinearAttention": "linear_attention"}
    config["layer_types"] = [kinds[kind] for kind in arch["layer_types"]]
    if arch["partial_rotary_factor"] != 1:
        config["partial_rotary_factor"] = arch["partial_rotary_factor"]
    for field in (k for k in arch if k.startswith("linear_") and k != "linear_core"):
        config[field] = arch[field]
    return config


def qwen_experts(arch):
    moe = arch["moe"]
    return {"num_experts": moe["num_experts"], "num_experts_per_tok": moe["top_k"], "moe_intermediate_size": moe["moe_intermediate_size"],
            "norm_topk_prob": moe["norm_topk_prob"], "shared_expert_intermediate_size": moe.get("shared_expert_intermediate_size", 0)}


def deepseek(arch):
    mla, moe = arch["mla"], arch["moe"]
    return dict(mla, n_routed_experts=moe["num_experts"], num_experts_per_tok=moe["top_k"], moe_intermediate_size=moe["moe_intermediate_size"],
                n_shared_experts=moe["shared_expert_intermediate_size"] // moe["moe_intermediate_size"], norm_topk_prob=moe["norm_topk_prob"],
                routed_scaling_factor=moe.get("routed_scaling_factor", 1), first_k_dense_replace=1, topk_method="greedy",
                scoring_func="sigmoid" if moe.get("router_sigmoid") else "softmax")


def lfm(arch):
    moe = arch.get("moe")
    experts = {} if not moe else {"num_experts": moe["num_experts"], "num_experts_per_tok": moe["top_k"], "num_dense_layers": 1,
                                  "moe_intermediate_size": moe["moe_intermediate_size"], "norm_topk_prob": True}
    return dict(experts, norm_eps=arch["rms_norm_eps"], conv_L_cache=arch["linear_conv_kernel_dim"])


def granite(arch):
    return {"embedding_multiplier": arch["embed_multiplier"], "attention_multiplier": 1 / math.sqrt(arch["query_pre_attn_scalar"]),
            "logits_scaling": 1 / arch["logit_multiplier"], "query_pre_attn_scalar": None}


# fixture -> (model_type, further fields of its config.json, what its checkpoint calls or orders otherwise)
CHECKPOINTS = {
    "deepseek_v2-q4t": ("deepseek_v2", deepseek, interleave_latent),
    "deepseek_v3-f16": ("deepseek_v3", deepseek, interleave_latent),
    "gemma2-q8": ("gemma2", lambda arch: {"hidden_activation": "gelu_pytorch_tanh"}, None),
    "gemma3-q4tp": ("gemma3_text", lambda arch: {"hidden_activation": "gelu_pytorch_tanh"}, None),
    "granite-q4tp": ("granite", granite, None),
    "hunyuan-q8_2f": ("hunyuan_v1_dense", lambda arch: {
        "rope_theta": 10000.0, "rope_scaling": {"type": "dynamic", "alpha": 1000.0}}, hunyuan_names),
    "lfm2-q8": ("lfm2", lfm, lfm_names),
    "lfm2_moe-q4tp": ("lfm2_moe", lfm, lfm_names),
    "mistral-q4": ("mistral", None, None),
    "phi3-q4tp": ("phi3", None, fuse),
    "qwen2-q8_2f": ("qwen2", None, None),
    "qwen2_moe-q8": ("qwen2_moe", qwen_experts, None),
    "qwen3_5-q4tp": ("qwen3_5_text", None, None),
    "qwen3_5_moe-q4tp": ("qwen3_5_moe_text", qwen_experts, stack_experts),
    "qwen3_moe-f16": ("qwen3_moe", qwen_experts, None),
    "qwen3_next-q8_2f": ("qwen3_next", qwen_experts, group_delta),
}
IGNORED = {"sliding_window_pattern"}  # means nothing beside layer_types
DEFAULTS = {"attention_sink": False, "hidden_act": "silu"}


def write_folder(convert, label, fixture, weights, model_type, more, change, vocab):
    arch = fixture.arch()
    config = dict(common_config(arch, model_type), **(more(arch) if more else {}))
    if "moe" in arch:
        config["mlp_only_layers"] = [i for i in range(arch["num_layers"]) if f"model.layers.{i}.mlp.gate.weight" not in weights.rows]
    if change:
        change(weights, arch)
    if any(name.startswith("model.language_model.") for name in weights.rows):  # a model of more than text
        config = {"model_type": "wrapper", "text_config": config}
        weights.put("model.visual.patch_embed.weight", [b"\0" * 4], (1,))
    folder = convert.scratch.path("folder-" + label)
    os.makedirs(folder)
    write_json(folder, "config.json", config)
    with open(os.path.join(folder, "tokenizer.json"), "wb") as out:
        out.write(vocab)
    write_safetensors(os.path.join(folder, "model.safetensors"),
                      [(name, "f32", weights.shapes[name], b"".join(rows)) for name, rows in weights.rows.items()])
    return folder


def vocab_of(path):
    raw = open(path, "rb").read()
    offset, size = struct.unpack_from("<2Q", raw, 0x50)
    return raw[offset:offset + size]


def near(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-6)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[k], b[k]) for k in a)
    return a == b


def differing_fields(want, got):
    want, got = dict(DEFAULTS, **want), dict(DEFAULTS, **got)
    return [f"{k}: {want.get(k)} became {got.get(k)}" for k in sorted((want.keys() | got.keys()) - IGNORED) if not near(want.get(k), got.get(k))]


def check_checkpoint(tally, convert, name, row):
    path = os.path.join(convert.args.fixtures, "models", name + ".cmf")
    fixture = CmfFile(path)
    weights = Weights(convert, fixture)
    # The fixture keeps this bias under a name that its reader does not know (its read-me says so).
    wanted = {n.replace("mlp.gate.e_score_correction_bias", "mlp.expert_bias"): b"".join(rows) for n, rows in weights.rows.items()}
    folder = write_folder(convert, name, fixture, weights, *row, vocab_of(path))
    _, out = convert.must(folder)
    made = CmfFile(out)
    differs = differing_fields(fixture.arch(), made.arch())
    tally.check(f"{name}: header", "; ".join(differs[:3]) or None)
    wrong = [n for n in sorted(wanted.keys() | made.tensors.keys()) if n not in wanted or n not in made.tensors or made.f32(n) != wanted[n]]
    tally.check(f"{name}: {len(wanted)} tensors", f"missing, invented or changed: {wrong[:4]}" if wrong else None)
    tally.check(f"{name}: keeps its name", None if made.header["provenance"]["source_model"] == "folder-" + name else "it does not")


def check_checkpoints(tally, convert):
    for name, row in CHECKPOINTS.items():
        check_checkpoint(tally, convert, name, row)


def check_gguf_families(tally, convert):
    for path in sorted(glob.glob(os.path.join(convert.args.fixtures, "models-gguf", "*.expect.json"))):
        expect = json.load(open(path))
        name = os.path.basename(path)[:-len(".expect.json")]
        source = os.path.join(os.path.dirname(path), expect["files"][0] if "files" in expect else name + ".gguf")
        family = expect["family"]
        if family in HOMELESS:
            result, out = convert.call(source, "--quant", "f32")
            named = None if HOMELESS[family] in result.stderr else f"the reason is not named: {result.stderr.strip()}"
            tally.check(f"{name}: refused", harness.why_not_refusal(result, out) or named)
            continue
        summary, out = convert.must(source, "--quant", "f32")
        tally.check(f"{name}: keeps its name", None if CmfFile(out).header["provenance"]["source_model"] else "it does not")
        check_gguf_logits(tally, convert, name, family, expect, source, out)


def logits_or_skip(tally, convert, label, model, tokens):
    try:
        values = array.array("f", convert.logits(model, tokens))
    except RuntimeError as error:
        return tally.skip(f"{label}: this build does not run it: {error}")
    return values


def check_gguf_logits(tally, convert, name, family, expect, source, out):
    got = logits_or_skip(tally, convert, f"{name} as CMF", out, expect["prompt_ids"])
    if not got:
        return
    vocab = len(got) // len(expect["prompt_ids"])
    file = load(os.path.join(convert.args.fixtures, "models-gguf", name + ".logits.f32.bin"))
    off = 0.0
    for row, position in enumerate(expect["logits_file"]["positions"]):
        off = max([off] + [abs(x - y) for x, y in zip(got[position * vocab:(position + 1) * vocab], file[row * vocab:(row + 1) * vocab])])
    tally.check(f"{name}: the fixture's logits", None if off <= LOGIT_TOLERANCE else f"{off:.1e} away")
    want = logits_or_skip(tally, convert, name, source, expect["prompt_ids"])
    if not want:
        return
    distance = max(abs(x - y) for x, y in zip(got, want)) / max(abs(v) for v in want)
    bound = GGUF_BOUNDS.get(family, 0)
    tally.check(f"{name}: same logits", None if len(got) == len(want) and distance <= bound else f"differ by {distance:.1e} of the largest")


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-convert", "cortiq-inspect")
    tally = harness.Tally()
    if not args.fixtures or not os.path.exists(os.path.join(args.fixtures, "models")):
        tally.skip("CORTIQ_FIXTURES does not name a folder with models and models-gguf")
        return tally.finish()
    for check in (check_checkpoints, check_gguf_families):
        with harness.Scratch() as scratch:
            try:
                check(tally, Convert(args, scratch))
            except (RuntimeError, OSError, ValueError) as error:
                tally.check(check.__name__, str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
