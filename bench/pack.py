#!/usr/bin/env python3
"""Packs what a machine without a compiler, LLVM and a network needs to test and measure this build.

  bench/pack.py -o cortiq.tar.xz [--bin DIR] [--fixtures DIR] [--peer NAME=LLAMA-BENCH]...

  scp cortiq.tar.xz server: && ssh server 'tar xf cortiq.tar.xz && cortiq-package/run --limit 540'

The archive holds programs with the libraries that such a machine may lack (its own serve where it has them; the Vulkan loader too),
fixtures compiled for GPUs and for AVX-512 VNNI and AMX, in `exact` and `fast` with prompts in 8 and 16 bits, synthetic models without
weights, peers' programs, bench/peers.py, and `run`, which does the rest there: `run --help`.

A peer is a llama-bench whose folder has its libraries: `llama` and `ik` are llama.cpp and ik_llama.cpp on the CPU, any other name is
what the tables call a back end for GPUs. Unit tests of shaders come along when they are built (ninja spirv_test).
"""
import argparse
import concurrent.futures
import ctypes.util
import glob
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "cortiq-package"
PROGRAMS = ("cortiq-run", "cortiq-bench")
# The system's C library is the target machine's own.
OF_THE_SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl))\.so")
EXPERTS = re.compile(r"moe|qwen3_?next|mixtral|deepseek|gpt-oss")  # fixtures whose models have them

ARMS = {"exact": ["--numerics=exact"], "fast same": ["--prompt-numerics=same"], "fast half": ["--prompt-numerics=half"]}
GPU_TARGET, CPU_TARGETS = "vulkan,x86-64-v3", ("amx", "avx512vnni")
# One of each kind of layer and of each family of codecs; making shaders takes most of the time that packing takes.
FIXTURES = ("models/llama-q8", "models-gguf/gpt-oss-mxfp4", "models/lfm2_moe-q4tp", "models-gguf/qwen35-q6_k", "models-gguf/gemma3-q4_k",
            "models-gguf/deepseek2-q8_0", "models-gguf/llama-q4_0", "models-gguf/llama-iq4_xs", "models/qwen3_moe-q4tp", "models-gguf/olmo2-q8_0",
            "models/qwen2-q8_2f", "models/deepseek_v3-f16")
CUTS = ("models/llama-q8", "models/qwen3_moe-q4tp", "models-gguf/llama-q4_0")
GPU_PIECES, CPU_PIECES, CUT_PROMPT = (7,), (1, 7), [token * 53 % 480 + 3 for token in range(50)]
# The specifications of docs/performance.md; with a curve the two that were seen slow.
MOE = "30b-a3b,layers=12"
GPU_MODELS = ("3b:q4_0", f"{MOE}:q4_k", "3b:q4_k", "3b:q8_0", "3b:gguf:mxfp4", f"{MOE}:gguf:mxfp4,attention=q8_0", "3b:q6_k", "3b:iq4_xs")
CPU_MODELS = ("3b:q4_0", "3b:q4_k", "3b:q8_0", "3b:gguf:mxfp4", "3b:q6_k", "3b:iq4_xs", "3b:cmf:q4tp", "3b:cmf:q8_row", "3b:cmf:q4_tiled", f"{MOE}:q4_k",
              f"{MOE}:gguf:mxfp4,attention=q8_0")
CURVES = 2


