"""A decoder in plain Python after section 3 of the CMF specification: an answer that shares no code with what it checks.

It takes the header's `arch` and the tensors of a tiny model in f32 (name -> rows, values, or nested lists), and does what they say. What no
header can say, files of the other container may: the fields that start with x_.
"""
import math
import struct

import tiny_mixers


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def parts(flat, size):
    return [flat[i:i + size] for i in range(0, len(flat), size)]


def frequencies(base, dims):
    return [base ** (-2 * i / dims) for i in range(dims // 2)]


def yarn(table, base, dims, y):
    pair = lambda r: dims * math.log(y["original_max_position_embeddings"] / (r * 2 * math.pi)) / (2 * math.log(base))
    low = max(0, math.floor(pair(y.get("beta_fast", 32))))
    high = min(max(math.ceil(pair(y.get("beta_slow", 1))), 0), dims // 2 - 1)
    out = []
    for i, e in enumerate(table):
        ramp = min(max(max(0, i - low) / max(1, high - low), 0), 1)
        out.append(e / y["factor"] * ramp + e * (1 - ramp))
    return out


class SpecDecoder:
    """One sequence; step(token) returns the logits of its position."""

    def __init__(self, arch, tensors):
        skill = f"skill.{arch.get('x_skill')}."
        self.a, self.t = arch, {**tensors, **{name.removeprefix(skill): value for name, value in tensors.items() if name.startswith(skill)}}
        self.cache, self.mixers = {}, {}
        self.position = 0
        self.style = arch.get("norm_style", "qwen")
        self.layers = arch["num_layers"] * arch.get("num_loops", 1)

    # Norms.
    def rms(self, x, name, plain=False):
        weight = self.t.get(name)
        scale = 1 / math.sqrt(dot(x, x) / len(x) + self.a["rms_norm_eps"])
        if weight is None:
            return [v * scale for v in x]
        one = 1 if self.style == "gemma" and not plain else 0
        return [v * scale * (one + w) for v, w in zip(x, weight)]

    def norm(self, x, name):
        if name + ".weight" not in self.t:
            return x
        return self.rms(x, name + ".weight")

    def listed(self, kind, name):
        record = self.a.get("prism_hadamard") or {}
        return any(entry.removeprefix("language_model.") == name for entry in record.get(kind, []))

    def signs(self, width):
        record, at = self.a["prism_hadamard"], 0
        for w in record["widths"]:
            if w == width:
                return record["signs"][at:at + w]
            at += w

    def hadamard(self, x):
        """Every block times the matrix of (-1)^(common bits of row and column), normalized."""
        block = self.a["prism_hadamard"]["block_size"]
        out = []
        for part in parts(x, block):
            out += [sum(v if (i & j).bit_count() % 2 == 0 else -v for j, v in enumerate(part)) / math.sqrt(block) for i in range(block)]
        return out

    def rounded(self, x):
        """To the nearest f16, ties to even, where the model says so."""
        if not self.a["prism_hadamard"].get("activation_f16"):
            return x
        return [struct.unpack("<e", struct.pack("<e", v))[0] for v in x]

    def forward(self, x, name):
        if not self.listed("forward_weight_names", name):
            return x
        return self.rounded(self.hadamard([s * v for s, v in zip(self.signs(len(x)), x)]))

    def embedding(self, token):
        rows = self.t["model.embed_tokens.weight"]
        row = rows[token] if token < len(rows) else [0.0] * self.a["hidden_size"]
        if self.a.get("prism_hadamard"):
            row = self.rounded([s * v for s, v in zip(self.signs(len(row)), self.hadamard(self.rounded(row)))])
        return [v * self.a.get("embed_multiplier", 1.0) for v in row]

    def linear(self, x, name):
        x = self.forward(x, name + ".weight")
        out = [dot(row, x) for row in self.t[name + ".weight"]]
        bias = self.t.get(name + ".bias")
        return [a + b for a, b in zip(out, bias)] if bias else out

    # Which layers see a window, and how each turns.
    def local(self, v):
        kinds = self.a["layer_types"]
        if "SlidingAttention" in kinds:
            return v < len(kinds) and kinds[v] == "SlidingAttention"
        if self.a.get("sliding_window") and self.a.get("sliding_window_pattern"):
            return (v + 1) % self.a["sliding_window_pattern"] != 0
        return False

    def table(self, v):
        """Inverse frequencies and magnitude of layer v."""
        a = self.a
        if self.still(v):
            return [], 1
        theta, head = a.get("rope_theta", 10000.0), a["head_dim"]
        dims = max(2, math.floor(head * a.get("partial_rotary_factor", 1.0)))
        if a.get("global_head_dim"):
            size = a["global_head_dim"]
            turning = math.floor(math.floor(a.get("global_partial_rotary_factor", 1.0) * size) / 2)
            full = [f if i < turning else 0.0 for i, f in enumerate(frequencies(theta, size))]
        else:
            full = frequencies(theta, dims)
        magnitude = 1
        if a.get("yarn"):
            full, magnitude = yarn(full, theta, dims, a["yarn"]), a["yarn"].get("attention_factor", 1)
        if not self.local(v):
            if a.get("rope_freq_factors"):
                full = [f / d for f, d in zip(full, a["rope_freq_factors"])]
            return full, magnitude * a.get("x_magnitude", 1)
        width = max(2, math.floor(head * a.get("local_partial_rotary_factor", a.get("partial_rotary_factor", 1.0))))
        if a.get("rope_local_base_freq"):
            return frequencies(a["rope_local_base_freq"], width if "SlidingAttention" in a["layer_types"] else dims), 1
        return full[:width // 2], 1

    def still(self, v):
        if self.a.get("x_still") is not None:
            return self.a["x_still"](v, self.local(v))
        listed = self.a.get("no_rope_layers")
        return bool(listed) and self.a["arch_name"] == "flint" and v < len(listed) and listed[v]

    def rotate(self, head, position, table, magnitude):
        half, out = len(table), list(head)
        for i, f in enumerate(table):
            c, s = math.cos(position * f), math.sin(position * f)
            out[i] = (head[i] * c - head[i + half] * s) * magnitude
            out[i + half] = (head[i] * s + head[i + half] * c) * magnitude
        return out

    def softmax_values(self, scores, values):
        top = max(scores)
        share = [math.exp(s - top) for s in scores]
        total = sum(share[:])
        size = len(next(v for v in values if v is not None))
        return [sum(p * v[i] for p, v in zip(share, values) if v is not None) / total for i in range(size)]

    def attention(self, x, v, p):
        """Layer v of the model, whose tensors have the prefix p."""
        a = self.a
        heads = a["num_attention_heads"]
        if a.get("attention_heads_per_layer") and v < len(a["attention_heads_per_layer"]):
            heads = a["attention_heads_per_layer"][v]
        kv = a["kv_heads_per_layer"][v % a["num_layers"]] if a.get("kv_heads_per_layer") else a["num_kv_heads"]
        size = a["head_dim"]
        if not self.local(v):
            size = a.get("global_head_dim") or size
            kv = a.get("num_global_kv_heads") or kv
        wide = a.get("v_head_dim") or size
        q, k, val = (self.linear(x, p + f"{w}_proj") for w in "qkv")
        gate = None
        if len(q) == 2 * heads * size:
            halves = parts(q, size)
            q, gate = sum(halves[0::2], []), sum(halves[1::2], [])
        if a.get("x_whole_norms"):
            q, k = self.norm(q, p + "q_norm"), self.norm(k, p + "k_norm")
        q, k, val = parts(q, size), parts(k, size), parts(val, wide)
        if a.get("attn_v_norm"):
            val = [self.rms(h, "") for h in val]
        raw = q
        table, magnitude = self.table(v)
        turn = lambda h: self.rotate(h, self.position, table, magnitude)
        normed = (lambda h, w: h) if a.get("x_whole_norms") else (lambda h, w: self.norm(h, p + w))
        chain = (lambda h, w: normed(turn(h), w)) if a.get("qk_norm_after_rope") else (lambda h, w: turn(normed(h, w)))
        q, k = [chain(h, "q_norm") for h in q], [chain(h, "k_norm") for h in k]
        scale = a.get("x_scale") or 1 / math.sqrt(a.get("query_pre_attn_scalar") or a["head_dim"])
        if a.get("x_temperature"):
            length, factor = a["x_temperature"]
            scale *= 1 + factor * math.log(1 + self.position // length)
        keys, values = self.cache.setdefault(v, ([], []))
        keys.append(k)
        values.append(val)
        sinks = next((self.t[p + w] for w in ("sinks", "attention_sink_bias", "softmax_offset") if p + w in self.t), None)
        anchor = a.get("anchor_core")
        out = []
        for h in range(heads):
            group = h // (heads // kv)
            window = len(keys)
            if anchor:
                window = (anchor.get("group_windows") or [anchor["window"]] * kv)[group]
            elif self.local(v):
                window = a["sliding_window"]
            seen = range(max(0, len(keys) - window), len(keys))
            scores = [dot(q[h], keys[j][group]) * scale for j in seen]
            cap = a.get("attn_logit_softcapping")
            if cap:
                scores = [cap * math.tanh(s / cap) for s in scores]
            rows = [values[j][group] for j in seen]
            if anchor:
                scores += [dot(raw[h], key) * scale for key in self.t[p + "sink_k.weight"][group]]
                rows += self.t[p + "sink_v.weight"][group]
            if sinks:
                scores.append(sinks[h])
                rows.append(None)
            out += self.softmax_values(scores, rows)
        if gate:
            out = [o * sigmoid(g) for o, g in zip(out, gate)]
        if p + "g_proj.weight" in self.t:
            gain = [(sigmoid if a["arch_name"] in ("spark2_5", "lfm3") else softplus)(g) for g in self.linear(x, p + "g_proj")]
            each = len(out) // len(gain)
            out = [o * gain[i // each] for i, o in enumerate(out)]
        return self.linear(out, p + "o_proj")

    def latent_attention(self, x, v, p):
        a, m = self.a, self.a["mla"]
        rope, nope, wide, rank = m["qk_rope_head_dim"], m["qk_nope_head_dim"], m["v_head_dim"], m["kv_lora_rank"]
        if m.get("q_lora_rank"):
            low = self.rms(self.linear(x, p + "q_a_proj"), p + "q_a_layernorm.weight", plain=True)
            q = self.linear(low, p + "q_b_proj")
        else:
            q = self.linear(x, p + "q_proj")
        both = self.linear(x, p + "kv_a_proj_with_mqa")
        latent = self.rms(both[:rank], p + "kv_a_layernorm.weight", plain=True)
        expanded = parts(self.linear(latent, p + "kv_b_proj"), nope + wide)
        y = a.get("yarn") or {}
        table, magnitude = frequencies(a.get("rope_theta", 10000.0), rope), y.get("attention_factor", 1)
        turn = (lambda h: h) if m.get("nope") else (lambda h: self.rotate(h, self.position, table, magnitude))
        shared = turn(both[rank:])
        scale = 1 / math.sqrt(rope + nope)
        if y.get("mscale_all_dim", 0) > 0:
            scale *= (0.1 * y["mscale_all_dim"] * math.log(y["factor"]) + 1) ** 2
        keys, values = self.cache.setdefault(v, ([], []))
        keys.append([shared + e[:nope] for e in expanded])
        values.append([e[nope:] for e in expanded])
        out = []
        for h, head in enumerate(parts(q, rope + nope)):
            head = turn(head[:rope]) + head[rope:]
            out += self.softmax_values([dot(head, k[h]) * scale for k in keys], [w[h] for w in values])
        return self.linear(out, p + "o_proj")

    def recurrent(self, x, v, p):
        if v not in self.mixers:
            weights = dict(self.t)
            taps = p + "linear_attn.conv1d.weight"
            weights[taps] = [w for channel in self.t[taps] for w in channel[0]]
            self.mixers[v] = tiny_mixers.GatedDelta(weights, p)
        return self.mixers[v].step(lambda y, name: self.linear(y, name), x)

    def activate(self, g, u):
        a, kind = self.a, self.a.get("hidden_act", "silu")
        if kind == "gelu_tanh":
            return 0.5 * g * (1 + math.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g ** 3))) * u
        if kind == "gelu":
            return 0.5 * g * (1 + math.erf(g / math.sqrt(2))) * u
        if kind == "situ":
            beta, linear = a.get("activation_situ_beta", 1), a.get("activation_situ_linear_beta", 0)
            return beta * math.tanh(g / beta) * sigmoid(g) * (linear * math.tanh(u / linear) if linear > 0 else u)
        if kind == "swigluoai" and a["arch_name"] == "minimax_m3_vl":
            g, u = min(g, 7), min(max(u, -7), 7)
            return g * sigmoid(1.702 * g) * (u + 1)
        return g * sigmoid(g) * u

    def feed(self, x, p):
        return self.block(x, p, "", [True] * len(self.t[p + "gate_proj.weight"]))

    def block(self, x, p, suffix, neurons):
        gate, up = self.linear(x, p + "gate_proj" + suffix), self.linear(x, p + "up_proj" + suffix)
        return self.linear([self.activate(g, u) if on else 0.0 for g, u, on in zip(gate, up, neurons)], p + "down_proj" + suffix)

    def dense(self, x, v, p):
        """The block and its task tubes; a mask names neurons of the block, and decides about each tube by its first one."""
        width = len(self.t[p + "gate_proj.weight"])
        row = self.a["x_neurons"][v] if self.a.get("x_neurons") else None
        out = self.block(x, p, "", row[:width] if row else [True] * width)
        tube = 1
        while p + f"gate_proj.tube{tube}.weight" in self.t:
            size = len(self.t[p + f"gate_proj.tube{tube}.weight"])
            if row is None or row[width]:
                out = [a + b for a, b in zip(out, self.block(x, p, f".tube{tube}", [True] * size))]
            width, tube = width + size, tube + 1
        return out

    def descriptors(self, v, p):
        """(mean, basis, bias, shell) of every expert of layer v, and where its matrices are."""
        out = []
        e = 0
        while p + f"experts.{e}.gate_proj.weight" in self.t:
            d = p + f"experts.{e}.desc."
            if d + "mu" in self.t:
                out.append((self.t[d + "mu"], self.t.get(d + "u", []), self.t[d + "bias"][0], None, p + f"experts.{e}."))
            else:
                out.append((self.t[p + "desc.mu"][e], self.t[p + "desc.u"][e], self.t[p + "desc.bias"][e], None, p + f"experts.{e}."))
            e += 1
        for q in self.a.get("x_grown", {}).get(v, []):
            out.append((self.t[q + "desc.mu"], self.t[q + "desc.u"], self.t[q + "desc.bias"][0], self.t[q + "desc.shell"][0], q))
        return out

    def routed(self, x, v, p):
        moe = self.a["moe"]
        resonant = moe.get("router_resonance")
        if resonant:
            blocks, logits = [], []
            for mean, basis, bias, shell, stem in self.descriptors(v, p):
                away = [a - b for a, b in zip(x, mean)]
                error = dot(away, away) - sum(dot(u, away) ** 2 for u in basis)
                logits.append(-math.inf if shell is not None and error > shell else bias - error)
                blocks.append(stem)
        else:
            logits = self.linear(x, p + "gate")
            blocks = [p + f"experts.{e}." for e in range(len(logits))]
        k = min(moe["top_k"], len(logits))
        factor = moe.get("routed_scaling_factor", 1.0)
        if resonant and k == 1:
            chosen = [(logits.index(max(logits)), factor)]
        else:
            top = max(logits)
            raised = [math.exp(l - top) for l in logits]
            p_e = [sigmoid(l) if l > -math.inf else 0.0 for l in logits] if moe.get("router_sigmoid") else [r / sum(raised) for r in raised]
            bias = self.t.get(p + "expert_bias", [0.0] * len(logits))
            order = sorted(range(len(logits)), key=lambda e: (-(p_e[e] + bias[e]), e))[:k]
            total = sum(p_e[e] for e in order) + (1e-6 if moe.get("router_sigmoid") else 0)
            scale = self.t.get(p + "per_expert_scale", [1.0] * len(logits))
            chosen = [(e, p_e[e] / (total if moe.get("norm_topk_prob") else 1) * factor * scale[e]) for e in order]
        out = [0.0] * len(x)
        for e, weight in chosen:
            out = [a + weight * b for a, b in zip(out, self.feed(x, blocks[e]))]
        if p + "shared_expert.gate_proj.weight" in self.t:
            gate = sigmoid(self.linear(x, p + "shared_expert_gate")[0]) if p + "shared_expert_gate.weight" in self.t else 1
            out = [a + gate * b for a, b in zip(out, self.feed(x, p + "shared_expert."))]
        return out

    def step(self, token):
        a, count = self.a, self.a["num_layers"]
        h = self.embedding(token)
        for v in range(self.layers):
            p = f"model.layers.{v % count}."
            sandwich = p + "pre_feedforward_layernorm.weight" in self.t or p + "post_feedforward_layernorm.weight" in self.t
            mixer = self.latent_attention if p + "self_attn.kv_b_proj.weight" in self.t else self.attention
            x = self.norm(h, p + "input_layernorm")
            mixed = self.recurrent(x, v, p) if a["layer_types"][v % count] == "LinearAttention" else mixer(x, v, p + "self_attn.")
            if sandwich:
                mixed = self.norm(mixed, p + "post_attention_layernorm")
            residual = a.get("x_residual", 1.0)
            h = [x + residual * y for x, y in zip(h, mixed)]
            block = self.routed if p + "mlp.experts.0.gate_proj.weight" in self.t else self.dense
            f = block(self.norm(h, p + ("pre_feedforward_layernorm" if sandwich else "post_attention_layernorm")), v % count, p + "mlp.")
            if sandwich:
                f = self.norm(f, p + "post_feedforward_layernorm")
            scalar = self.t.get(p + "layer_scalar", [1.0])[0]
            h = [(x + residual * y) * scalar for x, y in zip(h, f)]
            if a.get("loop_final_norm") and (v + 1) % count == 0 and v + 1 < self.layers:
                h = self.norm(h, "model.norm")
        self.position += 1
        x = self.norm(h, "model.norm")
        name = "lm_head.weight" if "lm_head.weight" in self.t else "model.embed_tokens.weight"
        head, plain, x = self.t[name], x, self.forward(x, name)
        logits = [dot(row, x) * a.get("logit_multiplier", 1.0) for row in head[:a["vocab_size"]]]
        logits += [0.0] * (a["vocab_size"] - len(logits))
        cap = a.get("final_logit_softcapping")
        if cap:
            logits = [cap * math.tanh(v / cap) for v in logits]
        if a.get("head_clusters"):
            clusters = self.log_softmax([dot(row, plain) for row in self.t["lm_head.clusters.weight"]])
            size = len(logits) // len(clusters)
            logits = [c + v for c, block in zip(clusters, parts(logits, size)) for v in self.log_softmax(block)]
        return logits

    @staticmethod
    def log_softmax(x):
        top = max(x)
        total = top + math.log(sum(math.exp(v - top) for v in x))
        return [v - total for v in x]


def logits(arch, tensors, tokens):
    """Logits of every position, flat."""
    decoder = SpecDecoder(arch, tensors)
    return [v for token in tokens for v in decoder.step(token)]
