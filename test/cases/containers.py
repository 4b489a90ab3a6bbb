"""Writers of the two containers, small and without checks: tests hand them what they want in the file."""
import json
import struct

MASK = (1 << 64) - 1


def fmix64(x):
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & MASK
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ x >> 33


def hash64(data):
    """CMF's checksum of a section or a tensor."""
    acc = 0
    for i in range(0, len(data), 8):
        word = int.from_bytes(data[i:i + 8], "little")
        acc ^= fmix64(word) ^ (i // 8 * 0x9E3779B97F4A7C15 & MASK)
    return fmix64(acc ^ len(data))


def aligned(length, unit):
    return -(-length // unit) * unit


def write_cmf(path, header, tensors, vocab, features=1):
    """`features`: the bits of what a reader must know. `tensors`: (name, dtype, shape, payload); `header`: the JSON without section hashes; `vocab`: a tokenizer.json."""
    data, records, pool = bytearray(), bytearray(), bytearray()
    for name, dtype, shape, payload in tensors:
        data += bytes(aligned(len(data), 64) - len(data))
        padded = list(shape) + [0] * (6 - len(shape))
        records += struct.pack("<IHBB6IQQQ", len(pool), len(name), dtype, len(shape), *padded, len(data), len(payload), hash64(payload))
        pool += name.encode()
        data += payload
    directory = struct.pack("<QQ", len(tensors), 16 + len(records)) + records + pool
    header = dict(header, section_hashes={"vocab": f"{hash64(vocab):016x}"})
    text = json.dumps(header).encode()
    data_off = aligned(128 + len(text) + len(directory), 4096)
    sections = (128, len(text), 128 + len(text), len(directory), data_off, len(data), 0, 0, data_off + len(data), len(vocab), 0, 0)
    envelope = struct.pack("<4sIII12QQQ", b"CMF\1", 2, 0, features, *sections, hash64(text), hash64(directory))
    with open(path, "wb") as out:
        out.write((envelope + text + directory).ljust(data_off, b"\0") + data + vocab)


def append_cmf_section(path, slot, data, feature=0):
    """Puts `data` behind the file and names it at `slot` of the envelope: the form of a tail append."""
    with open(path, "rb") as file:
        raw = bytearray(file.read())
    raw += bytes(aligned(len(raw), 8) - len(raw))
    struct.pack_into("<QQ", raw, slot, len(raw), len(data))
    features, = struct.unpack_from("<I", raw, 12)
    struct.pack_into("<I", raw, 12, features | feature)
    with open(path, "wb") as out:
        out.write(raw + data)


def gguf_string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_value(value):
    """Type id and bytes: bool, u32, f32, string, or an array of strings or i32."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, gguf_string(value)
    strings = isinstance(value[0], str)
    items = b"".join(gguf_string(v) if strings else struct.pack("<i", v) for v in value)
    return 9, struct.pack("<IQ", 8 if strings else 5, len(value)) + items


def write_gguf(path, metadata, tensors):
    """`tensors`: (name, type, row-major shape, payload)."""
    head = bytearray(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata)))
    for key, value in metadata.items():
        kind, raw = gguf_value(value)
        head += gguf_string(key) + struct.pack("<I", kind) + raw
    data = bytearray()
    for name, kind, shape, payload in tensors:
        head += gguf_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += payload.ljust(aligned(len(payload), 32), b"\0")
    with open(path, "wb") as out:
        out.write(head.ljust(aligned(len(head), 32), b"\0") + data)
