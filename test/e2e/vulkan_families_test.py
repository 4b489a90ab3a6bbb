#!/usr/bin/env python3
"""Decoders that have no fixture, wholly on a device of Vulkan (the software device of Mesa where there is no other): tiny models, their logits
and greedy tokens against the reference, no stage on the CPU, nothing said by the validation layer. One model for each operation that no
fixture of vulkan_fixtures_test.py has; all of them with CORTIQ_TEST_ALL.
"""
import os
import re
import sys

import harness
import tiny_models_test as tiny
import vulkan_test

# Rotations of activations, scores by resonance, anchors with windows of head groups, a vocabulary that goes on behind its head; both linear
# attentions with a decay a channel, beside heads that are no multiple of 8 wide; experts of low rank, and of several widths and codecs.
FAMILIES = ["prism_half", "resonance_sigmoid", "bounded_groups", "short_tables", "low_rank_experts", "unequal_experts"]
MIXERS = ["kda_bounded-f16.cmf", "vmf_phase_delta-f16.cmf"]
ALL_FAMILIES = FAMILIES + ["bounded", "genome", "prism", "prism_affine", "prism_hybrid", "resonance", "resonance_first", "resonance_stacked",
                           "short_tied_table"]
ALL_MIXERS = MIXERS + ["kda-f32.cmf", "vmf_phase-f32.cmf", "llama-f32.cmf"]
FAST = ["prism_half"]  # whose results are made in 8 bits by a shader of their own
PROMPT = [token % 200 for token in tiny.PROMPT[:11]]
LEFT = re.compile(r"in between: (\d+)")


def greedy(program, *flags):
    command = [*program.command, "--tokens", ",".join(map(str, PROMPT)), "-n", str(tiny.GREEDY), "--temp", "0", "--ignore-eos", "--json", *flags]
    result = harness.run(command, timeout=600)
    why_not = harness.why_not_success(result)
    if why_not:
        raise RuntimeError(why_not)
    return tiny.json.loads(result.stdout)["tokens"], result.stderr


def check(tally, args, name, model, scratch, flags=(), bound=tiny.EXACT_BOUND):
    reference = tiny.Program(args, model, "--backend=reference", *flags)
    wanted_tokens, _ = greedy(reference)
    forced = PROMPT + wanted_tokens[:-1]
    wanted = reference.forced(forced, scratch)
    program = tiny.compiled(args, model, scratch, "exact", "--target", "vulkan", *flags)
    program.command += ["--device", "0"]
    error = tiny.distance(program.forced(forced, scratch), wanted)
    tally.check(f"{name} logits", None if error <= bound else f"relative RMS {error:.2e} from the reference")
    tokens, said = greedy(program, "--stats")
    steps = tiny.clear_steps(wanted, len(wanted) // len(forced), len(PROMPT))
    tally.check(f"{name} tokens", tokens[:steps] != wanted_tokens[:steps] and f"{tokens}, expected {wanted_tokens} for {steps} steps")
    left = LEFT.search(said)
    tally.check(f"{name}: all on the device", (not left or left[1] != "0") and f"--stats says: {said}")
    message = [line for line in said.splitlines() if "VUID" in line or "Validation" in line]
    tally.check(f"{name}: validation layer", message and message[0])
    notes = f"exact {error:.1e}"
    if name in FAST:
        fast = tiny.compiled(args, model, scratch, "fast", "--target", "vulkan", *flags)
        fast.command += ["--device", "0"]
        error = tiny.distance(fast.forced(forced, scratch), wanted)
        tally.check(f"{name} fast", None if error <= tiny.FAST_BOUND else f"relative RMS {error:.2e} from the reference")
        notes += f"  fast {error:.1e}"
    tally.note(f"{name:24} {notes}")


def models(scratch):
    """Name, path, flags and bound of each."""
    whole = os.environ.get("CORTIQ_TEST_ALL")
    generator = harness.tiny_models()
    import tiny_families
    for name in ALL_FAMILIES if whole else FAMILIES:
        family, path = tiny_families.family(name), scratch.path(name + ".cmf")
        family.write(path)
        yield name, path, getattr(family, "flags", ()), getattr(family, "exact_bound", tiny.EXACT_BOUND)
    for case in generator.CASES:
        if case.name in (ALL_MIXERS if whole else MIXERS):
            yield case.name, generator.write(case, scratch.folder), (), tiny.EXACT_BOUND


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    vulkan_test.need_device(args)
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        # Shaders that one model compiled serve the next.
        os.environ["MESA_SHADER_CACHE_DIR"] = os.environ["XDG_CACHE_HOME"] = scratch.folder
        if vulkan_test.has_layer():
            os.environ["VK_INSTANCE_LAYERS"] = vulkan_test.LAYER
        else:
            tally.skip("the validation layer is not installed (vulkan-validationlayers)")
        for name, path, flags, bound in models(scratch):
            try:
                check(tally, args, name, path, scratch, flags, bound)
            except (RuntimeError, OSError, ValueError) as error:
                tally.check(name, str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
