#!/usr/bin/env python3
"""Counts the inner loops of other projects' kernels for 64-bit Arm as cortiq-bench --static counts ours.

    arm_peers.py --llama CHECKOUT --kleidiai CHECKOUT --bin build/bin

Each kernel is built from the checkout named (nothing of it is kept) with the cross compiler and runs under emulation, one instruction at
a time, on rows of two lengths: what the longer run has more of is the loop over the weights, inner loops as often as they run. Runs on one
and on two groups of 16 rows say what a group takes as a whole. Cycles are llvm-mca's estimate for the loop, with all data in the first
cache. All figures are for 32 weights of one token. --bin adds the rows of cortiq-bench --static for the same codecs.

Needs g++-aarch64-linux-gnu, qemu-user-static and llvm-19, which tools/setup installs.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple

GROUP = 16  # rows of what is counted as a whole, as in our kernels
SHORT, LONG, WHOLE = 1024, 1280, 3072  # weights a row; LONG - SHORT is a multiple of every block
ITERATIONS = (20, 100, 30000)  # least and most that are simulated, and instructions, as in cortiq-bench --static
PROCESSORS = {"armv8": ("cortex-a72", "neoverse-n1"), "dotprod": ("cortex-a76", "neoverse-n1", "neoverse-v1", "neoverse-v2"), "i8mm": ("neoverse-v1", "neoverse-v2")}
ATTRIBUTES = {"cortex-a72": "", "cortex-a76": "+dotprod,+fullfp16", "neoverse-n1": "+dotprod,+fullfp16"}
MARCH = {"armv8": "armv8-a", "dotprod": "armv8.2-a+dotprod+fp16", "i8mm": "armv8.2-a+dotprod+fp16+i8mm"}

# A kernel: whose, for which codec of ours, what is said of it, target, tokens and rows of its tile, function, and the call with
# K, ROWS and TOKENS in it. `sources` are below the checkout.
Kernel = namedtuple("Kernel", "peer codec note target tokens rows function declaration call sources")

LLAMA_REPACK = ("ggml/src/ggml-cpu/arch/arm/repack.cpp",)
LLAMA_PLAIN = ("ggml/src/ggml-cpu/arch/arm/quants.c",)


def repacked(codec, word, target, tokens, rows):
    act = "q8_K" if "_K_" in word else "q8_0"
    function = f"ggml_{'gemv' if tokens == 1 else 'gemm'}_{word}_{act}"
    return Kernel("llama.cpp", codec, f"{word}, repacked", target, tokens, rows, function,
                  "(int n, float* s, size_t bs, const void* vx, const void* vy, int nr, int nc)",
                  "(K, out, ROWS, weights, inputs, TOKENS, ROWS)", LLAMA_REPACK)


def plain(codec, word, target, bytes_32=0):
    """The product of one row; with bytes_32, of two rows and two tokens: so many bytes have 32 weights, a token's 36 or so."""
    act = "q8_K" if word.endswith("_K") else "q8_0"
    tokens = 2 if bytes_32 else 1
    call = f"(K, out, 16, weights, K / 32 * {bytes_32}, inputs, K / 32 * 36, 2)" if bytes_32 else "(K, out, 0, weights, 0, inputs, 0, 1)"
    return Kernel("llama.cpp", codec, "plain" + (", 2 rows" if bytes_32 else ""), target, tokens, tokens, f"ggml_vec_dot_{word}_{act}",
                  "(int n, float* s, size_t bs, const void* vx, size_t bx, const void* vy, size_t by, int nrc)", call, LLAMA_PLAIN)


def kleidiai(codec, folder, name, target, tokens, rows, blocks=True):
    path = f"kai/ukernels/matmul/matmul_clamp_f32_{folder}/kai_matmul_clamp_f32_{name}"
    bl, take = ("size_t bl, ", "32, ") if blocks else ("", "")
    return Kernel("KleidiAI", codec, name.rsplit("_neon", 1)[0], target, tokens, rows, f"kai_run_matmul_clamp_f32_{name}",
                  f"(size_t m, size_t n, size_t k, {bl}const void* lhs, const void* rhs, float* dst, size_t row, size_t col, float low, float high)",
                  f"(TOKENS, ROWS, K, {take}inputs, weights, out, ROWS * 4, 4, -1e30f, 1e30f)", (path + ".c", path + "_asm.S"))


