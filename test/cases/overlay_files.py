"""CMF files taken apart and put together again, with skills and masks that a test makes up."""
import json
import struct

from containers import aligned, hash64

MASKS_BIT = 2


class CmfParts:
    """Header, tensors as (name, dtype, shape, payload), masks section and vocabulary of a CMF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        _, _, _, self.features, *sections = struct.unpack_from("<4sIII12QQQ", data)
        header, directory, blob, masks, vocab = (data[sections[2 * i]:sections[2 * i] + sections[2 * i + 1]] for i in range(5))
        self.header, self.masks, self.vocab = json.loads(header), masks, vocab
        self.header.pop("section_hashes", None)
        self.arch = self.header["arch"]
        count, pool = struct.unpack_from("<QQ", directory)
        self.tensors = []
        for i in range(count):
            name, length, dtype, rank, *rest = struct.unpack_from("<IHBB6IQQQ", directory, 16 + 56 * i)
            payload = blob[rest[6]:rest[6] + rest[7]]
            self.tensors.append((directory[pool + name:pool + name + length].decode(), dtype, rest[:rank], payload))

    def named(self, part):
        return [t for t in self.tensors if part in t[0] and not t[0].startswith("skill.")]

    def add_skill(self, skill, tensors, **record):
        """`tensors`: what it replaces, with the replacement's type, shape and payload."""
        self.header.setdefault("skills", []).append({"id": skill, "layers": [], **record})
        self.tensors += [(f"skill.{skill}.{name}", dtype, shape, payload) for name, dtype, shape, payload in tensors]

    def replaced(self, tensors):
        """The tensors with others of the same names in their places."""
        by_name = {t[0]: t for t in tensors}
        return [by_name.get(t[0], t) for t in self.tensors]

    def set_masks(self, *masks):
        self.masks = masks_section(self.arch, masks)
        self.features |= MASKS_BIT

    def write(self, path):
        data, records, pool = bytearray(), bytearray(), bytearray()
        for name, dtype, shape, payload in self.tensors:
            data += bytes(aligned(len(data), 64) - len(data))
            padded = list(shape) + [0] * (6 - len(shape))
            records += struct.pack("<IHBB6IQQQ", len(pool), len(name), dtype, len(shape), *padded, len(data), len(payload), hash64(payload))
            pool += name.encode()
            data += payload
        directory = struct.pack("<QQ", len(self.tensors), 16 + len(records)) + records + pool
        text = json.dumps(self.header).encode()
        start = aligned(128 + len(text) + len(directory), 4096)
        masks = start + len(data)
        sections = (128, len(text), 128 + len(text), len(directory), start, len(data), masks if self.masks else 0, len(self.masks),
                    masks + len(self.masks), len(self.vocab), 0, 0)
        envelope = struct.pack("<4sIII12QQQ", b"CMF\1", 2, 0, self.features, *sections, hash64(text), hash64(directory))
        with open(path, "wb") as out:
            out.write((envelope + text + directory).ljust(start, b"\0") + data + self.masks + self.vocab)
        return path


def _rows(rows, width, is_on):
    return b"".join(bytes(sum(1 << b for b in range(8) if 8 * byte + b < width and is_on(r, 8 * byte + b)) for byte in range((width + 7) // 8))
                    for r in range(rows))


def _on(row, item):
    return True


def masks_section(arch, masks):
    """`masks`: dictionaries with a name and, where not all is on, ffn, heads, gates, experts: functions of row and item."""
    layers, blobs = arch["num_layers"], []
    for mask in masks:
        blob = _rows(layers, arch["intermediate_size"], mask.get("ffn", _on)) + _rows(layers, arch["num_attention_heads"], mask.get("heads", _on))
        blob += _rows(1, layers, mask.get("gates", _on))
        if "experts" in mask:
            blob += _rows(layers, arch["moe"]["num_experts"], mask["experts"])
        blobs.append(blob.ljust(aligned(len(blob), 8), b"\0") if mask is not masks[-1] else blob)
    sizes = [len(_rows(layers, arch["intermediate_size"], _on)) + len(_rows(layers, arch["num_attention_heads"], _on)) + (layers + 7) // 8 +
             (len(_rows(layers, arch["moe"]["num_experts"], _on)) if "experts" in mask else 0) for mask in masks]
    entries = [{"task_id": i, "name": mask["name"], "sparsity": 0.5, "priority": mask.get("priority", "Normal"),
                "has_expert_fields": "experts" in mask, "blob_off": 0, "blob_len": sizes[i]} for i, mask in enumerate(masks)]
    # Offsets are padded to one width, so that they do not move what they point to.
    room = aligned(8 + len(json.dumps({"default_task": "", "masks": entries})) + 12 * len(masks), 8)
    for i, entry in enumerate(entries):
        entry["blob_off"] = room + sum(len(blob) for blob in blobs[:i])
    text = json.dumps({"default_task": "", "masks": entries}).encode().ljust(room - 8)
    return struct.pack("<II", len(masks), len(text)) + text + b"".join(blobs)
