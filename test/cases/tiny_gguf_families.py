#!/usr/bin/env python3
"""The tiny models of tiny_families.py in the other container: one function a GGUF architecture, which says how its files name things and in which order
they keep rows.
"""
import struct

import tiny_tokenizer
from containers import write_gguf
from tiny_families import CONTEXT, EXPERTS, F32, FFN, Family, HEAD, HEADS, HIDDEN, KV, LAYERS, experts, latent

GGUF_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm",
    "self_attn.q_b_proj": "attn_q_b", "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_b_proj": "attn_kv_b", "mlp.gate": "ffn_gate_inp", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def neighbours(rows, head):
    """Half-split rotary rows as files with neighbouring pairs have them."""
    out = []
    for start in range(0, len(rows), head):
        for i in range(head // 2):
            out += [rows[start + i], rows[start + i + head // 2]]
    return out


class GgufFamily(Family):
    """A family of the other container: `keys` go to the metadata, `names` rename tensors, and `reorder` moves rows of some."""

    def __init__(self, name, architecture):
        super().__init__(name)
        self.architecture, self.keys, self.names, self.reorder = architecture, {}, dict(GGUF_NAMES), {}
        self.fused = {}   # file's word -> the words whose rows it holds
        self.extra = {}   # whole name -> values of a vector
        self.flags = ()   # how the file is compiled and run
        self.stacks = {}  # layer's prefix -> number of experts

    def write(self, path):
        a, arch = self.architecture + ".", self.arch
        metadata = {
            "general.architecture": self.architecture, "general.name": self.name, a + "block_count": LAYERS, a + "context_length": CONTEXT,
            a + "embedding_length": HIDDEN, a + "feed_forward_length": FFN, a + "attention.head_count": HEADS,
            a + "attention.head_count_kv": arch["num_kv_heads"], a + "attention.key_length": HEAD, a + "attention.value_length": HEAD,
            a + "rope.freq_base": arch["rope_theta"], a + "attention.layer_norm_rms_epsilon": arch["rms_norm_eps"],
            **{a + k: v for k, v in self.keys.items()}, **tiny_tokenizer.gguf_metadata(),
        }
        rows = [(name, F32, (len(values),), struct.pack(f"<{len(values)}f", *values)) for name, values in self.extra.items()]
        tensors = self.tensors()
        for p in self.each_layer():
            for fused, words in self.fused.items():
                both = sum((tensors.pop(f"{p}{word}.weight") for word in words), [])
                flat = [v for row in both for v in row]
                rows.append((f"blk.{p.split('.')[2]}.{fused}.weight", F32, (len(both), HIDDEN), struct.pack(f"<{len(flat)}f", *flat)))
        for p, count in self.stacks.items():
            for role in ("gate", "up", "down"):
                matrices = [tensors.pop(f"{p}mlp.experts.{e}.{role}_proj.weight") for e in range(count)]
                flat = [v for matrix in matrices for row in matrix for v in row]
                rows.append((f"blk.{p.split('.')[2]}.ffn_{role}_exps.weight", F32, (count, len(matrices[0]), len(matrices[0][0])),
                             struct.pack(f"<{len(flat)}f", *flat)))
        for name, value in tensors.items():
            head, _, kind = name.rpartition(".")
            prefix = ""
            if head.startswith("model.layers."):
                _, _, layer, head = head.split(".", 3)
                prefix = f"blk.{layer}."
            if head in self.reorder:
                value = self.reorder[head](value)
            flat = [v for row in value for v in row] if isinstance(value[0], list) else value
            rows.append((f"{prefix}{self.names[head]}.{kind}", F32, self.shapes[name][0], struct.pack(f"<{len(flat)}f", *flat)))
        write_gguf(path, metadata, rows)

    def experts(self, normalized):
        experts(self, norm_topk_prob=normalized)
        self.keys.update({"expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": 16})
        self.stacks = {p: EXPERTS for p in self.each_layer()}

    def neighbouring_pairs(self):
        for word in ("q", "k"):
            self.reorder[f"self_attn.{word}_proj"] = lambda rows: neighbours(rows, HEAD)

    def behind_only(self):
        """Norms behind the blocks in place of those in front."""
        for p in self.each_layer():
            del self.shapes[p + "input_layernorm.weight"]
            self.vector(p + "post_feedforward_layernorm.weight", HIDDEN)
        self.names["post_attention_layernorm"] = "post_attention_norm"

    def head_norms(self):
        for p in self.each_layer():
            self.vector(p + "self_attn.q_norm.weight", HEAD)
            self.vector(p + "self_attn.k_norm.weight", HEAD)


def mistral3(f):
    f.neighbouring_pairs()
    f.keys.update({"attention.temperature_scale": 0.5, "attention.temperature_length": 4})
    f.arch["x_temperature"] = (4, 0.5)


def smollm3(f):
    f.neighbouring_pairs()
    f.arch["x_still"] = lambda v, local: v % 4 == 3


def exaone4(f):
    f.behind_only()
    f.head_norms()
    f.keys.update({"attention.sliding_window": 4, "attention.sliding_window_pattern": 2})
    f.arch.update(sliding_window=4, sliding_window_pattern=2, x_still=lambda v, local: not local)


def seed_oss(f):
    f.names["post_attention_layernorm"] = "post_attention_norm"
    for p in f.each_layer():
        for word, rows in (("q", HEADS), ("k", KV), ("v", KV)):
            f.vector(p + f"self_attn.{word}_proj.bias", rows * HEAD, 0.0)


def gemma(f):
    f.arch.update(hidden_act="gelu_tanh", embed_multiplier=HIDDEN ** 0.5)
    del f.shapes["lm_head.weight"]


def hunyuan_dense(f):
    f.head_norms()
    f.arch["qk_norm_after_rope"] = True


def internlm2(f):
    f.neighbouring_pairs()


def deepseek2(f):
    """Keys and values expanded from one matrix, as older files have them; rows of a head in the file's order."""
    latent(f, lora=24)
    f.arch["num_kv_heads"] = HEADS

    def heads_of_file(rows):
        out = []
        for start in range(0, len(rows), 16):
            out += rows[start + 6:start + 16] + neighbours(rows[start:start + 6], 6)
        return out
    f.reorder.update({"self_attn.q_b_proj": heads_of_file,
                      "self_attn.kv_a_proj_with_mqa": lambda rows: rows[:20] + neighbours(rows[20:], 6)})
    f.keys.update({"attention.q_lora_rank": 24, "attention.kv_lora_rank": 20, "attention.value_length": 8, "rope.dimension_count": 6,
                   "expert_shared_count": 0})


def granitemoe(f):
    f.experts(normalized=True)
    f.neighbouring_pairs()
    f.keys.update({"embedding_scale": 3.0, "residual_scale": 0.5, "logit_scale": 4.0, "attention.scale": 0.2})
    f.arch.update(embed_multiplier=3.0, x_residual=0.5, logit_multiplier=0.25, x_scale=0.2)


def olmoe(f):
    f.experts(normalized=False)
    f.arch["x_whole_norms"] = True
    for p in f.each_layer():
        f.vector(p + "self_attn.q_norm.weight", HEADS * HEAD)
        f.vector(p + "self_attn.k_norm.weight", KV * HEAD)


def qwen2vl(f):
    seed_oss(f)
    f.names["post_attention_layernorm"] = "ffn_norm"
    f.keys["rope.dimension_sections"] = [2, 3, 3, 0]


def qwen3vl(f):
    f.head_norms()
    f.keys["rope.dimension_sections"] = [2, 3, 3, 0]


def qwen3vlmoe(f):
    qwen3vl(f)
    f.experts(normalized=True)


def phi3(f, context, factors):
    """Two sets of frequency factors: which one applies is a matter of the context that is asked for."""
    f.fused.update({"attn_qkv": [f"self_attn.{w}_proj" for w in "qkv"], "ffn_up": ["mlp.gate_proj", "mlp.up_proj"]})
    f.extra.update({"rope_factors_short.weight": [1.0, 1.25, 1.5, 2.0], "rope_factors_long.weight": [1.0, 4.0, 8.0, 16.0]})
    f.keys.update({"rope.dimension_count": 8, "rope.scaling.original_context_length": 16, "rope.scaling.attn_factor": 1.25})
    f.arch.update(partial_rotary_factor=0.5, x_magnitude=1.25, rope_freq_factors=f.extra[f"rope_factors_{factors}.weight"])
    f.flags = (f"--max-context={context}",)


def phi3_short(f):
    phi3(f, 13, "short")


def phi3_long(f):
    phi3(f, 24, "long")


FAMILIES = {f.__name__: f for f in (mistral3, smollm3, exaone4, seed_oss, gemma, hunyuan_dense, internlm2, deepseek2, granitemoe, olmoe, qwen2vl, qwen3vl,
                                         qwen3vlmoe, phi3_short, phi3_long)}


def family(name):
    out = GgufFamily("gguf " + name, name.replace("hunyuan_dense", "hunyuan-dense").removesuffix("_short").removesuffix("_long"))
    FAMILIES[name](out)
    return out