KERNELS = [
    plain("Q8_0", "q8_0", "armv8"),
    plain("Q4_0", "q4_0", "armv8"),
    plain("Q4_K", "q4_K", "armv8"),
    plain("MXFP4", "mxfp4", "armv8"),
    repacked("Q8_0", "q8_0_4x4", "dotprod", 1, 4),
    repacked("Q8_0", "q8_0_4x8", "dotprod", 1, 4),
    plain("Q8_0", "q8_0", "dotprod"),
    kleidiai("q8_row", "qai8dxp_qsi8cxp", "qai8dxp1x4_qsi8cxp4x4_1x4_neon_dotprod", "dotprod", 1, 4, blocks=False),
    repacked("Q4_0", "q4_0_4x4", "dotprod", 1, 4),
    repacked("Q4_0", "q4_0_4x8", "dotprod", 1, 4),
    plain("Q4_0", "q4_0", "dotprod"),
    kleidiai("Q4_0", "qsi8d32p_qsi4c32p", "qsi8d32p1x8_qsi4c32p4x8_1x4x32_neon_dotprod", "dotprod", 1, 4),
    kleidiai("Q4_0", "qsi8d32p_qsi4c32p", "qsi8d32p1x4_qsi4c32p4x4_1x4_neon_dotprod", "dotprod", 1, 4),
    kleidiai("Q4_0", "qai8dxp_qsi4c32p", "qai8dxp1x4_qsi4c32p8x4_1x8_neon_dotprod", "dotprod", 1, 8),
    kleidiai("Q4_1", "qsi8d32p_qai4c32p", "qsi8d32p1x4_qai4c32p4x4_1x4_neon_dotprod", "dotprod", 1, 4),
    repacked("Q4_K", "q4_K_8x4", "dotprod", 1, 8),
    repacked("Q4_K", "q4_K_8x8", "dotprod", 1, 8),
    plain("Q4_K", "q4_K", "dotprod"),
    repacked("Q6_K", "q6_K_8x4", "dotprod", 1, 8),
    repacked("MXFP4", "mxfp4_4x4", "dotprod", 1, 4),
    plain("MXFP4", "mxfp4", "dotprod"),
    repacked("IQ4_NL", "iq4_nl_4x4", "dotprod", 1, 4),
    plain("IQ4_NL", "iq4_nl", "dotprod"),
    repacked("Q8_0", "q8_0_4x4", "dotprod", 4, 4),
    repacked("Q4_0", "q4_0_4x4", "dotprod", 4, 4),
    repacked("Q4_K", "q4_K_8x4", "dotprod", 4, 8),
    repacked("Q6_K", "q6_K_8x4", "dotprod", 4, 8),
    repacked("MXFP4", "mxfp4_4x4", "dotprod", 4, 4),
    repacked("IQ4_NL", "iq4_nl_4x4", "dotprod", 4, 4),
    kleidiai("Q4_0", "qsi8d32p_qsi4c32p", "qsi8d32p4x4_qsi4c32p4x4_16x4_neon_dotprod", "dotprod", 16, 4),
    repacked("Q8_0", "q8_0_4x8", "i8mm", 4, 4),
    plain("Q8_0", "q8_0", "i8mm", 34),
    kleidiai("q8_row", "qai8dxp_qsi8cxp", "qai8dxp4x8_qsi8cxp4x8_16x4_neon_i8mm", "i8mm", 16, 4, blocks=False),
    repacked("Q4_0", "q4_0_4x8", "i8mm", 16, 4),
    plain("Q4_0", "q4_0", "i8mm", 18),
    kleidiai("Q4_0", "qsi8d32p_qsi4c32p", "qsi8d32p4x8_qsi4c32p4x8_16x4_neon_i8mm", "i8mm", 16, 4),
    kleidiai("Q4_0", "qsi8d32p_qsi4c32p", "qsi8d32p4x8_qsi4c32p4x8_8x4x32_neon_i8mm", "i8mm", 8, 4),
    kleidiai("Q4_0", "qai8dxp_qsi4c32p", "qai8dxp4x8_qsi4c32p4x8_16x4x32_neon_i8mm", "i8mm", 16, 4),
    kleidiai("Q4_1", "qsi8d32p_qai4c32p", "qsi8d32p4x8_qai4c32p4x8_8x4_neon_i8mm", "i8mm", 8, 4),
    repacked("Q4_K", "q4_K_8x8", "i8mm", 4, 8),
    plain("Q4_K", "q4_K", "i8mm", 18),
    repacked("Q6_K", "q6_K_8x8", "i8mm", 4, 8),
]
OURS = "gguf:Q8_0,gguf:Q4_0,gguf:Q4_1,gguf:Q4_K,gguf:Q6_K,gguf:MXFP4,gguf:IQ4_NL,cmf:q4tp,cmf:q8_row,cmf:mxfp4"

