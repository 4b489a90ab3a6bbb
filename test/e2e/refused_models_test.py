#!/usr/bin/env python3
"""What a header or a tensor can say and no model may: every rule of the CMF specification's section 6 that is about a model.

Each row changes a tiny model (test/cases/tiny_families.py) that compiles otherwise, and names words of the sentence that refuses it.
"""
import math
import os
import re
import sys

import harness

LAYER = "model.layers.1."
ATTENTION, MLP = LAYER + "self_attn.", LAYER + "mlp."


def arch(**changes):
    return lambda f: f.arch.update(changes)


def block(name, **changes):
    """Changes of a record of arch; None removes a key."""
    def change(f):
        f.arch[name].update(changes)
        for key in [k for k, v in changes.items() if v is None]:
            del f.arch[name][key]
    return change


def without(*names):
    def change(f):
        for name in names:
            f.shapes.pop(name, None) or f.arch.pop(name)
    return change


def shaped(name, *shape):
    return lambda f: f.shapes.update({name: (tuple(shape), 0.0, 0.1)})


def both(*changes):
    return lambda f: [change(f) for change in changes]


def kind(layer_type):
    return lambda f: f.arch["layer_types"].__setitem__(1, layer_type)


def feature(bit):
    return lambda f: setattr(f, "features", f.features ^ 1 << bit)


def no_number(f):
    f.shapes[ATTENTION + "sinks"] = ((4,), math.nan, 0.0)


