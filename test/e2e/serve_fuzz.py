#!/usr/bin/env python3
"""Requests without sense for a running cortiq-serve: JSON of its fields with values of every kind, schemas, grammars and tools, bytes
changed, heads cut. Each gets an answer that is HTTP and JSON, no answer is an internal error, and the server lives.

  test/e2e/serve_fuzz.py --port 8080 --requests 100000 --seed 1
"""
import argparse
import collections
import gzip
import json
import random
import socket
import sys
import time

VALUES = [None, True, False, 0, 1, -1, 2, 1.5, 1e300, -1e300, 2 ** 63, 2 ** 64, "", "a", "\u0000", "\ud83d\ude00", "hello there", [], [[]], [1, 2, 3], ["a", "b"],
          [{"role": "user", "content": "hi"}], [{"role": "user"}], [{"role": "assistant", "content": None, "tool_calls": []}], {}, {"a": {"b": [1]}},
          {"type": "json_object"}, {"type": "text"}, {"include_usage": True}, "auto", "none", "required", "mean", "last", "base64"]
FIELDS = ["prompt", "messages", "input", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "n", "best_of", "logprobs",
          "top_logprobs", "stream", "stream_options", "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "response_format", "grammar",
          "regex", "tools", "tool_choice", "parallel_tool_calls", "echo", "suffix", "chat_template_kwargs", "ignore_eos", "model", "user", "encoding_format",
          "dimensions", "pooling"]
TYPES = ["string", "integer", "number", "boolean", "null", "array", "object", "strange", ["string", "null"], 7]
PATTERNS = ["a+", "^[a-z]{2,5}$", "(", "(a|b)*c", "\\d{3}-\\d{4}", "[", "a{1,100000}", "(?=x)", "\\p{L}+", ".*", "(((((a)))))", "x{0}", "[^\\x00-\\xff]"]
LARK = ["start", "a", "b", ":", "|", "\"x\"", "/[a-z]+/", "(", ")", "*", "+", "?", "\n", "%ignore", "%json {}", "<|end|>", "<[5]>", "~", "3", "->", "A", "B", "[", "]", "!"]
PATHS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"]
ALLOWED = {200, 400, 404, 405, 408, 411, 413, 414, 415, 416, 429, 431}


class Maker:
    def __init__(self, seed):
        self.draw = random.Random(seed)

    def schema(self, depth=0):
        draw, out = self.draw, {}
        if draw.random() < 0.8:
            out["type"] = draw.choice(TYPES)
        for _ in range(draw.randint(0, 3)):
            key = draw.choice(["properties", "items", "anyOf", "allOf", "oneOf", "enum", "const", "required", "pattern", "minLength", "maxLength", "minimum", "maximum",
                               "multipleOf", "minItems", "maxItems", "additionalProperties", "$ref", "$defs", "format", "not", "prefixItems", "patternProperties",
                               "uniqueItems", "x-guidance", "if", "description"])
            part = (lambda: self.schema(depth + 1)) if depth < 4 else (lambda: draw.choice([True, False, {}]))
            out[key] = draw.choice([lambda: draw.choice(VALUES), part, lambda: [part() for _ in range(draw.randint(0, 3))],
                                    lambda: {draw.choice("abc"): part() for _ in range(draw.randint(0, 3))}, lambda: draw.choice(PATTERNS),
                                    lambda: draw.choice(["#", "#/$defs/a", "#/properties/a", "http://x"]), lambda: draw.randint(-5, 100000),
                                    lambda: draw.choice(["date-time", "email", "uuid", "ipv4"])])()
        return out

    def lark(self):
        return "start: " + " ".join(self.draw.choice(LARK) for _ in range(self.draw.randint(0, 25)))

    def tools(self):
        return [{"type": "function", "function": {"name": self.draw.choice(["f", "g", "h", "a b", ""]), "parameters": self.schema()}}
                for _ in range(self.draw.randint(0, 3))]

    def body(self, path):
        draw = self.draw
        body = {name: draw.choice(VALUES) for name in draw.sample(FIELDS, draw.randint(0, 5))}
        if draw.random() < 0.7:
            body["messages"] = [{"role": draw.choice(["user", "system", "assistant", "tool"]), "content": draw.choice(["hi", "", "a" * draw.randint(0, 300)])}]
            body["prompt"], body["input"] = "Once", draw.choice(["a text", ["a", "b"], [5, 6]])
        kind = draw.random()
        if kind < 0.15:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "strict": draw.random() < 0.5, "schema": self.schema()}}
        elif kind < 0.22:
            body["grammar"] = self.lark()
        elif kind < 0.29:
            body["regex"] = "".join(draw.choice(PATTERNS) for _ in range(draw.randint(1, 3)))
        elif kind < 0.36:
            body["tools"] = self.tools()
            body["tool_choice"] = draw.choice(["auto", "required", "none", {"type": "function", "function": {"name": "f"}}])
        if draw.random() < 0.9:
            body["max_tokens"] = draw.randint(0, 6)
        body.pop("max_completion_tokens", None)
        body["ignore_eos"] = False
        if body.get("n") not in (None, 1, 2):
            body.pop("n", None) if draw.random() < 0.9 else None
        body.setdefault("max_tokens", 2)
        if not isinstance(body["max_tokens"], int) or isinstance(body["max_tokens"], bool) or body["max_tokens"] > 64:
            body["max_tokens"] = 2 if draw.random() < 0.8 else draw.choice(["x", -1, 1.5])
        return body

    def text(self, path):
        draw = self.draw
        data = json.dumps(self.body(path)).encode("utf-8", "surrogatepass")
        if draw.random() < 0.15 and data:
            at = draw.randrange(len(data))
            data = data[:at] + draw.choice([b"", b"\x00", b"\"", b"{", b"\xff", b"[" * 100, b"\\u", b"1e999"]) + data[at + draw.randint(0, 3):]
        return data

    def request(self):
        """The bytes of a request, and whether an answer is certain."""
        draw, kind = self.draw, self.draw.random()
        path = draw.choice(PATHS)
        if kind < 0.86:
            data = self.text(path)
            return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(data), data), True
        if kind < 0.89:  # in parts
            data = self.text(path)
            cut = draw.randrange(len(data) + 1)
            parts = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (data[:cut], data[cut:]) if p)
            return b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n" % (path.encode(), parts), True
        if kind < 0.92:
            line = draw.choice([b"GET /", b"GET /healthz", b"GET /metrics", b"GET /v1/models", b"GET /v1/models/x%00", b"DELETE /v1/completions", b"OPTIONS *", b"HEAD /",
                                b"GET /" + b"a" * draw.randint(0, 9000), b"PUT /x", b"GET http://x/"])
            more = draw.choice([b"", b"Range: bytes=5-1\r\n", b"Range: bytes=0-18446744073709551615,1-2\r\n", b"Accept-Encoding: gzip\r\n", b"Expect: 100-continue\r\n",
                                b"Connection: close\r\n", b"X: " + b"y" * draw.randint(0, 9000) + b"\r\n"])
            return line + b" HTTP/1.1\r\nHost: x\r\n" + more + b"\r\n", True
        if kind < 0.96:
            return draw.choice([b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
                                b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                                b"POST /v1/completions HTTP/1.1\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\n\r\nabcd", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                b"GET / HTTP/9.9\r\n\r\n", b"GET\r\n\r\n", b"\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n"]), False
        return bytes(draw.randrange(256) for _ in range(draw.randint(1, 200))), False


