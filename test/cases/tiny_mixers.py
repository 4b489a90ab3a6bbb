"""The tiny models' layers with recurrent state: tensors, header fields, and the same arithmetic in plain Python.

The first layer of such a model has the mixer, the second plain attention. Every mixer writes its recurrence the way its own
description does, one token after the other, sharing no code with what it checks.
"""
import math
import struct

HEADS, KEY_HEADS, KEY, VALUE, TAPS, PHASES, RANK = 4, 2, 6, 10, 3, 5, 7
NORM_EPS = 1e-5


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def split(flat, size):
    return [flat[i:i + size] for i in range(0, len(flat), size)]


def unit(x):
    return [v / math.sqrt(sum(w * w for w in x) + 1e-6) for v in x]


def rms(x, weight):
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + NORM_EPS)
    return [v * scale * w for v, w in zip(x, weight)]


class Window:
    """The last inputs of a convolution over time; taps oldest first, one row a channel."""

    def __init__(self, taps, width):
        self.taps, self.rows = split(taps, width), [[0.0] * (len(taps) // width) for _ in range(width)]

    def push(self, row):
        self.rows = self.rows[1:] + [row]
        return [sum(t * r[c] for t, r in zip(taps, self.rows)) for c, taps in enumerate(self.taps)]


class State:
    """A matrix of rows x cols numbers for one head."""

    def __init__(self, rows, cols):
        self.s = [[0.0] * cols for _ in range(rows)]

    def step(self, decay, key, value, rate, query, corrects=True):
        self.s = [[d * v for v in row] for d, row in zip(decay, self.s)]
        known = [sum(k * row[j] for k, row in zip(key, self.s)) if corrects else 0.0 for j in range(len(value))]
        for k, row in zip(key, self.s):
            for j in range(len(value)):
                row[j] += rate * k * (value[j] - known[j])
        return [sum(q * row[j] for q, row in zip(query, self.s)) for j in range(len(value))]


class ShortConv:
    layer_type, arch = "ShortConv", {"linear_conv_kernel_dim": TAPS}

    @staticmethod
    def matrices(hidden):
        return [("short_conv.in_proj.weight", 3 * hidden, hidden), ("short_conv.out_proj.weight", hidden, hidden)]

    @staticmethod
    def vectors(hidden):
        return [("short_conv.conv.weight", (hidden, 1, TAPS), 0.3)]

    def __init__(self, w, p):
        self.w, self.p, self.window = w, p + "short_conv.", Window(w[p + "short_conv.conv.weight"], TAPS)

    def step(self, project, x):
        b, c, u = split(project(x, self.p + "in_proj"), len(x))
        sums = self.window.push([i * j for i, j in zip(b, u)])
        return project([i * j for i, j in zip(c, sums)], self.p + "out_proj")


class GatedDelta:
    layer_type = "LinearAttention"
    key, value = KEY, VALUE
    decay = 0.2  # spread of A_log around 0
    arch = {"linear_conv_kernel_dim": TAPS, "linear_num_key_heads": KEY_HEADS, "linear_num_value_heads": HEADS,
            "linear_key_head_dim": KEY, "linear_value_head_dim": VALUE,
            "linear_core": {"kind": "gated_delta_net", "num_heads": HEADS, "value_head_dim": VALUE}}

    @classmethod
    def qkv(cls):
        return 2 * KEY_HEADS * cls.key + HEADS * cls.value

    @classmethod
    def matrices(cls, hidden):
        p = "linear_attn."
        return [(p + "in_proj_qkv.weight", cls.qkv(), hidden), (p + "in_proj_z.weight", HEADS * cls.value, hidden),
                (p + "in_proj_a.weight", HEADS, hidden), (p + "in_proj_b.weight", HEADS, hidden),
                (p + "out_proj.weight", hidden, HEADS * cls.value)]

    @classmethod
    def vectors(cls, hidden):
        p = "linear_attn."
        return [(p + "conv1d.weight", (cls.qkv(), 1, TAPS), 0.3), (p + "A_log", HEADS, 0.0, cls.decay), (p + "dt_bias", HEADS, 0.0),
                (p + "norm.weight", cls.value, 1.0)]

    def __init__(self, w, p):
        self.w, self.p = w, p + "linear_attn."
        self.window = Window(w[self.p + "conv1d.weight"], TAPS)
        self.states = [State(self.key, self.value) for _ in range(HEADS)]

    def step(self, project, x):
        w, p, size = self.w, self.p, KEY_HEADS * self.key
        u = [silu(v) for v in self.window.push(project(x, p + "in_proj_qkv"))]
        q, k, v = split(u[:size], self.key), split(u[size:2 * size], self.key), split(u[2 * size:], self.value)
        z, a, b = split(project(x, p + "in_proj_z"), self.value), project(x, p + "in_proj_a"), project(x, p + "in_proj_b")
        out = []
        for h, state in enumerate(self.states):
            g = math.exp(-math.exp(w[p + "A_log"][h]) * softplus(a[h] + w[p + "dt_bias"][h]))
            kv = h * KEY_HEADS // HEADS
            o = state.step([g] * self.key, unit(k[kv]), v[h], sigmoid(b[h]), [i / math.sqrt(self.key) for i in unit(q[kv])])
            out += [y * silu(gate) for y, gate in zip(rms(o, w[p + "norm.weight"]), z[h])]
        return project(out, p + "out_proj")


class Qwen3Next(GatedDelta):
    """With the equal head sizes that GGUF has one key for, and decays whose logarithm is exact: the same model in both containers."""
    key = value = 8
    decay = 0.0
    arch = {**GatedDelta.arch, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
            "linear_core": {**GatedDelta.arch["linear_core"], "value_head_dim": 8}}
    gguf_names = {"linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate", "linear_attn.conv1d": "ssm_conv1d",
                  "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out", "post_attention_layernorm": "post_attention_norm"}
    gguf_keys = {"ssm.conv_kernel": TAPS, "ssm.state_size": 8, "ssm.group_count": KEY_HEADS, "ssm.time_step_rank": HEADS,
                 "ssm.inner_size": HEADS * 8, "full_attention_interval": 2}

    @staticmethod
    def to_gguf(tensors):
        """Names and values that are no plain renaming: for each key head the b rows of its value heads, then their a rows."""
        tensors = {name: rest for name, *rest in tensors}
        out = []
        for name, (codec, shape, payload) in tensors.items():
            p = name[:name.rindex("linear_attn.")] if "linear_attn." in name else ""
            block = "blk." + p.split(".")[2] + "." if p else ""
            if name.endswith("A_log"):
                values = struct.unpack(f"<{HEADS}f", payload)
                out.append((block + "ssm_a", codec, shape, struct.pack(f"<{HEADS}f", *(-math.exp(v) for v in values))))
            elif name.endswith("linear_attn.dt_bias"):
                out.append((block + "ssm_dt.bias", codec, shape, payload))
            elif name.endswith("in_proj_b.weight"):
                a, shared, row = tensors[name.replace("in_proj_b", "in_proj_a")][2], HEADS // KEY_HEADS, len(payload) // HEADS
                parts = [part[g * shared * row:(g + 1) * shared * row] for g in range(KEY_HEADS) for part in (payload, a)]
                out.append((block + "ssm_ba.weight", codec, (2 * HEADS, shape[1]), b"".join(parts)))
            elif not name.endswith("in_proj_a.weight"):
                out.append((name, codec, shape, payload))
        return out


class Lfm2(ShortConv):
    """LFM2 as GGUF has it too."""
    gguf_names = {"short_conv.in_proj": "shortconv.in_proj", "short_conv.conv": "shortconv.conv",
                  "short_conv.out_proj": "shortconv.out_proj", "model.norm": "token_embd_norm"}
    gguf_keys = {"shortconv.l_cache": TAPS}

    @staticmethod
    def to_gguf(tensors):
        return list(tensors)


class Kda:
    """`lower` is kda_gate_lower_bound; A_log has a value a head, or each channel of each head."""
    layer_type = "Kda"
    lower, decays = None, HEADS
    arch = {"linear_conv_kernel_dim": TAPS, "linear_num_key_heads": HEADS, "linear_key_head_dim": KEY,
            "linear_value_head_dim": VALUE}

    @classmethod
    def matrices(cls, hidden):
        p, keys, values = "kda_attn.", HEADS * KEY, HEADS * VALUE
        gate = [(p + "g_proj.weight", values, hidden)] if cls.lower else [
            (p + "g_a_proj.weight", RANK, hidden), (p + "g_b_proj.weight", values, RANK)]
        return [(p + "q_proj.weight", keys, hidden), (p + "k_proj.weight", keys, hidden), (p + "v_proj.weight", values, hidden),
                (p + "b_proj.weight", HEADS, hidden), (p + "f_a_proj.weight", RANK, hidden), (p + "f_b_proj.weight", keys, RANK),
                (p + "o_proj.weight", hidden, values), *gate]

    @classmethod
    def vectors(cls, hidden):
        p, keys, values = "kda_attn.", HEADS * KEY, HEADS * VALUE
        return [(p + "q_conv1d.weight", (keys, 1, TAPS), 0.3), (p + "k_conv1d.weight", (keys, 1, TAPS), 0.3),
                (p + "v_conv1d.weight", (values, 1, TAPS), 0.3), (p + "dt_bias", keys, 0.0), (p + "A_log", cls.decays, 0.0),
                (p + "o_norm.weight", VALUE, 1.0)]

    def __init__(self, w, p):
        self.w, self.p = w, p + "kda_attn."
        self.windows = {part: Window(w[f"{self.p}{part}_conv1d.weight"], TAPS) for part in "qkv"}
        self.states = [State(KEY, VALUE) for _ in range(HEADS)]

    def step(self, project, x):
        w, p = self.w, self.p
        q, k, v = (split([silu(c) for c in self.windows[part].push(project(x, f"{p}{part}_proj"))], size)
                   for part, size in (("q", KEY), ("k", KEY), ("v", VALUE)))
        f = split([i + j for i, j in zip(project(project(x, p + "f_a_proj"), p + "f_b_proj"), w[p + "dt_bias"])], KEY)
        gate = project(x, p + "g_proj") if self.lower else project(project(x, p + "g_a_proj"), p + "g_b_proj")
        b, gate, out = project(x, p + "b_proj"), split(gate, VALUE), []
        for h, state in enumerate(self.states):
            rate = [math.exp(w[p + "A_log"][h if self.decays == HEADS else h * KEY + i]) for i in range(KEY)]
            log = [self.lower * sigmoid(r * i) if self.lower else -r * softplus(i) for r, i in zip(rate, f[h])]
            o = state.step([math.exp(i) for i in log], unit(k[h]), v[h], sigmoid(b[h]), [i / math.sqrt(KEY) for i in unit(q[h])])
            out += [y * sigmoid(g) for y, g in zip(rms(o, w[p + "o_norm.weight"]), gate[h])]
        return project(out, p + "o_proj")


class BoundedKda(Kda):
    lower, decays = -5.0, HEADS * KEY
    arch = {**Kda.arch, "kda_gate_lower_bound": lower}


class VmfPhase:
    layer_type, delta = "LinearAttention", False
    arch = {"linear_core": {"kind": "vmf_phase", "num_heads": HEADS, "nphase": PHASES, "value_head_dim": VALUE}}

    @classmethod
    def matrices(cls, hidden):
        p = "vmf_attn."
        return [(p + "thq.weight", HEADS * PHASES, hidden), (p + "thk.weight", HEADS * PHASES, hidden),
                (p + "v_proj.weight", HEADS * VALUE, hidden), (p + "out_proj.weight", hidden, HEADS * VALUE),
                *([(p + "k_gate.weight", HEADS, hidden)] if cls.delta else [])]

    @classmethod
    def vectors(cls, hidden):
        p = "vmf_attn."
        return [(p + "A_log", HEADS * 2 * PHASES, 0.0),
                *([(p + "k_gate.bias", HEADS, 0.0), (p + "conv1d.weight", (hidden, 1, TAPS), 0.3)] if cls.delta else [])]

    def __init__(self, w, p):
        self.w, self.p = w, p + "vmf_attn."
        self.window = Window(w[self.p + "conv1d.weight"], TAPS) if self.delta else None
        self.states = [State(2 * PHASES, VALUE) for _ in range(HEADS)]

    def step(self, project, x):
        w, p = self.w, self.p
        x = self.window.push(x) if self.window else x
        phi = lambda theta: [v / math.sqrt(PHASES if self.delta else 1) for v in [*map(math.cos, theta), *map(math.sin, theta)]]
        q, k = (split(project(x, p + part), PHASES) for part in ("thq", "thk"))
        v, out = split(project(x, p + "v_proj"), VALUE), []
        kappa = [sigmoid(g) for g in project(x, p + "k_gate")] if self.delta else [1.0] * HEADS
        for h, state in enumerate(self.states):
            decay = [math.exp(-math.exp(a)) for a in w[p + "A_log"][h * 2 * PHASES:(h + 1) * 2 * PHASES]]
            out += state.step(decay, phi(k[h]), v[h], kappa[h], phi(q[h]), corrects=self.delta)
        return project(out, p + "out_proj")


class VmfPhaseDelta(VmfPhase):
    """With the delta correction, a gate on the keys, and a convolution in front."""
    delta = True
    arch = {"linear_core": {**VmfPhase.arch["linear_core"], "kind": "vmf_phase_delta_v1", "phase_delta_layers": [0]}}


MIXERS = {"lfm2": Lfm2, "qwen3next": Qwen3Next, "gated_delta": GatedDelta, "kda": Kda, "kda_bounded": BoundedKda, "vmf_phase": VmfPhase,
          "vmf_phase_delta": VmfPhaseDelta}


def of(arch, layer):
    """The mixer of a layer, None for attention."""
    return MIXERS.get(arch) if layer == 0 else None
