"""Random weights of the low-bit types with a decoder in plain Python, written from the specification's formulas (2.12, 2.14)."""
import math
import struct
from dataclasses import dataclass
from typing import Callable

import packing


def half(raw, at):
    return struct.unpack_from("<e", raw, at)[0]


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def pack_low_rank(paths):
    def pack(rng, rows, cols, spread):
        rank = min(rows, cols, 24) // 8 * 8
        head = struct.pack("<4BIII", 0x4C, 1, paths, 0, rank, rows, cols)
        body = b""
        for _ in range(paths):
            body += b"".join(packing.f16(packing.signed(rng, spread / math.sqrt(paths * rank))) for _ in range(rows))
            body += b"".join(packing.f16(rng.uniform(0.6, 1.4)) for _ in range(cols + rank))
            body += rng.randbytes(rows * rank // 8 + rank * cols // 8)
        return head + body
    return pack


def unpack_low_rank(raw, rows, cols):
    paths, rank = raw[2], struct.unpack_from("<I", raw, 4)[0]
    out, at = [[0.0] * cols for _ in range(rows)], 16
    sign = lambda base, row, width, i: 1 if raw[base + row * width // 8 + i // 8] >> i % 8 & 1 else -1
    for _ in range(paths):
        h = [half(raw, at + 2 * i) for i in range(rows)]
        g = [half(raw, at + 2 * (rows + i)) for i in range(cols)]
        l = [half(raw, at + 2 * (rows + cols + i)) for i in range(rank)]
        u = at + 2 * (rows + cols + rank)
        v = u + rows * rank // 8
        at = v + rank * cols // 8
        for i in range(rows):
            for j in range(cols):
                out[i][j] += h[i] * g[j] * sum(l[k] * sign(u, i, rank, k) * sign(v, k, cols, j) for k in range(rank))
    return out


def pack_q2tp(rng, rows, cols, spread):
    groups = cols // 32
    params = b"".join(packing.f16(math.log2(spread) - rng.uniform(0.5, 1.0)) + packing.f16(rng.uniform(0.02, 0.05)) for _ in range(rows))
    codes = b"".join(rng.getrandbits(5 * groups).to_bytes(-(-5 * groups // 8), "little") for _ in range(rows))
    return rng.randbytes(8 * groups * rows) + params + codes


def unpack_q2tp(middle):
    def unpack(raw, rows, cols):
        groups = cols // 32
        params, stride = rows * groups * 8, -(-5 * groups // 8)
        out = []
        for r in range(rows):
            low, step = half(raw, params + 4 * r), half(raw, params + 4 * r + 2)
            ladder = [0.0, single(2 ** low)]
            while len(ladder) < 32:
                ladder.append(single(ladder[-1] * single(2 ** step)))
            codes = int.from_bytes(raw[params + 4 * rows + r * stride:params + 4 * rows + (r + 1) * stride], "little")
            row = []
            for i in range(cols):
                code = raw[(r * groups + i // 32) * 8 + i % 32 // 4] >> 2 * (i % 4) & 3
                row.append((code - middle) * ladder[codes >> 5 * (i // 32) & 31])
            out.append(row)
        return out
    return unpack


@dataclass(frozen=True)
class Codec:
    code: int         # in a CMF directory
    pack: Callable    # (rng, rows, cols, spread) -> bytes
    unpack: Callable  # (bytes, rows, cols) -> rows


CODECS = {
    "blr1": Codec(19, pack_low_rank(1), unpack_low_rank),
    "blr2": Codec(19, pack_low_rank(2), unpack_low_rank),
    "q2tp": Codec(16, pack_q2tp, unpack_q2tp(1.5)),
    "q2tp_affine": Codec(16, pack_q2tp, unpack_q2tp(1.0)),
}
