#!/usr/bin/env python3
"""Tiny models of the families that have no other file: one row a thing that a header or a tensor can ask for.

Every family is one function that changes a plain model: its header and its tensors, in f32 unless a codec is named. The same name gives the same bytes on
every machine.
"""
import json
import random
import struct
import zlib

import low_bits
import tiny_mixers
import tiny_tokenizer
from containers import aligned, append_cmf_section, write_cmf

HIDDEN, FFN, HEADS, KV, HEAD, LAYERS = 32, 48, 4, 2, 16, 4
VOCAB = tiny_tokenizer.VOCAB
CONTEXT = 128
F32 = 0  # in both containers


class Family:
    """`arch` as the header has it, and `shapes`: tensor name -> (shape, mean, spread)."""

    def __init__(self, name):
        self.features, self.header = 1, {}
        self.codecs = {}  # name -> a type of low_bits
        self.masks = []   # (name, bytes of a blob); the first applies
        self.name, self.arch, self.shapes = name, {
            "arch_name": "llama", "hidden_size": HIDDEN, "intermediate_size": FFN, "num_layers": LAYERS,
            "num_attention_heads": HEADS, "num_kv_heads": KV, "head_dim": HEAD, "vocab_size": VOCAB,
            "layer_types": ["FullAttention"] * LAYERS, "rms_norm_eps": 1e-5, "norm_style": "qwen", "rope_theta": 10000.0,
            "tie_word_embeddings": False, "max_position_embeddings": CONTEXT,
        }, {}
        self.matrix("model.embed_tokens.weight", VOCAB, HIDDEN, 1.0)
        for i in range(LAYERS):
            p = f"model.layers.{i}."
            self.vector(p + "input_layernorm.weight", HIDDEN)
            self.vector(p + "post_attention_layernorm.weight", HIDDEN)
            self.attention(i)
            self.matrix(p + "mlp.gate_proj.weight", FFN, HIDDEN)
            self.matrix(p + "mlp.up_proj.weight", FFN, HIDDEN)
            self.matrix(p + "mlp.down_proj.weight", HIDDEN, FFN)
        self.vector("model.norm.weight", HIDDEN)
        self.matrix("lm_head.weight", VOCAB, HIDDEN)

    def matrix(self, name, rows, cols, spread=None):
        self.shapes[name] = ((rows, cols), 0.0, spread or 1.5 * cols ** -0.5)

    def vector(self, name, size, mean=1.0, spread=0.2):
        self.shapes[name] = ((size,), mean, spread)

    def attention(self, layer, heads=HEADS, kv=KV, head=HEAD, wide=HEAD):
        p = f"model.layers.{layer}.self_attn."
        self.matrix(p + "q_proj.weight", heads * head, HIDDEN)
        self.matrix(p + "k_proj.weight", kv * head, HIDDEN)
        self.matrix(p + "v_proj.weight", kv * wide, HIDDEN)
        self.matrix(p + "o_proj.weight", HIDDEN, heads * wide)

    def each_layer(self):
        return [f"model.layers.{i}." for i in range(LAYERS)]

    def values(self):
        """name -> flat values, as f32 holds them."""
        out = {}
        for name, (shape, mean, spread) in self.shapes.items():
            rng = random.Random(zlib.crc32(f"{self.name} {name}".encode()))
            count = 1
            for n in shape:
                count *= n
            packed = struct.pack(f"<{count}f", *(rng.gauss(mean, spread) for _ in range(count)))
            out[name] = struct.unpack(f"<{count}f", packed)
        return out

    def payload(self, name, flat):
        """Type code and bytes."""
        if name not in self.codecs:
            return F32, struct.pack(f"<{len(flat)}f", *flat)
        codec = low_bits.CODECS[self.codecs[name]]
        return codec.code, codec.pack(random.Random(zlib.crc32(f"{self.name} {name}".encode())), *self.shapes[name][0], self.shapes[name][2])

    def tensors(self):
        """name -> nested lists."""
        def nest(flat, shape):
            if len(shape) == 1:
                return list(flat)
            step = len(flat) // shape[0]
            return [nest(flat[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]
        out = {name: nest(flat, self.shapes[name][0]) for name, flat in self.values().items()}
        for name, codec in self.codecs.items():
            out[name] = low_bits.CODECS[codec].unpack(self.payload(name, [])[1], *self.shapes[name][0])
        return out

    def write(self, path):
        arch = {key: value for key, value in self.arch.items() if not key.startswith("x_")}
        header = {"format": "cmf", "version": 2, "quant_type": "F16", "arch": arch, "tokenizer_config": tiny_tokenizer.cmf_config(),
                  **self.header}
        rows = []
        for name, flat in self.values().items():
            code, payload = self.payload(name, flat)
            rows.append((name, code, self.shapes[name][0], payload))
        write_cmf(path, header, sorted(rows), tiny_tokenizer.tokenizer_json(), self.features)
        if self.masks:
            append_cmf_section(path, 0x40, self.masks_section(), feature=2)

    def masks_section(self):
        blobs, entries, at = b"", [], 4096
        for name, blob in self.masks:
            entries.append({"task_id": len(entries) + 1, "name": name, "description": None, "sparsity": 0.5, "quality": None, "parent": None,
                            "priority": "Fallback" if not entries else "Normal", "blob_off": at + len(blobs), "blob_len": len(blob)})
            blobs += blob.ljust(aligned(len(blob), 8), b"\0")
        text = json.dumps({"default_task": self.masks[0][0], "masks": entries}).encode()
        return (struct.pack("<II", len(entries), len(text)) + text).ljust(at, b"\0") + blobs


def gated_queries(f):
    for p in f.each_layer():
        f.matrix(p + "self_attn.q_proj.weight", 2 * HEADS * HEAD, HIDDEN)
        f.vector(p + "self_attn.q_norm.weight", HEAD)
        f.vector(p + "self_attn.k_norm.weight", HEAD)
    f.arch.update(arch_name="qwen3_next", partial_rotary_factor=0.25)


def head_gates(f):
    f.arch["arch_name"] = "laguna"
    for p in f.each_layer():
        f.matrix(p + "self_attn.g_proj.weight", HEADS, HIDDEN)


def channel_gates(f):
    f.arch["arch_name"] = "spark2_5"
    for p in f.each_layer():
        f.matrix(p + "self_attn.g_proj.weight", HEADS * HEAD, HIDDEN)


def heads_per_layer(f):
    f.arch.update(arch_name="mimo_v2", attention_heads_per_layer=[4, 8, 4, 2], kv_heads_per_layer=[1, 4, 2, 2], v_head_dim=12, sliding_window=5,
                  layer_types=["FullAttention", "SlidingAttention", "SlidingAttention", "FullAttention"], rope_local_base_freq=100.0,
                  local_partial_rotary_factor=0.5)
    for i, (heads, kv) in enumerate(zip([4, 8, 4, 2], [1, 4, 2, 2])):
        f.attention(i, heads, kv, HEAD, 12)
        f.vector(f"model.layers.{i}.self_attn.attention_sink_bias", heads, 0.0, 1.0)


def global_heads(f):
    f.arch.update(arch_name="gemma4_text", global_head_dim=24, num_global_kv_heads=1, global_partial_rotary_factor=0.5, sliding_window=4,
                  sliding_window_pattern=3, rope_local_base_freq=1000.0, query_pre_attn_scalar=1.0, attn_v_norm=True,
                  final_logit_softcapping=10.0, hidden_act="gelu_tanh", embed_multiplier=2.0)
    f.attention(2, HEADS, 1, 24, 24)
    for i, p in enumerate(f.each_layer()):
        head = 24 if i == 2 else HEAD
        f.vector(p + "self_attn.q_norm.weight", head)
        f.vector(p + "self_attn.k_norm.weight", head)
        f.vector(p + "pre_feedforward_layernorm.weight", HIDDEN)
        f.vector(p + "post_feedforward_layernorm.weight", HIDDEN)
        f.vector(p + "layer_scalar", 1, 0.8, 0.1)


def global_heads_still(f):
    """So small a share of the global heads turns that no pair is left."""
    global_heads(f)
    f.arch["global_partial_rotary_factor"] = 0.05


def loops(f):
    f.arch.update(num_loops=2, loop_final_norm=True, sliding_window=3, sliding_window_pattern=2)


def clusters(f):
    f.arch.update(head_clusters=9, logit_multiplier=0.5, vocab_size=270)
    f.matrix("model.embed_tokens.weight", 270, HIDDEN, 1.0)
    f.matrix("lm_head.weight", 270, HIDDEN)
    f.matrix("lm_head.clusters.weight", 9, HIDDEN)


def short_tables(f):
    """Fewer rows than tokens: logits and embeddings of the others are zeros."""
    f.arch.update(vocab_size=VOCAB + 7, final_logit_softcapping=9.0, logit_multiplier=2.0)
    f.matrix("model.embed_tokens.weight", 150, HIDDEN, 1.0)


def short_tied_table(f):
    f.arch.update(vocab_size=VOCAB + 7, tie_word_embeddings=True)
    del f.shapes["lm_head.weight"]


def situ(f):
    f.arch.update(hidden_act="situ", activation_situ_beta=1.5, activation_situ_linear_beta=2.0)


def swigluoai(f):
    f.arch.update(arch_name="minimax_m3_vl", hidden_act="swigluoai")


def swigluoai_elsewhere(f):
    f.arch.update(hidden_act="swigluoai")


def bounded(f):
    f.features |= 1 << 12
    f.arch.update(arch_name="anchored", layer_types=["BoundedAttention"] * LAYERS,
                  anchor_core={"kind": "swa_sink_v1", "window": 4, "sink": 3, "rope": "relative_in_window", "sink_scores": "nope",
                               "train_windows": [4]})
    for p in f.each_layer():
        f.shapes[p + "self_attn.sink_k.weight"] = ((KV, 3, HEAD), 0.0, 1.0)
        f.shapes[p + "self_attn.sink_v.weight"] = ((KV, 3, HEAD), 0.0, 1.0)


def bounded_groups(f):
    bounded(f)
    f.arch["anchor_core"].update(kind="swa_sink_v2", group_windows=[2, 4])
    f.arch["yarn"] = {"factor": 2.0, "original_max_position_embeddings": 16, "attention_factor": 1.1}


def latent(f, lora=None, **extra):
    f.arch.update(arch_name="deepseek_v2", mla={"kv_lora_rank": 20, "qk_rope_head_dim": 6, "qk_nope_head_dim": 10, "v_head_dim": 8,
                                                **({"q_lora_rank": lora} if lora else {}), **extra})
    for p in f.each_layer():
        a = p + "self_attn."
        for word in ("q", "k", "v"):
            del f.shapes[f"{a}{word}_proj.weight"]
        if lora:
            f.matrix(a + "q_a_proj.weight", lora, HIDDEN)
            f.vector(a + "q_a_layernorm.weight", lora)
        f.matrix(a + ("q_b_proj.weight" if lora else "q_proj.weight"), HEADS * 16, lora or HIDDEN)
        f.matrix(a + "kv_a_proj_with_mqa.weight", 26, HIDDEN)
        f.vector(a + "kv_a_layernorm.weight", 20)
        f.matrix(a + "kv_b_proj.weight", HEADS * 18, 20)
        f.matrix(a + "o_proj.weight", HIDDEN, HEADS * 8)


def latent_low_rank(f):
    latent(f, lora=24)
    f.arch.update(norm_style="gemma", yarn={"factor": 4.0, "original_max_position_embeddings": 32, "attention_factor": 1.2,
                                            "mscale_all_dim": 1.0})
    for name in ("input_layernorm", "post_attention_layernorm"):
        for p in f.each_layer():
            f.vector(p + name + ".weight", HIDDEN, 0.0)
    f.vector("model.norm.weight", HIDDEN, 0.0)


def latent_still(f):
    latent(f, nope=True)


def tubes(f):
    for p in f.each_layer()[1:]:
        for tube, width in ((1, 8), (2, 20)):
            for role, rows, cols in (("gate", width, HIDDEN), ("up", width, HIDDEN), ("down", HIDDEN, width)):
                f.matrix(f"{p}mlp.{role}_proj.tube{tube}.weight", rows, cols)


def masked_tubes(f):
    """A task without every third neuron, the first tube of layer 1 and the second one of layer 2."""
    tubes(f)
    f.arch["intermediate_size"] = FFN + 28
    open_rows = []
    for layer in range(LAYERS):
        row = [i % 3 != 0 for i in range(FFN + 28)]
        row[FFN], row[FFN + 8] = layer != 1, layer != 2
        open_rows.append(row)
    f.arch["x_neurons"] = open_rows
    bits = lambda row: bytes(sum(1 << j for j in range(8) if i + j < len(row) and row[i + j]) for i in range(0, len(row), 8))
    f.masks = [("odd", b"".join(bits(row) for row in open_rows) + bits([True] * HEADS) * LAYERS + bits([True] * LAYERS))]


EXPERTS = 5


def expert_blocks(f, stem, expert, width=16):
    for role, rows, cols in (("gate", width, HIDDEN), ("up", width, HIDDEN), ("down", HIDDEN, width)):
        f.matrix(f"{stem}{expert}.{role}_proj.weight", rows, cols)


def experts(f, **moe):
    f.arch["moe"] = {"num_experts": EXPERTS, "top_k": 2, "moe_intermediate_size": 16, "norm_topk_prob": True, **moe}
    for p in f.each_layer():
        for role in ("gate", "up", "down"):
            del f.shapes[f"{p}mlp.{role}_proj.weight"]
        for e in range(EXPERTS):
            expert_blocks(f, p + "mlp.experts.", e)
        f.matrix(p + "mlp.gate.weight", EXPERTS, HIDDEN)


def unequal_experts(f):
    """Of two widths, and in two codecs by turns, so that gate and up need not have the same; all of a token."""
    experts(f, top_k=EXPERTS)
    for p in f.each_layer():
        expert_blocks(f, p + "mlp.experts.", 1, 32)
    blocks = [name for name, (shape, *_) in f.shapes.items() if ".experts." in name and shape[1] % 32 == 0]
    f.codecs.update((name, "q2tp") for turn, name in enumerate(blocks) if turn % 3 != 0)


def low_rank_experts(f):
    """All experts of a token, so that none is chosen otherwise where activations are rounded."""
    experts(f, top_k=EXPERTS)
    for name in f.shapes:
        if ".experts." in name:
            f.codecs[name] = "blr1" if ".up_proj" in name else "blr2"


def descriptor(f, stem, rank, shell=False):
    f.vector(stem + "desc.mu", HIDDEN, 0.0, 0.4)
    if rank:
        f.matrix(stem + "desc.u", rank, HIDDEN, 0.1)
    f.vector(stem + "desc.bias", 1, 0.0, 2.0)
    if shell:
        f.vector(stem + "desc.shell", 1, 30.0, 4.0)


def resonance(f, rank=2, **moe):
    experts(f, router_resonance=True, **moe)
    for p in f.each_layer():
        del f.shapes[p + "mlp.gate.weight"]
        for e in range(EXPERTS):
            descriptor(f, f"{p}mlp.experts.{e}.", rank)
        f.vector(p + "mlp.expert_bias", EXPERTS, 0.0, 0.2)
    f.arch["moe"].update(routed_scaling_factor=1.5)


def resonance_first(f):
    """One expert a token: the best score wins, and counts by the factor alone."""
    resonance(f, rank=0, top_k=1)


def resonance_sigmoid(f):
    resonance(f, rank=1, router_sigmoid=True, norm_topk_prob=False)
    for p in f.each_layer():
        f.vector(p + "mlp.per_expert_scale", EXPERTS, 1.0, 0.2)
        expert_blocks(f, p + "mlp.", "shared_expert", 24)
        f.matrix(p + "mlp.shared_expert_gate.weight", 1, HIDDEN)


def resonance_stacked(f):
    resonance(f)
    for p in f.each_layer():
        for e in range(EXPERTS):
            for part in ("mu", "u", "bias"):
                del f.shapes[f"{p}mlp.experts.{e}.desc.{part}"]
        f.vector(p + "mlp.desc.bias", EXPERTS, 0.0, 2.0)
        f.matrix(p + "mlp.desc.mu", EXPERTS, HIDDEN, 0.4)
        f.shapes[p + "mlp.desc.u"] = ((EXPERTS, 2, HIDDEN), 0.0, 0.1)


def genome(f):
    """Two records append experts to layers 1 and 2, a third one, not active, to layer 2."""
    resonance(f)
    f.features |= 1 << 9 | 1 << 13
    f.header["genome"] = {"id": "g", "generation": 1, "status": "sealed", "trunk_hash": "0" * 15 + "1", "encoding": "f16",
                          "master_trunk_hash": "0" * 15 + "2", "moe_experts": EXPERTS}
    f.header["skills"], f.arch["x_grown"], numbers = [], {}, {}
    for name, layers, count, status in (("first", [1, 2], 2, "active"), ("second", [2], 1, "active"), ("third", [2], 1, "quarantine")):
        f.header["skills"].append({
            "id": name, "kind": "expert_append", "status": status, "layers": layers,
            "bound": {"genome_id": "g", "generation": 1, "master_trunk_hash": "0" * 15 + "2"},
            "state_effect": {"first_affected_layer": layers[0], "switch": "sequence_start", "state_bytes_added": 0},
            "experts": {"count": count, "shell_quantile": 0.9, "rank": 2}})
        for layer in layers:
            for i in range(count):
                number = numbers.get(layer, EXPERTS)
                numbers[layer] = number + 1
                stem = f"skill.{name}.model.layers.{layer}.mlp.experts."
                expert_blocks(f, stem, number)
                descriptor(f, f"{stem}{number}.", 2, shell=True)
                if status == "active":
                    f.arch["x_grown"].setdefault(layer, []).append(f"{stem}{number}.")
        # The bias for the choice has a value an expert.
    for layer in (1, 2):
        del f.shapes[f"model.layers.{layer}.mlp.expert_bias"]


def genome_skill(f):
    """A replacement of an expert's matrix, of its mean and of the shared expert, chosen by name."""
    genome(f)
    names = [f"model.layers.3.mlp.{part}" for part in ("experts.0.up_proj.weight", "experts.1.desc.mu", "shared_expert.down_proj.weight")]
    expert_blocks(f, "model.layers.3.mlp.", "shared_expert", 24)
    for name in names:
        f.shapes["skill.swap." + name] = f.shapes[name]
    record = dict(f.header["skills"][0], id="swap", kind="ffn_replace", status="active", layers=[3],
                  state_effect={"first_affected_layer": 3, "switch": "sequence_start", "state_bytes_added": 0},
                  overrides=[{"name": name, "base_hash": "0" * 15 + "3"} for name in names])
    del record["experts"]
    f.header["skills"].append(record)
    f.arch["x_skill"] = "swap"
    f.run_flags = ("--skill", "swap")


def prism(f, half=False):
    gated_queries(f)
    f.features |= 1 << 7
    rng = random.Random(7)
    names = [f"{p}{part}.weight" for p in f.each_layer() for part in
             ("self_attn.q_proj", "self_attn.k_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")]
    widths = [HIDDEN, HEADS * HEAD, FFN]
    f.arch.update(arch_name="prism_hadamard_qwen35", norm_style="qwen", prism_hadamard={
        "version": 1, "block_size": 16, "transform": "normalized-sylvester-walsh-hadamard", "axis": "input-last-dimension",
        "sign_mode": "explicit", "widths": widths, "signs": [rng.choice((-1, 1)) for _ in range(sum(widths))],
        "forward_weight_names": ["language_model." + names[0]] + names[1:], "inverse_weight_names": ["model.embed_tokens.weight"],
        "gdn_v_grouped": True, "activation_f16": half})


def prism_affine(f):
    """A tied head, and two-bit weights whose levels are shifted."""
    prism(f)
    record = f.arch["prism_hadamard"]
    del f.shapes["lm_head.weight"]
    f.arch["tie_word_embeddings"] = True
    record["forward_weight_names"].append("model.embed_tokens.weight")
    record["inverse_weight_names"] = []
    f.features |= 1 << 8
    shifted = []
    for name in record["forward_weight_names"]:
        name = name.removeprefix("language_model.")
        if ".k_proj" in name or ".o_proj" in name:
            f.codecs[name] = "q2tp"
        if ".q_proj" in name or ".up_proj" in name:
            f.codecs[name] = "q2tp_affine"
            shifted.append(name)
    record["affine"] = {"version": 1, "profile": "q2tp_affine", "group_size": 32, "correction_scale": 0.5,
                        "target_names": [record["forward_weight_names"][0]] + shifted[1:]}


def prism_hybrid(f):
    """The body of Qwen 3.5: gated delta layers between those of attention, and blocks of another length."""
    prism(f)
    mixer, record = tiny_mixers.GatedDelta, f.arch["prism_hadamard"]
    f.arch.update(mixer.arch)
    record.update(block_size=8, widths=record["widths"] + [40], signs=record["signs"] + [(-1) ** (i * i % 7) for i in range(40)])
    for layer in (0, 2):
        p = f"model.layers.{layer}."
        f.arch["layer_types"][layer] = mixer.layer_type
        for name in [n for n in f.shapes if n.startswith(p + "self_attn.")]:
            del f.shapes[name]
        record["forward_weight_names"] = [n for n in record["forward_weight_names"] if p + "self_attn." not in n]
        for name, rows, cols in mixer.matrices(HIDDEN):
            f.matrix(p + name, rows, cols)
            record["forward_weight_names"].append(p + name)
        for name, shape, mean, *spread in mixer.vectors(HIDDEN):
            if isinstance(shape, tuple):
                f.shapes[p + name] = (shape, 0.0, mean)
            else:
                f.vector(p + name, shape, mean, *spread)


def prism_half(f):
    """Values beside a tie of f16 go either way: each moves its own features by a step, 2^-10 of them."""
    prism(f, half=True)
    f.exact_bound = 2 ** -9


FAMILIES = {f.__name__: f for f in (gated_queries, head_gates, channel_gates, heads_per_layer, global_heads, global_heads_still, loops, clusters, short_tables, short_tied_table, situ, swigluoai,
                                    swigluoai_elsewhere, bounded, bounded_groups, latent, latent_low_rank, latent_still,
                                    tubes, masked_tubes, experts, low_rank_experts, unequal_experts, resonance, resonance_first, resonance_sigmoid,
                                    resonance_stacked, genome, genome_skill, prism, prism_affine, prism_half,
                                    prism_hybrid)}


def family(name):
    out = Family(name)
    FAMILIES[name](out)
    return out
