"""A decoder for the tiny models' float types in plain Python: an answer that shares no code with what it checks."""
import math
import struct

import tiny_mixers
import tiny_models

FORMATS = {"f32": "f", "f16": "e"}


def weights(case):
    """canonical name -> rows (matrices) or values (vectors); only f32 and f16."""
    out = {}
    for name, codec, shape, payload in tiny_models.tensors(case):
        flat = struct.unpack(f"<{len(payload) // struct.calcsize(FORMATS[codec])}{FORMATS[codec]}", payload)
        cols = shape[-1]
        out[name] = [flat[i:i + cols] for i in range(0, len(flat), cols)] if len(shape) == 2 else flat
    return out


def supported(case):
    return set(case.codecs) <= set(FORMATS)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def norm(x, weight):
    scale = 1 / math.sqrt(dot(x, x) / len(x) + tiny_models.NORM_EPS)
    return [v * scale * w for v, w in zip(x, weight)]


def rotate(head, position):
    half = len(head) // 2
    out = list(head)
    for i in range(half):
        angle = position * tiny_models.ROPE_BASE ** (-2 * i / len(head))
        c, s = math.cos(angle), math.sin(angle)
        out[i], out[i + half] = head[i] * c - head[i + half] * s, head[i] * s + head[i + half] * c
    return out


class Forward:
    """One sequence; step(token) returns the logits of its position."""

    def __init__(self, case):
        self.shape, self.w = case.shape, weights(case)
        self.keys = [[] for _ in range(case.shape.layers)]
        self.values = [[] for _ in range(case.shape.layers)]
        self.gate = None  # of the latest queries, in the models that have one
        self.mixers = [mixer(self.w, f"model.layers.{i}.") if (mixer := tiny_mixers.of(case.arch, i)) else None
                       for i in range(case.shape.layers)]

    def project(self, x, name):
        bias = self.w.get(name + ".bias")
        out = [dot(row, x) for row in self.w[name + ".weight"]]
        return [a + b for a, b in zip(out, bias)] if bias else out

    def heads(self, x, layer, part, position):
        """Projected, normed where the model has a norm for it, rotated unless it is v; a list per head."""
        size = self.shape.head_dim
        flat = self.project(x, f"{layer}self_attn.{part}_proj")
        split = [flat[i:i + size] for i in range(0, len(flat), size)]
        if part == "q" and len(split) > self.shape.heads:  # each head's queries, then its gate
            self.gate = [v for h in split[1::2] for v in h]
            split = split[::2]
        weight = self.w.get(f"{layer}self_attn.{part}_norm.weight")
        split = [norm(h, weight) for h in split] if weight else split
        return split if part == "v" else [rotate(h, position) for h in split]

    def mix(self, x, index, layer):
        mixer = self.mixers[index]
        return mixer.step(self.project, x) if mixer else self.attend(x, index, layer)

    def attend(self, x, index, layer):
        keys, values = self.keys[index], self.values[index]
        position, group = len(keys), self.shape.heads // self.shape.kv_heads
        keys.append(self.heads(x, layer, "k", position))
        values.append(self.heads(x, layer, "v", position))
        out = []
        for h, q in enumerate(self.heads(x, layer, "q", position)):
            scores = [dot(q, k[h // group]) / math.sqrt(self.shape.head_dim) for k in keys]
            top = max(scores)
            share = [math.exp(s - top) for s in scores]
            total = sum(share)
            out += [sum(p * v[h // group][i] for p, v in zip(share, values)) / total for i in range(self.shape.head_dim)]
        if self.gate:
            out = [v / (1 + math.exp(-g)) for v, g in zip(out, self.gate)]
        return self.project(out, f"{layer}self_attn.o_proj")

    def feed(self, x, layer):
        gate, up = self.project(x, f"{layer}mlp.gate_proj"), self.project(x, f"{layer}mlp.up_proj")
        return self.project([g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)], f"{layer}mlp.down_proj")

    def step(self, token):
        x = list(self.w["model.embed_tokens.weight"][token])
        for i in range(self.shape.layers):
            layer = f"model.layers.{i}."
            x = [a + b for a, b in zip(x, self.mix(norm(x, self.w[layer + "input_layernorm.weight"]), i, layer))]
            x = [a + b for a, b in zip(x, self.feed(norm(x, self.w[layer + "post_attention_layernorm.weight"]), layer))]
        x = norm(x, self.w["model.norm.weight"])
        head = self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"])
        return [dot(row, x) for row in head]


def logits(case, tokens):
    """Logits of every position, flat."""
    forward = Forward(case)
    return [v for token in tokens for v in forward.step(token)]