# (family, what is changed, change, words of the refusal)
RULES = [
    ("plain", "a layer type nobody knows", kind("QuantumAttention"), ["QuantumAttention"]),
    ("plain", "a norm style nobody knows", arch(norm_style="none"), ["norm_style"]),
    ("plain", "no number of layers", without("num_layers"), ["num_layers"]),
    ("plain", "a tensor that is missing", without(LAYER + "input_layernorm.weight"), [LAYER + "input_layernorm.weight", "missing"]),
    ("plain", "no head, and not tied", without("lm_head.weight"), ["lm_head.weight", "tie_word_embeddings"]),
    ("plain", "heads that key/value heads do not divide", arch(num_attention_heads=3), ["3 heads"]),
    ("plain", "queries of another width", shaped(ATTENTION + "q_proj.weight", 60, 32), ["q_proj.weight", "[60, 32]"]),
    ("plain", "keys of another width", shaped(ATTENTION + "k_proj.weight", 16, 32), ["k_proj.weight"]),
    ("plain", "values of another width", shaped(ATTENTION + "v_proj.weight", 16, 32), ["v_proj.weight"]),
    ("plain", "an output of another width", shaped(ATTENTION + "o_proj.weight", 32, 60), ["o_proj.weight"]),
    ("plain", "a gate of another width", shaped(ATTENTION + "g_proj.weight", 5, 32), ["g_proj.weight"]),
    ("plain", "a norm of another width", shaped(ATTENTION + "q_norm.weight", 8), ["q_norm.weight"]),
    ("plain", "values wider than keys", arch(v_head_dim=20), ["v_head_dim"]),
    ("gated_queries", "a gate beside narrow values", both(arch(v_head_dim=8), shaped("model.layers.0.self_attn.v_proj.weight", 16, 32)), ["has a gate"]),
    ("gated_queries", "a gate beside global heads", arch(global_head_dim=16), ["global_head_dim"]),
    ("plain", "heads for too few layers", arch(attention_heads_per_layer=[4, 4]), ["attention_heads_per_layer", "2 entries"]),
    ("plain", "key/value heads for too few layers", arch(kv_heads_per_layer=[2, 2, 2]), ["kv_heads_per_layer", "3 entries"]),
    ("plain", "a layer's heads that do not divide", arch(attention_heads_per_layer=[4, 3, 4, 4]), ["layer 1", "3 heads"]),
    ("global_heads", "key/value heads a layer beside global heads", arch(kv_heads_per_layer=[2, 2, 1, 2]), ["kv_heads_per_layer", "global_head_dim"]),
    ("global_heads", "a value width beside global heads", arch(v_head_dim=16), ["v_head_dim", "global_head_dim"]),
    ("latent", "key/value heads a layer beside latent attention", arch(kv_heads_per_layer=[2, 2, 2, 2]), ["kv_heads_per_layer", "mla"]),
    ("latent", "a value width beside latent attention", arch(v_head_dim=16), ["v_head_dim", "mla"]),
    ("latent", "latent attention without its norm", without(ATTENTION + "kv_a_layernorm.weight"), ["kv_a_layernorm.weight"]),
    ("latent_low_rank", "latent attention without the norm of queries", without(ATTENTION + "q_a_layernorm.weight"), ["q_a_layernorm.weight"]),
    ("plain", "a window of no size", kind("SlidingAttention"), ["sliding_window"]),
    ("plain", "too few sinks", shaped(ATTENTION + "sinks", 3), ["sinks", "[3]"]),
    ("plain", "sinks that are no numbers", no_number, ["sinks", "not finite"]),
    ("latent", "sinks of latent attention", shaped(ATTENTION + "sinks", 4), ["sinks"]),
    ("bounded", "sinks of bounded attention", shaped(ATTENTION + "sinks", 4), ["sinks"]),
    ("plain", "sinks of a short convolution", both(kind("ShortConv"), arch(linear_conv_kernel_dim=3), shaped(LAYER + "short_conv.in_proj.weight", 96, 32),
                                                   shaped(LAYER + "short_conv.out_proj.weight", 32, 32), shaped(LAYER + "short_conv.conv.weight", 32, 1, 3),
                                                   shaped(ATTENTION + "softmax_offset", 4)), ["softmax_offset", "ShortConv"]),
    ("loops", "no passes", arch(num_loops=0), ["num_loops"]),
    ("plain", "a block whose halves differ", shaped(MLP + "up_proj.weight", 40, 32), ["up_proj.weight"]),
    ("plain", "a block whose ends differ", shaped(MLP + "down_proj.weight", 32, 40), ["down_proj.weight"]),
    ("tubes", "a tube whose halves differ", shaped(MLP + "up_proj.tube2.weight", 8, 32), ["up_proj.tube2.weight"]),
    ("tubes", "a tube without its end", without(MLP + "down_proj.tube1.weight"), ["down_proj.tube1.weight", "missing"]),
    ("experts", "a router without arch.moe", without("moe"), ["arch.moe"]),
    ("experts", "a router without experts", without(*[f"{MLP}experts.{e}.{r}_proj.weight" for e in range(5) for r in ("gate", "up", "down")]), ["experts.0.gate_proj.weight"]),
    ("experts", "a router of other experts", shaped(MLP + "gate.weight", 6, 32), ["gate.weight", "5 experts"]),
    ("experts", "no experts a token", block("moe", top_k=0), ["top_k"]),
    ("experts", "an expert whose halves differ", shaped(MLP + "experts.2.up_proj.weight", 8, 32), ["experts.2.up_proj.weight"]),
    ("low_rank_experts", "low-rank experts beside others", lambda f: f.codecs.pop(MLP + "experts.3.down_proj.weight"), ["low-rank experts beside others"]),
    ("resonance", "descriptors of several ranks", shaped(MLP + "experts.2.desc.u", 3, 32), ["desc.u", "3 directions"]),
    ("resonance", "an expert without bias", without(MLP + "experts.2.desc.bias"), ["experts.2.desc.bias", "missing"]),
    ("resonance", "experts by nothing", without(*[f"{MLP}experts.{e}.desc.{p}" for e in range(5) for p in ("mu", "u", "bias")]), ["model.layers.1.mlp.gate_proj.weight"]),
    ("resonance", "a dense block beside resonance", shaped(MLP + "gate_proj.weight", 48, 32), ["layer 1", "dense block"]),
    ("genome", "an appended expert without its shell", without("skill.first." + MLP + "experts.5.desc.shell"), ["desc.shell", "missing"]),
    ("genome", "an appended expert of another shape", shaped("skill.first." + MLP + "experts.5.up_proj.weight", 8, 32), ["experts.5.up_proj.weight", "expert 0"]),
    ("plain", "linear attention without its core", kind("LinearAttention"), ["linear_core"]),
    ("plain", "a short convolution without its size", kind("ShortConv"), ["linear_conv_kernel_dim"]),
    ("plain", "delta attention without its sizes", both(kind("Kda"), arch(linear_conv_kernel_dim=4)), ["linear_num_key_heads"]),
    ("global_heads", "YaRN beside global heads", arch(yarn={"factor": 2.0, "original_max_position_embeddings": 16}), ["global_head_dim", "yarn"]),
    ("plain", "two shares of a head that turn", arch(global_partial_rotary_factor=0.5, partial_rotary_factor=0.5), ["global_partial_rotary_factor"]),
    ("clusters", "clusters of another number", shaped("lm_head.clusters.weight", 10, 32), ["lm_head.clusters.weight"]),
    ("clusters", "clusters that do not divide the vocabulary", arch(head_clusters=7), ["head_clusters"]),
    ("plain", "a stack of layers of its own", arch(arch_name="deepseek_v4"), ["deepseek_v4"]),
    ("plain", "Gemma 3n", arch(g3n={}), ["g3n"]),
    ("plain", "another stack of its own", arch(qwen4_exp={}), ["qwen4_exp"]),
    ("plain", "block diffusion", arch(block_diffusion={}), ["block"]),
    ("plain", "flint of another shape", arch(arch_name="flint"), ["flint"]),
    ("plain", "no embedding", without("model.embed_tokens.weight"), ["model.embed_tokens.weight", "no decoder"]),
    ("bounded", "a bound of no kind", block("anchor_core", kind="swa_sink_v3"), ["anchor_core"]),
    ("bounded", "a window of nothing", block("anchor_core", window=0), ["window"]),
    ("bounded", "another rotation", block("anchor_core", rope="absolute"), ["rope"]),
    ("bounded", "rotated anchors", block("anchor_core", sink_scores="rope"), ["sink_scores"]),
    ("bounded", "training beyond the window", block("anchor_core", train_windows=[5]), ["train_windows"]),
    ("bounded", "windows a group in the first version", block("anchor_core", group_windows=[2, 4]), ["group_windows"]),
    ("bounded", "something far", block("anchor_core", far={}), ["far"]),
    ("bounded", "too many positions", block("anchor_core", window=65535, train_windows=[4]), ["65536"]),
    ("bounded", "no block", without("anchor_core"), ["anchor_core"]),
    ("bounded", "no bit", feature(12), ["feature"]),
    ("bounded", "norms of bounded attention", shaped(ATTENTION + "q_norm.weight", 16), ["q_norm.weight"]),
    ("bounded", "a gate of bounded attention", shaped(ATTENTION + "g_proj.weight", 4, 32), ["g_proj.weight"]),
    ("bounded", "a bias of bounded attention", shaped(ATTENTION + "k_proj.bias", 32), ["k_proj.bias"]),
    ("bounded", "anchors of another shape", shaped(ATTENTION + "sink_k.weight", 2, 4, 16), ["sink_k.weight"]),
    ("bounded_groups", "windows for too few groups", block("anchor_core", group_windows=[4]), ["group_windows"]),
    ("bounded_groups", "no group with the whole window", block("anchor_core", group_windows=[2, 3]), ["group_windows"]),
    ("prism", "a transform of another name", arch(arch_name="qwen3_5"), ["prism_hadamard_qwen35"]),
    ("prism", "no bit for the transform", feature(7), ["feature"]),
    ("prism", "a block that is no power of two", block("prism_hadamard", block_size=24), ["power-of-two"]),
    ("prism", "too few signs", block("prism_hadamard", signs=[1] * 16), ["signs"]),
    ("prism", "a sign of 0", block("prism_hadamard", signs=[0] * 144), ["signs"]),
    ("prism", "a weight listed twice", block("prism_hadamard", inverse_weight_names=["model.layers.0.self_attn.k_proj.weight"]), ["twice"]),
    ("prism", "rows of a weight that are never looked up", block("prism_hadamard", inverse_weight_names=["lm_head.weight"]), ["lm_head.weight"]),
    ("prism", "a weight that is not there", block("prism_hadamard", forward_weight_names=["model.layers.9.mlp.up_proj.weight"]), ["model.layers.9"]),
    ("prism", "no signs for a width", block("prism_hadamard", widths=[32, 64], signs=[1] * 96), ["48 columns"]),
    ("prism", "a tied head that is not listed", both(without("lm_head.weight"), arch(tie_word_embeddings=True)), ["tied"]),
    ("prism_affine", "shifted levels of another type", lambda f: f.codecs.pop("model.layers.2.mlp.up_proj.weight"), ["instead of q2tp"]),
    ("prism_affine", "no bit for shifted levels", feature(8), ["feature"]),
]


def made(families, name):
    return families.Family("refused") if name == "plain" else families.family(name)


def main():
    args = harness.arguments(__doc__, filter={"default": "", "help": "only rules whose words match"})
    harness.need_tools(args, "cortiq-compile")
    harness.tiny_models()
    import tiny_families
    tally = harness.Tally()
    for name, label, change, words in RULES:
        if not re.search(args.filter, f"{name} {label}"):
            continue
        with harness.Scratch() as scratch:
            path, out = scratch.path("model.cmf"), scratch.path("out.cqa")
            model = made(tiny_families, name)
            change(model)
            model.write(path)
            result = harness.run([os.path.join(args.bin, "cortiq-compile"), path, "-o", out], timeout=120)
            why_not = harness.why_not_refusal(result, out)
            missing = [word for word in words if word not in result.stderr]
            tally.check(f"{name}: {label}", why_not or (f"{missing} is not in: {result.stderr.strip()}" if missing else None))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
