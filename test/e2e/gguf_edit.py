"""A GGUF file with another value for one of its texts."""
import struct

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size:self.at]

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip(inner)
        else:
            self.at += SIZES[kind]


def with_text(source, target, key, value):
    """Writes `source` to `target` with `value` under `key`, which is added where there is none."""
    with open(source, "rb") as file:
        data = file.read()
    reader = Reader(data)
    reader.at = 8
    tensors, count = reader.number("Q"), reader.number("Q")
    entries, alignment = [], 32
    for _ in range(count):
        begin = reader.at
        name = reader.text()
        kind = reader.number("I")
        start = reader.at
        reader.skip(kind)
        if name == b"general.alignment":
            alignment = struct.unpack_from("<I", data, start)[0]
        if name != key.encode():
            entries.append(data[begin:reader.at])
    begin = reader.at
    for _ in range(tensors):
        reader.text()
        dimensions = reader.number("I")
        reader.at += 8 * dimensions + 4 + 8
    infos = data[begin:reader.at]
    weights = data[(reader.at + alignment - 1) // alignment * alignment:]
    name, text = key.encode(), value.encode()
    entries.append(struct.pack("<Q", len(name)) + name + struct.pack("<IQ", STRING, len(text)) + text)
    head = data[:8] + struct.pack("<QQ", tensors, len(entries)) + b"".join(entries) + infos
    with open(target, "wb") as file:
        file.write(head + b"\0" * (-len(head) % alignment) + weights)