DRIVER = """
#include <cstddef>
#include <cstdlib>
extern "C" void {function}{declaration};
static unsigned char weights[1 << 20] __attribute__((aligned(64))), inputs[1 << 20] __attribute__((aligned(64)));
static float out[1 << 16];
int main(int, char** argv) {{
  const int K = std::atoi(argv[1]), ROWS = std::atoi(argv[2]), TOKENS = std::atoi(argv[3]);
  (void)ROWS, (void)TOKENS;
  {function}{call};
}}
"""


class Failed(Exception):
    pass


def call(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
    if result.returncode:
        raise Failed(f"{os.path.basename(command[0])}: {(result.stderr.strip().splitlines() or ['failed without a word'])[0]}")
    return result.stdout


class Counter:
    """Builds and traces kernels. `checkouts`: peer -> folder."""

    def __init__(self, checkouts, folder):
        self.checkouts, self.folder = checkouts, folder
        self.objects = {}

    def object_of(self, kernel, source):
        key = (source, kernel.target)
        if key not in self.objects:
            root = self.checkouts[kernel.peer]
            path = os.path.join(root, source)
            out = os.path.join(self.folder, f"{len(self.objects)}.o")
            compiler = "aarch64-linux-gnu-g++" if source.endswith(".cpp") else "aarch64-linux-gnu-gcc"
            includes = [f"-I{os.path.join(root, f)}" for f in (".", "ggml/include", "ggml/src", "ggml/src/ggml-cpu")]
            call([compiler, "-O3", "-DNDEBUG", "-D_GNU_SOURCE", f"-march={MARCH[kernel.target]}", "-ffunction-sections", "-w", *includes, "-c", path, "-o", out])
            self.objects[key] = out
        return self.objects[key]

    def program(self, kernel):
        """The linked program and the places of the peer's functions in it."""
        sources = [s for s in kernel.sources if os.path.exists(os.path.join(self.checkouts[kernel.peer], s))]
        if not sources:
            raise Failed(f"the checkout has no {kernel.sources[0]}")
        objects = [self.object_of(kernel, source) for source in sources]
        driver, out = os.path.join(self.folder, "driver.cpp"), os.path.join(self.folder, "program")
        with open(driver, "w") as f:
            f.write(DRIVER.format(**kernel._asdict()))
        # What other functions of the same files would call does not have to be there.
        call(["aarch64-linux-gnu-g++", "-O1", "-static", driver, *objects, "-o", out, "-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all"])
        names = {line.split()[-1] for o in objects for line in call(["aarch64-linux-gnu-nm", "--defined-only", o]).splitlines() if line.split()[1] in "tT"}
        places = []
        for line in call(["aarch64-linux-gnu-nm", "-S", out]).splitlines():
            parts = line.split()
            if len(parts) == 4 and parts[3] in names:
                places.append((int(parts[0], 16), int(parts[1], 16)))
            elif len(parts) == 3 and parts[2] in names and parts[1] in "tT":  # assembler without sizes
                places.append((int(parts[0], 16), 1 << 14))
        if not places:
            raise Failed(f"{kernel.function} is not in the program")
        return out, places

    def trace(self, kernel, program, places, columns, rows):
        log = os.path.join(self.folder, "log")
        call([shutil.which("qemu-aarch64-static") or "qemu-aarch64", "-cpu", "max", "-singlestep", "-d", "exec,nochain", "-D", log, "-dfilter",
              ",".join(f"{at:#x}+{size:#x}" for at, size in places), program, str(columns), str(rows), str(kernel.tokens)], timeout=300)
        with open(log) as f:
            return [int(pc, 16) for pc in re.findall(r"\[[0-9a-f]+/([0-9a-f]+)/", f.read())]

    def texts(self, program, places):
        """What stands at each address, as LLVM writes it."""
        out = {}
        for at, size in places:
            listing = call(["llvm-objdump-19", "-d", "--no-show-raw-insn", "--mattr=+all", f"--start-address={at:#x}", f"--stop-address={at + size:#x}", program])
            for line in listing.splitlines():
                if match := re.match(r"\s*([0-9a-f]+):\s+(\S.*)", line):
                    out[int(match[1], 16)] = re.sub(r"\s+", " ", re.sub(r"\s*<.*|\s*//.*", "", match[2])).strip()
        return out

    def measure(self, kernel):
        program, places = self.program(kernel)
        texts = self.texts(program, places)
        short, long = (self.trace(kernel, program, places, k, kernel.rows) for k in (SHORT, LONG))
        more = len(long) - len(short)
        same = next((i for i, (a, b) in enumerate(zip(short, long)) if a != b), len(short))
        if more <= 0 or same < more or short != long[:same - more] + long[same:]:
            raise Failed(f"{kernel.function}: the longer run is not the shorter one with iterations added")
        loop = [texts[pc] for pc in long[same - more:same]]
        parts = (LONG - SHORT) * kernel.rows * kernel.tokens / 32
        group = max(GROUP, kernel.rows)
        one, two = (len(self.trace(kernel, program, places, WHOLE, n * (group if kernel.sources != LLAMA_PLAIN else kernel.rows))) for n in (1, 2))
        whole = two - one if kernel.sources != LLAMA_PLAIN else one  # one call a row, or two
        whole_rows = group if kernel.sources != LLAMA_PLAIN else kernel.rows
        cycles = {cpu: self.cycles(cpu, loop) / parts for cpu in PROCESSORS[kernel.target]}
        return {"name": f"{kernel.peer} {kernel.note}", "peer": kernel.peer, "codec": kernel.codec, "target": kernel.target, "tokens": kernel.tokens,
                "rows": kernel.rows, "instructions": len(loop) / parts, "loads": sum(t.startswith("ld") for t in loop) / parts,
                "all_instructions": whole / (WHOLE * whole_rows * kernel.tokens / 32), "cycles": cycles}

    def cycles(self, cpu, loop):
        lines = [re.sub(r"^(b\.\w+|b|cbn?z|tbn?z)\b(.*?)\S+$", r"\1\2strand0", text) for text in loop]
        path = os.path.join(self.folder, "loop.s")
        with open(path, "w") as f:
            f.write("# LLVM-MCA-BEGIN strand0\nstrand0:\n" + "\n".join(lines) + "\n# LLVM-MCA-END strand0\n")
        least, most, simulated = ITERATIONS
        out = call(["llvm-mca-19", "-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}", f"-mattr={ATTRIBUTES.get(cpu, '+dotprod,+i8mm,+fullfp16')}", "--json",
                    f"-iterations={min(most, max(least, simulated // len(loop)))}", "--instruction-info=0", "--resource-pressure=0", path])
        summary = json.loads(out)["CodeRegions"][0]["SummaryView"]
        return summary["TotalCycles"] / summary["Iterations"]


def own_rows(folder):
    out = json.loads(call([os.path.join(folder, "cortiq-bench"), "--static", OURS, "--target", ",".join(PROCESSORS), "--shape", f"64x{WHOLE}", "--json"]))
    for kernel in out["kernels"]:
        kernel.update(peer="cortiq", target=kernel.pop("instruction_set"), codec=kernel["codec"])
    return out["kernels"]


def print_rows(rows):
    for target, cpus in PROCESSORS.items():
        print(f"{target:<78}{'tokens':>7}{'instructions':>13}{'loads':>7}{'all':>8}" + "".join(f"{cpu:>13}" for cpu in cpus))
        for row in rows:
            if row["target"] == target and row["instructions"] is not None:
                print(f"{row['codec']:<12}{row['name']:<66}{row['tokens']:>7}{row['instructions']:>13.2f}{row['loads']:>7.2f}{row['all_instructions']:>8.2f}"
                      + "".join(f"{row['cycles'].get(cpu, float('nan')):>13.2f}" for cpu in cpus))
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", help="a checkout of llama.cpp")
    parser.add_argument("--kleidiai", help="a checkout of KleidiAI")
    parser.add_argument("--bin", help="folder of the built programs: adds our own rows")
    parser.add_argument("--match", default="", help="only peers' functions whose name has this word in it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    checkouts = {peer: folder for peer, folder in (("llama.cpp", args.llama), ("KleidiAI", args.kleidiai)) if folder}
    if not checkouts and not args.bin:
        print("arm_peers.py: name a checkout with --llama or --kleidiai, or our programs with --bin; see --help", file=sys.stderr)
        return 2
    for peer, folder in checkouts.items():
        if not os.path.isdir(folder):
            print(f"arm_peers.py: {folder!r} is no folder with a checkout of {peer}", file=sys.stderr)
            return 2
    for tool in ("aarch64-linux-gnu-g++", "llvm-mca-19", "llvm-objdump-19"):
        if not shutil.which(tool):
            print(f"arm_peers.py: {tool} is missing; install g++-aarch64-linux-gnu and llvm-19", file=sys.stderr)
            return 2
    rows, failures = [], 0
    with tempfile.TemporaryDirectory() as folder:
        counter = Counter(checkouts, folder)
        for kernel in KERNELS:
            if kernel.peer in checkouts and args.match in kernel.function:
                try:
                    rows.append(counter.measure(kernel))
                except (Failed, subprocess.TimeoutExpired) as why:
                    failures += 1
                    print(f"arm_peers.py: {kernel.function}: {why}", file=sys.stderr)
    try:
        rows += own_rows(args.bin) if args.bin else []
    except Failed as why:
        print(f"arm_peers.py: {why}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(rows))
    else:
        print_rows(rows)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
