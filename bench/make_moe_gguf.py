#!/usr/bin/env python3
"""Writes a mixture-of-experts model of any size with random weights (GGUF, architecture qwen3moe, Q4_K), for measuring.

  bench/make_moe_gguf.py OUT.gguf --layers 36 --experts 64
  bench/make_moe_gguf.py OUT.gguf --layers 12 --experts 128 --used 8 --ffn 768 --heads 32 --kv-heads 4 --down q6_k

No byte of it means anything, but every block is valid and the activations stay in range. The size is that of the experts
to a few percent: layers * experts * 3 * hidden * ffn * 0.5625 bytes. --gate-up and --down name the codec of the experts'
matrices (files of Q4_K commonly hold some of the latter in Q6_K).
"""
import argparse
import math
import random
import struct

ALIGNMENT = 32
F32, Q4_K, Q6_K, MXFP4 = 0, 12, 14, 39
CODECS = {"q4_k": Q4_K, "q6_k": Q6_K, "mxfp4": MXFP4}
BLOCKS = {F32: (1, 4), Q4_K: (256, 144), Q6_K: (256, 210), MXFP4: (32, 17)}  # weights, bytes


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    body = string(value) if kind == "s" else struct.pack("<" + {"u": "I", "f": "f"}[kind], value)
    return string(key) + struct.pack("<I", {"s": 8, "u": 4, "f": 6}[kind]) + body


def q4_k_block(size, codes):
    # Codes average 7.5, scales 31.5: with a minimum of 7.5 steps the weights average zero.
    scale = size / 31.5 / 4.6
    return struct.pack("<ee", scale, 7.5 * scale) + bytes([0x1F] * 8 + [0xFF] * 4) + codes(128)


def q6_k_block(size, codes):
    return codes(192) + bytes([32] * 16) + struct.pack("<e", size / 32 / 18.5)


def mxfp4_block(size, codes):
    return bytes([127 + round(math.log2(size / 3))]) + codes(16)


class Blocks:
    """Random blocks of a codec whose values are near `size` in amount."""

    MAKERS = {Q4_K: q4_k_block, Q6_K: q6_k_block, MXFP4: mxfp4_block}

    def __init__(self, size, kind=Q4_K, count=65536):
        source = random.Random(7)
        self.block, self.bytes = BLOCKS[kind]
        self.data = b"".join(self.MAKERS[kind](size, source.randbytes) for _ in range(count))

    def write(self, out, weights):
        left = weights // self.block * self.bytes
        while left:
            # Every piece starts elsewhere, so that no two experts are the same.
            start = random.randrange(len(self.data) // self.bytes // 2) * self.bytes
            piece = self.data[start:start + min(left, len(self.data) - start)]
            out.write(piece)
            left -= len(piece)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    for name, default in (("layers", 36), ("experts", 64), ("used", 4), ("hidden", 2048), ("ffn", 1536),
                          ("vocab", 32768), ("context", 4096)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--heads", type=int, help="of 128; default: hidden / 128")
    parser.add_argument("--kv-heads", type=int, help="default: hidden / 512")
    parser.add_argument("--gate-up", choices=CODECS, default="q4_k")
    parser.add_argument("--down", choices=CODECS, default="q4_k")
    o = parser.parse_args()
    heads, kv_heads, head = o.heads or o.hidden // 128, o.kv_heads or max(1, o.hidden // 512), 128
    gate_up, down = CODECS[o.gate_up], CODECS[o.down]

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
            (b + "ffn_gate_exps.weight", [o.hidden, o.ffn, o.experts], gate_up),
            (b + "ffn_up_exps.weight", [o.hidden, o.ffn, o.experts], gate_up),
            (b + "ffn_down_exps.weight", [o.ffn, o.hidden, o.experts], down),
        ]
    tensors.append(("output_norm.weight", [o.hidden], F32))

    a = "qwen3moe."
    entries = [entry("general.architecture", "s", "qwen3moe"), entry("general.name", "s", "synthetic experts"),
               entry("tokenizer.ggml.model", "s", "no_vocab"),
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
        block, size_of_block = BLOCKS[kind]
        return weights(shape) // block * size_of_block

    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries)) + b"".join(entries)
    offset = 0
    for name, shape, kind in tensors:
        header += string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        header += struct.pack("<IQ", kind, offset)
        offset += -(-size(shape, kind) // ALIGNMENT) * ALIGNMENT

    random.seed(1)
    blocks = {kind: Blocks(o.hidden ** -0.5, kind) for kind in {Q4_K, gate_up, down}}
    # A token's own embedding has to outweigh what attention gathers, else all tokens choose the same experts.
    loud, quiet = Blocks(1), Blocks(0.1 * o.hidden ** -0.5)
    with open(o.out, "wb") as out:
        out.write(header + bytes(-len(header) % ALIGNMENT))
        for name, shape, kind in tensors:
            if kind != F32:
                (loud if "embd" in name else quiet if "output" in name else blocks[kind]).write(out, weights(shape))
            elif "gate_inp" in name:
                out.write(struct.pack(f"<{weights(shape)}f", *(random.gauss(0, o.hidden ** -0.5)
                                                               for _ in range(weights(shape)))))
            else:
                out.write(struct.pack("<f", 1.0) * weights(shape))
            out.write(bytes(-size(shape, kind) % ALIGNMENT))


if __name__ == "__main__":
    main()
