#!/usr/bin/env python3
"""Run by vulkan_faults_test.py, in a process of its own: greedy tokens through the C library on a device. Prints them as JSON, or its last
error and exits with 1.

    library_steps.py LIBRARY ARTIFACT FALLBACK COUNT ID,ID,...
"""
import ctypes
import json
import sys

from vulkan_test import LoadOptions


class ModelInfo(ctypes.Structure):
    """The beginning of cortiq_model_info of api/cortiq.h."""
    _fields_ = [("size", ctypes.c_size_t), *((name, ctypes.c_char_p) for name in ("name", "architecture", "target", "text_absent")), ("exact", ctypes.c_int32),
                ("hidden", ctypes.c_uint64), ("layers", ctypes.c_uint64), ("vocab", ctypes.c_uint64)]


def main():
    path, artifact, fallback, count, ids = sys.argv[1:]
    library = ctypes.CDLL(path)
    library.cortiq_last_error.restype = ctypes.c_char_p
    prompt = [int(word) for word in ids.split(",")]

    def must(status):
        if status:
            print(library.cortiq_last_error().decode(), file=sys.stderr)
            sys.exit(1)

    model, session, logits, tokens = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.POINTER(ctypes.c_float)(), []
    options = LoadOptions(size=ctypes.sizeof(LoadOptions), device=b"0", cpu_fallback=int(fallback))
    must(library.cortiq_model_load(artifact.encode(), ctypes.byref(options), ctypes.byref(model)))
    info = ModelInfo(size=ctypes.sizeof(ModelInfo))
    must(library.cortiq_model_describe(model, ctypes.byref(info)))
    must(library.cortiq_session_create(model, None, ctypes.byref(session)))
    must(library.cortiq_session_run(session, (ctypes.c_uint32 * len(prompt))(*prompt), ctypes.c_size_t(len(prompt)), 0, ctypes.byref(logits), None))
    while True:
        tokens.append(max(range(info.vocab), key=lambda i: logits[i]))
        if len(tokens) == int(count):
            break
        must(library.cortiq_session_append(session, ctypes.c_uint32(tokens[-1]), ctypes.byref(logits)))
    print(json.dumps(tokens))
    library.cortiq_session_free(session)
    library.cortiq_model_free(model)


if __name__ == "__main__":
    main()
