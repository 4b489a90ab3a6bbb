#!/usr/bin/env python3
"""Writes a dense model of any size with a prediction block whose guesses are right as often as wanted (GGUF, architecture qwen3,
Q4_0 and Q8_0), for measuring speculative decoding.

  bench/make_draft_gguf.py OUT.gguf --layers 24 --hidden 2048 --ffn 5632 --right 0.8

Token t is followed by (t + 1) mod vocab: row t + 1 of the head is row t of the embedding, and what the random layers add to the
stream is small. The block hands on the embedding of the token that it is given; of its own embedding a share 1 - RIGHT of the rows
belongs to other tokens, and there it guesses wrong.
"""
import argparse
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "cases"))
from containers import write_gguf

F32, Q4_0, Q8_0 = 0, 2, 8
HEAD = 128
QUIET = 0.001  # of what a layer adds


def half(value):
    return struct.pack("<e", value)


class Noise:
    """Q4_0 matrices of random codes."""

    def __init__(self, count=65536):
        self.codes = random.Random(7).randbytes(16 * count)
        self.count = count

    def matrix(self, rows, cols, spread=1.0):
        scale = half(spread * cols ** -0.5 / 4.6)
        blocks = [scale + self.codes[i * 16:i * 16 + 16] for i in range(self.count)]
        data = b"".join(blocks)
        need = rows * cols // 32 * 18
        start = random.randrange(self.count // 2) * 18
        return ((data[start:] + data * (need // len(data) + 1))[:need])


def ones(count):
    return struct.pack(f"<{count}f", *[1.0] * count)


def signs(token, hidden):
    """A row of the embedding in Q8_0: 32 signs a block."""
    rng = random.Random(token)
    return b"".join(half(0.5) + bytes(b"\x01\xff"[bit] for bit in map(int, f"{rng.getrandbits(32):032b}")) for _ in range(hidden // 32))


def identity(hidden):
    """[1 | 0] in Q8_0: the projection hands on its first half."""
    empty, rows = half(1.0) + bytes(32), []
    for row in range(hidden):
        one = bytearray(empty)
        one[2 + row % 32] = 1
        rows.append(empty * (row // 32) + bytes(one) + empty * (2 * hidden // 32 - row // 32 - 1))
    return b"".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    for name, default in (("layers", 24), ("hidden", 2048), ("ffn", 5632), ("vocab", 8192), ("context", 2048)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--right", type=float, default=1.0, help="share of right guesses")
    o = parser.parse_args()
    heads, kv_heads = o.hidden // HEAD, max(1, o.hidden // 512)
    noise = Noise()
    rows = [signs(token, o.hidden) for token in range(o.vocab)]
    rng = random.Random(3)
    wrong = [rng.randrange(o.vocab) if rng.random() >= o.right else token for token in range(o.vocab)]
    tensors = [("token_embd.weight", Q8_0, (o.vocab, o.hidden), b"".join(rows)),
               ("output.weight", Q8_0, (o.vocab, o.hidden), b"".join(rows[token - 1] for token in range(o.vocab))),
               ("output_norm.weight", F32, (o.hidden,), ones(o.hidden))]
    for i in range(o.layers + 1):
        b = f"blk.{i}."
        for name, r, c, spread in (("attn_q", heads * HEAD, o.hidden, 1), ("attn_k", kv_heads * HEAD, o.hidden, 1),
                                   ("attn_v", kv_heads * HEAD, o.hidden, 1), ("attn_output", o.hidden, heads * HEAD, QUIET),
                                   ("ffn_gate", o.ffn, o.hidden, 1), ("ffn_up", o.ffn, o.hidden, 1), ("ffn_down", o.hidden, o.ffn, QUIET)):
            tensors.append((b + name + ".weight", Q4_0, (r, c), noise.matrix(r, c, spread)))
        for name, size in (("attn_norm", o.hidden), ("ffn_norm", o.hidden), ("attn_q_norm", HEAD), ("attn_k_norm", HEAD)):
            tensors.append((b + name + ".weight", F32, (size,), ones(size)))
    n = f"blk.{o.layers}.nextn."
    tensors += [(n + "eh_proj.weight", Q8_0, (o.hidden, 2 * o.hidden), identity(o.hidden)),
                (n + "embed_tokens.weight", Q8_0, (o.vocab, o.hidden), b"".join(rows[token] for token in wrong))]
    tensors += [(n + name + ".weight", F32, (o.hidden,), ones(o.hidden)) for name in ("enorm", "hnorm", "shared_head_norm")]
    a = "qwen3."
    write_gguf(o.out, {
        "general.architecture": "qwen3", "general.name": f"guesses {o.right:g} right", "general.quantization_version": 2,
        a + "block_count": o.layers + 1, a + "nextn_predict_layers": 1, a + "context_length": o.context,
        a + "embedding_length": o.hidden, a + "feed_forward_length": o.ffn, a + "attention.head_count": heads,
        a + "attention.head_count_kv": kv_heads, a + "attention.key_length": HEAD, a + "attention.value_length": HEAD,
        a + "rope.freq_base": 10000.0, a + "attention.layer_norm_rms_epsilon": 1e-6,
    }, tensors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