class Client:
    """One connection after another; reads whole answers."""

    def __init__(self, port):
        self.port, self.socket, self.held = port, None, b""

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket, self.held = None, b""

    def more(self):
        part = self.socket.recv(65536)
        self.held += part
        return bool(part)

    def until(self, mark):
        while mark not in self.held:
            if not self.more():
                return None
        out, self.held = self.held.split(mark, 1)
        return out

    def exactly(self, count):
        while len(self.held) < count:
            if not self.more():
                return None
        out, self.held = self.held[:count], self.held[count:]
        return out

    def ask(self, data, patience):
        """Status and body of the answer; None: there was none before the connection ended, or in time."""
        if not self.socket:
            self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.socket.settimeout(patience)
        try:
            self.socket.sendall(data)
            while True:
                head = self.until(b"\r\n\r\n")
                if head is None:
                    return self.close()
                status = int(head.split(b" ", 2)[1])
                if status != 100:
                    break
            lower = head.lower()
            if data.startswith(b"HEAD"):
                body = b""
            elif b"transfer-encoding: chunked" in lower:
                body = b""
                while size := int(self.until(b"\r\n"), 16):
                    body += self.exactly(size + 2)[:-2]
                self.until(b"\r\n")
            else:
                length = int(lower.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]) if b"content-length:" in lower else 0
                body = self.exactly(length)
            if b"content-encoding: gzip" in lower:
                body = gzip.decompress(body)
            if b"connection: close" in lower:
                self.close()
            return status, head, body
        except (ConnectionError, socket.timeout, TimeoutError, BrokenPipeError):
            return self.close()


def wrong(answer, method):
    """What is wrong with an answer; nothing: it is one."""
    status, head, body = answer
    if status not in ALLOWED:
        return f"status {status}: {body[:300]!r}"
    if not body and method == b"HEAD":
        return None
    if b"application/json" in head:
        value = json.loads(body.decode("utf-8"))
        if status >= 400 and not value["error"]["message"]:
            return "an error without a sentence"
    elif b"text/event-stream" in head:
        events = body.decode("utf-8").split("\n\n")
        for event in events[:-1]:
            if event != "data: [DONE]":
                json.loads(event.removeprefix("data: "))
    return None


def fuzz(port, requests, seed, tell=None):
    """Faults found, each with the request that showed it, and how often each status came."""
    maker, client, faults, statuses = Maker(seed), Client(port), [], collections.Counter()
    for number in range(requests):
        data, certain = maker.request()
        try:
            answer = client.ask(data, 60 if certain else 0.2)
            fault = wrong(answer, data[:4]) if answer else "no answer" if certain else None
        except (OSError, ValueError, TypeError) as error:
            answer, fault = None, f"{type(error).__name__}: {error}"
        statuses[answer[0] if answer else "none"] += 1
        if not certain:
            client.close()
        if fault:
            client.close()
            faults.append((number, fault, data[:2000]))
            if len(faults) >= 20:
                break
        if tell and number % 5000 == 4999:
            tell(f"{number + 1} requests: {dict(statuses)}, {len(faults)} faults")
    client.close()
    return faults, statuses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--requests", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    start = time.monotonic()
    faults, statuses = fuzz(args.port, args.requests, args.seed, lambda line: print(line, flush=True))
    for number, fault, data in faults:
        print(f"request {number}: {fault}\n  {data!r}")
    print(f"{args.requests} requests in {time.monotonic() - start:.0f} s: {dict(statuses)}; {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
