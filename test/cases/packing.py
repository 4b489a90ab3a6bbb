"""Random weights in each storage type: valid blocks whose decoded values have about the asked spread.

Each packer takes (rng, rows, cols, spread) and returns one bytes object a row-wise type has per row, joined; the types that
keep planes per tensor are marked in PLANES. Nothing here quantizes: codes are random, scales are chosen to fit.
"""
import math
import struct


def f16(value):
    return struct.pack("<e", value)


def bf16(value):
    return struct.pack("<f", value)[2:]


def signed(rng, value):
    """The value times a factor in 0.5..1.5, with a random sign: scales may be negative in a file."""
    return value * rng.uniform(0.5, 1.5) * rng.choice((-1, 1))


def plain(pack):
    return lambda rng, rows, cols, spread: b"".join(pack(rng.gauss(0, spread)) for _ in range(rows * cols))


def blocks(elements, block):
    """A row-wise type: cols / elements blocks a row, each made by block(rng, spread)."""

    def packer(rng, rows, cols, spread):
        assert cols % elements == 0
        return b"".join(block(rng, spread) for _ in range(rows * cols // elements))

    return packer


# The standard deviation of uniform codes: 4 bits 4.61, 5 bits 9.23, 8 bits 73.9; of IQ4_NL's sixteen levels 67.3.
def q4_0(rng, spread):
    return f16(signed(rng, spread / 4.61)) + rng.randbytes(16)


def q4_1(rng, spread):
    d = signed(rng, spread / 4.61)
    return f16(d) + f16(-7.5 * d) + rng.randbytes(16)


def q5_0(rng, spread):
    return f16(signed(rng, spread / 9.23)) + rng.randbytes(20)


def q5_1(rng, spread):
    d = signed(rng, spread / 9.23)
    return f16(d) + f16(-15.5 * d) + rng.randbytes(20)


def q8_0(rng, spread):
    return f16(signed(rng, spread / 73.9)) + rng.randbytes(32)


def iq4_nl(rng, spread):
    return f16(signed(rng, spread / 67.3)) + rng.randbytes(16)


# Super-blocks: the 6-bit sub-scales average 31.5, Q6_K's int8 ones have a deviation of 73.9.
def q4_k(rng, spread):
    d = abs(signed(rng, spread / 185))
    return f16(d) + f16(7.5 * d) + rng.randbytes(12 + 128)


def q5_k(rng, spread):
    d = abs(signed(rng, spread / 370))
    return f16(d) + f16(15.5 * d) + rng.randbytes(12 + 32 + 128)


def q6_k(rng, spread):
    return rng.randbytes(128 + 64 + 16) + f16(signed(rng, spread / 1370))


def q8_row(rng, rows, cols, spread):
    return rng.randbytes(rows * cols) + b"".join(f16(signed(rng, spread / 73.9)) for _ in range(rows))


def q8_2f(rng, rows, cols, spread):
    row = b"".join(f16(signed(rng, spread / 73.9)) for _ in range(rows))
    return rng.randbytes(rows * cols) + row + b"".join(f16(rng.uniform(0.6, 1.4)) for _ in range(cols))


def blr(rng, rows, cols, spread):
    """Two paths, of the largest rank up to 24."""
    paths, rank = 2, min(rows, cols, 24) // 8 * 8
    head = struct.pack("<4BIII", 0x4C, 1, paths, 0, rank, rows, cols)
    row = lambda: b"".join(f16(signed(rng, spread / math.sqrt(paths * rank))) for _ in range(rows))
    factors = lambda count: b"".join(f16(rng.uniform(0.6, 1.4)) for _ in range(count))
    return head + b"".join(row() + factors(cols) + factors(rank) + rng.randbytes(rows * rank // 8 + rank * cols // 8) for _ in range(paths))


def q4_block(rng, rows, cols, spread):
    groups = -(-rows * cols // 32)
    return rng.randbytes(16 * groups) + b"".join(f16(signed(rng, spread / 4.61)) for _ in range(groups))


def q4tp(rng, rows, cols, spread):
    groups = cols // 32
    nibbles = rng.randbytes(16 * groups * rows)
    params = b"".join(f16(math.log2(spread / 4.61) - rng.uniform(0.5, 1.5)) + f16(rng.uniform(0.03, 0.08)) for _ in range(rows))
    stride = -(-5 * groups // 8)
    codes = b"".join(rng.getrandbits(5 * groups).to_bytes(stride, "little") for _ in range(rows))
    return nibbles + params + codes


# name -> (type code in the file, columns must be a multiple of, packer)
GGUF = {
    "f32": (0, 1, plain(lambda v: struct.pack("<f", v))),
    "f16": (1, 1, plain(f16)),
    "q4_0": (2, 32, blocks(32, q4_0)),
    "q4_1": (3, 32, blocks(32, q4_1)),
    "q5_0": (6, 32, blocks(32, q5_0)),
    "q5_1": (7, 32, blocks(32, q5_1)),
    "q8_0": (8, 32, blocks(32, q8_0)),
    "q4_k": (12, 256, blocks(256, q4_k)),
    "q5_k": (13, 256, blocks(256, q5_k)),
    "q6_k": (14, 256, blocks(256, q6_k)),
    "iq4_nl": (20, 32, blocks(32, iq4_nl)),
    "bf16": (30, 1, plain(bf16)),
}
CMF = {
    "f32": (0, 1, plain(lambda v: struct.pack("<f", v))),
    "f16": (1, 1, plain(f16)),
    "bf16": (2, 1, plain(bf16)),
    "q8_row": (3, 1, q8_row),
    "q4_block": (4, 1, q4_block),
    "q8_2f": (9, 1, q8_2f),
    "q4_tiled": (11, 32, blocks(32, q4_0)),
    "q4tp": (15, 32, q4tp),
    "blr": (19, 8, blr),
}
