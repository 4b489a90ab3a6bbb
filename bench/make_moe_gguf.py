#!/usr/bin/env python3
"""Writes a mixture-of-experts model of any size with random weights (GGUF, architecture qwen3moe, Q4_K), for measuring.

  bench/make_moe_gguf.py OUT.gguf --layers 36 --experts 64

No byte of it means anything, but every block is valid and the activations stay in range. The size is that of the experts
to a few percent: layers * experts * 3 * hidden * ffn * 0.5625 bytes.
"""
import argparse
import random
import struct

ALIGNMENT = 32
F32, Q4_K = 0, 12


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    body = string(value) if kind == "s" else struct.pack("<" + {"u": "I", "f": "f"}[kind], value)
    return string(key) + struct.pack("<I", {"s": 8, "u": 4, "f": 6}[kind]) + body


class Blocks:
    """Random Q4_K blocks of 256 weights whose values are near `size` in amount."""

    def __init__(self, size, count=65536):
        source = random.Random(7)
        # Codes average 7.5, scales 31.5: with a minimum of 7.5 steps the weights average zero.
        scale = struct.pack("<e", size / 31.5 / 4.6)
        minimum = struct.pack("<e", 7.5 * size / 31.5 / 4.6)
        scales = bytes([0x1F] * 4 + [0x1F] * 4 + [0xFF] * 4)
        self.data = b"".join(scale + minimum + scales + source.randbytes(128) for _ in range(count))

    def write(self, out, weights):
        left = weights // 256 * 144
        while left:
            # Every piece starts elsewhere, so that no two experts are the same.
            start = random.randrange(len(self.data) // 288) * 144
            piece = self.data[start:start + min(left, len(self.data) - start)]
            out.write(piece)
            left -= len(piece)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    for name, default in (("layers", 36), ("experts", 64), ("used", 4), ("hidden", 2048), ("ffn", 1536),
                          ("vocab", 32768), ("context", 4096)):
        parser.add_argument("--" + name, type=int, default=default)
    o = parser.parse_args()
    heads, kv_heads, head = o.hidden // 128, max(1, o.hidden // 512), 128

    tensors = [("token_embd.weight", [o.hidden, o.vocab], Q4_K)]
    for i in range(o.layers):
        b = f"blk.{i}."
        tensors += [
            (b + "attn_norm.weight", [o.hidden], F32),
            (b + "attn_q.weight", [o.hidden, heads * head], Q4_K),
            (b + "attn_k.weight", [o.hidden, kv_heads * head], Q4_K),
            (b + "attn_v.weight", [o.hidden, kv_heads * head], Q4_K),
            (b + "attn_q_norm.weight", [head], F32),
            (b + "attn_k_norm.weight", [head], F32),
            (b + "attn_output.weight", [heads * head, o.hidden], Q4_K),
            (b + "ffn_norm.weight", [o.hidden], F32),
            (b + "ffn_gate_inp.weight", [o.hidden, o.experts], F32),
            (b + "ffn_gate_exps.weight", [o.hidden, o.ffn, o.experts], Q4_K),
            (b + "ffn_up_exps.weight", [o.hidden, o.ffn, o.experts], Q4_K),
            (b + "ffn_down_exps.weight", [o.ffn, o.hidden, o.experts], Q4_K),
        ]
    tensors.append(("output_norm.weight", [o.hidden], F32))

    a = "qwen3moe."
    entries = [entry("general.architecture", "s", "qwen3moe"), entry("general.name", "s", "synthetic experts"),
               entry(a + "block_count", "u", o.layers), entry(a + "context_length", "u", o.context),
               entry(a + "embedding_length", "u", o.hidden), entry(a + "feed_forward_length", "u", o.ffn),
               entry(a + "attention.head_count", "u", heads), entry(a + "attention.head_count_kv", "u", kv_heads),
               entry(a + "attention.key_length", "u", head), entry(a + "attention.value_length", "u", head),
               entry(a + "attention.layer_norm_rms_epsilon", "f", 1e-6), entry(a + "rope.freq_base", "f", 1e6),
               entry(a + "vocab_size", "u", o.vocab), entry(a + "expert_count", "u", o.experts),
               entry(a + "expert_used_count", "u", o.used), entry(a + "expert_feed_forward_length", "u", o.ffn)]

    def weights(shape):
        count = 1
        for n in shape:
            count *= n
        return count

    def size(shape, kind):
        return weights(shape) * 4 if kind == F32 else weights(shape) // 256 * 144

    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries)) + b"".join(entries)
    offset = 0
    for name, shape, kind in tensors:
        header += string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        header += struct.pack("<IQ", kind, offset)
        offset += -(-size(shape, kind) // ALIGNMENT) * ALIGNMENT

    random.seed(1)
    blocks = Blocks(o.hidden ** -0.5)
    # A token's own embedding has to outweigh what attention gathers, else all tokens choose the same experts.
    loud, quiet = Blocks(1), Blocks(0.1 * o.hidden ** -0.5)
    with open(o.out, "wb") as out:
        out.write(header + bytes(-len(header) % ALIGNMENT))
        for name, shape, kind in tensors:
            if kind == Q4_K:
                (loud if "embd" in name else quiet if "output" in name else blocks).write(out, weights(shape))
            elif "gate_inp" in name:
                out.write(struct.pack(f"<{weights(shape)}f", *(random.gauss(0, o.hidden ** -0.5)
                                                               for _ in range(weights(shape)))))
            else:
                out.write(struct.pack("<f", 1.0) * weights(shape))
            out.write(bytes(-size(shape, kind) % ALIGNMENT))


if __name__ == "__main__":
    main()
