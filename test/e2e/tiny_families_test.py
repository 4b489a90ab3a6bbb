#!/usr/bin/env python3
"""Families of decoders that have no fixture: tiny models, the reference backend and the exact arm against a decoder in plain Python.

One model for each thing that a header, a key or a tensor can ask for (test/cases/tiny_families.py, tiny_gguf_families.py).
"""
import re
import sys

import harness
import tiny_models_test as tiny

TOKENS = [token % 200 for token in tiny.PROMPT[:13]]


def check(tally, args, kind, name, made, scratch, decoder):
    path, flags, run_flags = scratch.path(f"{name}.{kind}"), getattr(made, "flags", ()), getattr(made, "run_flags", ())
    made.write(path)
    wanted = decoder.logits(made.arch, made.tensors(), TOKENS)
    errors, bound = [], getattr(made, "exact_bound", tiny.EXACT_BOUND)
    for label, program in (("reference", tiny.Program(args, path, "--backend=reference", *flags)), ("exact", tiny.compiled(args, path, scratch, "exact", *flags))):
        program.command += run_flags
        error = tiny.distance(program.forced(TOKENS, scratch), wanted)
        tally.check(f"{kind} {name} {label}", None if error <= bound else f"{error:.2e} from the plain decoder")
        errors.append(f"{label} {error:.1e}")
    fast = tiny.compiled(args, path, scratch, "fast", *flags)
    fast.command += run_flags
    error = tiny.distance(fast.forced(TOKENS, scratch), wanted)
    tally.check(f"{kind} {name} fast", None if error <= tiny.FAST_BOUND else f"{error:.2e} from the plain decoder")
    tally.note(f"{kind} {name:20} {'  '.join(errors)}  fast {error:.1e}")


def main():
    args = harness.arguments(__doc__, filter={"default": "", "help": "only models whose name matches"})
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    harness.tiny_models()
    import spec_decoder
    import tiny_families
    import tiny_gguf_families
    tally = harness.Tally()
    for kind, families in (("cmf", tiny_families), ("gguf", tiny_gguf_families)):
        for name in families.FAMILIES:
            if not re.search(args.filter, f"{kind} {name}"):
                continue
            with harness.Scratch() as scratch:
                try:
                    check(tally, args, kind, name, families.family(name), scratch, spec_decoder)
                except (RuntimeError, OSError, ValueError) as error:
                    tally.check(f"{kind} {name}", str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