def stop(sentence):
    print(f"pack.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def ran(command):
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError as why:
        stop(f"cannot run {command[0]}: {why.strerror}")
    if result.returncode:
        stop(f"{' '.join(command)} ended with {result.returncode}: {(result.stderr.strip().splitlines() or ['no message'])[-1]}")
    return result.stdout


class Package:
    def __init__(self, args, folder):
        self.args, self.folder, self.jobs = args, folder, {}
        self.manifest = {"gpu_cases": [], "cpu_cases": [], "gpu_cuts": [], "cpu_cuts": [], "gpu_models": [], "cpu_models": [], "cpu_targets": args.cpu_targets,
                         "peers": {}, "unit_tests": []}

    def path(self, *names):
        path = os.path.join(self.folder, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def tool(self, name):
        return os.path.join(self.args.bin, name)

    def later(self, artifact, command):
        """An artifact that `command` makes when its turn comes; the name it has in the package."""
        self.jobs[artifact] = [*command, "-o", self.path(artifact)]
        return artifact

    def add_programs(self):
        for name in PROGRAMS:
            self.add_program(self.tool(name), self.path("bin", name))
        if self.args.unit_test:
            name = os.path.basename(self.args.unit_test)
            self.add_program(self.args.unit_test, self.path("bin", name))
            self.manifest["unit_tests"].append(name)
        loader = ctypes.util.find_library("vulkan")
        if loader:
            listed = next((line.split("=>")[1].strip() for line in ran(["/sbin/ldconfig", "-p"]).splitlines() if line.strip().startswith(loader + " ") and "x86-64" in line), None)
            self.add_library(loader, listed)
        else:
            print("pack.py: there is no libvulkan.so.1 here, so the package has none", file=sys.stderr)

    def add_program(self, source, target):
        shutil.copy(source, target)
        if shutil.which("strip"):
            ran(["strip", target])
        os.chmod(target, 0o755)
        self.add_libraries(source, os.path.dirname(source))

    def add_libraries(self, program, own):
        """What a program is linked with, but for the C library and what lies in its `own` folder; of a static one ldd says nothing."""
        for line in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.splitlines():
            name, _, path = line.strip().partition(" => ")
            path = path.split(" (")[0]
            if os.path.isabs(path) and not OF_THE_SYSTEM.match(os.path.basename(name)) and os.path.dirname(path) != os.path.abspath(own):
                self.add_library(name, path)

    def add_library(self, name, path):
        target = self.path("libraries", name)
        if path and not os.path.exists(target):
            shutil.copy(os.path.realpath(path), target)

    def add_peer(self, name, program):
        own = os.path.dirname(os.path.abspath(program))
        shutil.copytree(own, self.path("peers", name), symlinks=True)
        for path in glob.glob(os.path.join(glob.escape(own), "*")):
            if os.path.isfile(path) and not os.path.islink(path) and (os.path.abspath(path) == os.path.abspath(program) or ".so" in os.path.basename(path)):
                self.add_peer_libraries(path, own)
        start = self.path("peers", name, "start")
        with open(start, "w") as file:
            file.write('#!/bin/sh\nhere=${0%/*}\nLD_LIBRARY_PATH="$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/' + os.path.basename(program) + '" "$@"\n')
        os.chmod(start, 0o755)
        self.manifest["peers"][name] = f"peers/{name}/start"

    def add_peer_libraries(self, path, own):
        """A peer may be a script, and its modules may want a driver that is not here: what ldd cannot say is not carried."""
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                self.add_libraries(path, own)

    def compiled(self, label, arm, kind, *flags):
        """A fixture's artifact for the GPU or the CPU."""
        with open(os.path.join(self.args.fixtures, label + ".expect.json")) as file:
            model = os.path.join(self.args.fixtures, os.path.dirname(label), json.load(file)["model"])
        name = "-".join([label, arm, kind, *(flag.split("=")[1] for flag in flags)]).replace("/", "-").replace(" ", "-")
        targets = GPU_TARGET if kind == "gpu" else ",".join(self.args.cpu_targets)
        return self.later(f"fixtures/{name}.cqa", [self.tool("cortiq-compile"), model, *ARMS[arm], f"--target={targets}", *flags])

    def add_fixture(self, label):
        with open(os.path.join(self.args.fixtures, label + ".expect.json")) as file:
            spec = json.load(file)
        for arm in ARMS:
            case = {"name": label, "arm": arm, "numerics": arm.split()[0], "prompt": spec["prompt_ids"], "greedy": spec["greedy_ids"], "margins": spec.get("step_margins"),
                    "experts": bool(EXPERTS.search(label)), "flags": spec.get("run_args", [])}
            self.manifest["gpu_cases"].append({**case, "artifact": self.compiled(label, arm, "gpu")})
            artifact = self.compiled(label, arm, "cpu")
            self.manifest["cpu_cases"] += [{**case, "artifact": artifact, "target": target} for target in self.args.cpu_targets]

    def add_cut(self, label):
        for arm in ("fast same", "fast half"):
            for kind, pieces in (("gpu", GPU_PIECES), ("cpu", CPU_PIECES)):
                made = {"all": self.compiled(label, arm, kind), **{str(piece): self.compiled(label, arm, kind, f"--max-batch={piece}") for piece in pieces}}
                cut = {"name": label, "arm": arm, "artifacts": made, "prompt": CUT_PROMPT}
                self.manifest[f"{kind}_cuts"] += [cut] if kind == "gpu" else [{**cut, "target": target} for target in self.args.cpu_targets]

    def add_models(self, kind, specs, targets):
        for place, spec in enumerate(specs):
            made = self.later(f"models/{kind}-{re.sub(r'[^a-z0-9_-]+', '-', spec)}.cqa", [self.tool("cortiq-bench"), "--synthetic", spec, f"--target={targets}"])
            self.manifest[f"{kind}_models"].append({"name": spec, "spec": spec, "artifact": made, "curve": place < CURVES, "gguf": ":cmf:" not in spec})

    def make(self):
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            try:
                for done, _ in enumerate(pool.map(ran, self.jobs.values()), 1):
                    if done % 10 == 0:
                        print(f"pack.py: {done} of {len(self.jobs)} artifacts", file=sys.stderr)
            except BaseException:  # one that cannot be made ends the program: the rest need not be made
                pool.shutdown(cancel_futures=True)
                raise
        self.manifest["version"] = self.version()
        for name in sorted(os.listdir(os.path.join(HERE, "packed"))):
            if name.endswith(".py"):
                shutil.copy(os.path.join(HERE, "packed", name), self.path("packed", name))
        shutil.copy(os.path.join(HERE, "packed", "run"), self.path("run"))
        shutil.copy(os.path.join(HERE, "peers.py"), self.path("peers.py"))
        with open(self.path("manifest.json"), "w") as file:
            json.dump(self.manifest, file, indent=1)

    def version(self):
        program = ran([self.tool("cortiq-run"), "--version"]).strip()
        described = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True)
        return f"{program}, commit {described.stdout.strip()}" if described.returncode == 0 else program


def plain(info):
    """The same bytes whoever packs, whenever."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
    return info


def write(folder, out, most):
    """The archive, one stream with a window that holds the many files that have much in common."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 64 << 20}]
    partial = out + ".part"
    try:
        with lzma.open(partial, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(folder, NAME, filter=plain)
        size = os.path.getsize(partial)
        if size > most << 20:
            stop(f"the package takes {size / (1 << 20):.1f} MiB, more than --most {most}; leave fixtures, models or peers out")
        os.replace(partial, out)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
    return size


def names(text, default):
    return default if text is None else tuple(filter(None, text.split(" ")))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, metavar="OUT.tar.xz")
    parser.add_argument("--bin", default=os.path.join(HERE, "..", "build", "bin"), help="folder of the built programs (default: build/bin)")
    parser.add_argument("--fixtures", default=os.environ.get("CORTIQ_FIXTURES", ""), help="folder with models/ and models-gguf/ (CORTIQ_FIXTURES)")
    parser.add_argument("--fixture", metavar='"NAME ..."', help="these instead of the usual ones, as in models/llama-q8; empty: none")
    parser.add_argument("--cut", metavar='"NAME ..."', help="fixtures whose prompts are run in pieces, instead of the usual ones")
    parser.add_argument("--gpu-model", metavar='"SPEC ..."', help="synthetic models for the GPU (cortiq-bench --synthetic), instead of the usual ones")
    parser.add_argument("--cpu-model", metavar='"SPEC ..."', help="the same for the CPU")
    parser.add_argument("--cpu-target", default=",".join(CPU_TARGETS), help="targets for the CPU, the most important first (default: %(default)s)")
    tests = parser.add_mutually_exclusive_group()
    tests.add_argument("--unit-test", metavar="PATH", help="the program of the shaders' tests (default: test/spirv_test of the build, if it is there)")
    tests.add_argument("--no-unit-tests", action="store_true", help="none, even where it is built")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PATH", help="a llama-bench; see above")
    parser.add_argument("--most", type=int, default=60, metavar="MIB", help="the size that the archive must not exceed (default: %(default)s)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.fixture, args.cut = names(args.fixture, FIXTURES), names(args.cut, CUTS)
    args.gpu_model, args.cpu_model = names(args.gpu_model, GPU_MODELS), names(args.cpu_model, CPU_MODELS)
    args.cpu_targets = args.cpu_target.split(",")
    for name in (*PROGRAMS, "cortiq-compile"):
        if not (os.path.isfile(os.path.join(args.bin, name)) and os.access(os.path.join(args.bin, name), os.X_OK)):
            stop(f"{args.bin} has no {name}; build it, or name the folder of the built programs with --bin")
    for label in (*args.fixture, *args.cut):
        if not os.path.exists(os.path.join(args.fixtures, label + ".expect.json")):
            stop(f"there is no fixture '{label}' in '{args.fixtures}'; name the folder of the fixtures with --fixtures")
    if args.unit_test and not os.path.isfile(args.unit_test):
        stop(f"there is no unit test {args.unit_test}; build it (ninja spirv_test), or leave --unit-test out")
    built = os.path.join(args.bin, "..", "test", "spirv_test")
    if not args.unit_test and not args.no_unit_tests and os.path.exists(built):
        args.unit_test = built
    args.peers = [tuple(peer.split("=", 1)) for peer in args.peer]
    for peer in args.peers:
        if len(peer) != 2 or not re.fullmatch(r"[\w.-]+", peer[0]) or not os.path.isfile(peer[1]):
            stop(f"--peer is a name and a program that is there, as in Vulkan=llama/vulkan/llama-bench, not '{'='.join(peer)}'")
    return args


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        package = Package(args, folder)
        package.add_programs()
        for name, program in args.peers:
            package.add_peer(name, program)
        # Models before fixtures: a specification that is none is told at once.
        package.add_models("cpu", args.cpu_model, ",".join(args.cpu_targets))
        package.add_models("gpu", args.gpu_model, GPU_TARGET)
        for label in args.fixture:
            package.add_fixture(label)
        for label in args.cut:
            package.add_cut(label)
        package.make()
        size = write(folder, args.output, args.most)
    print(f"{args.output}: {size / (1 << 20):.1f} MiB, {len(package.jobs)} artifacts, {package.manifest['version']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
