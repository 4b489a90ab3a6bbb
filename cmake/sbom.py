#!/usr/bin/env python3
"""Writes a software bill of materials (CycloneDX 1.5, JSON) of what was built: what its programs really contain, read from the build.

    sbom.py --build BUILD --name cortiq --version 0.1.0 --crate runtime/text/rust --out OUT.json PROGRAM...

Static libraries come from what ninja links, libraries of headers from what the compiler read, shared ones from the programs themselves;
Debian's packages of all of them with their versions, Rust crates with those of Cargo.lock. The same build gives the same bytes.
"""
import argparse
import functools
import json
import os
import re
import subprocess
import sys

PROPERTY = "cortiq:linkage"
STRONGEST = ("static", "shared", "headers")  # of several ways to be part of a program the first is said


@functools.lru_cache(maxsize=None)
def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C")).stdout


def linked_files(build, programs):
    """Objects and outside libraries that ninja links into the programs."""
    inputs = output("ninja", "-C", build, "-t", "inputs", *programs).splitlines()
    inputs = {line for line in inputs if not line.startswith("ninja:")}
    return {i for i in inputs if i.endswith(".o")}, {i for i in inputs if os.path.isabs(i) and re.search(r"\.(a|so)(\.|$)", i)}, inputs


def headers(build, objects):
    """Headers outside of the project that the compiler read for these objects."""
    out, mine = set(), False
    for line in output("ninja", "-C", build, "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            mine = line.split(":")[0] in objects
        elif mine and line:
            out.add(line.strip())  # relative to the build folder, mostly
    paths = {os.path.normpath(os.path.join(build, path)) for path in out}
    return {path for path in paths if path.startswith("/usr/")}


def shared_libraries(programs):
    """Paths of the shared libraries that the programs name."""
    needed = set()
    for program in programs:
        needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", program)))
    found = {}
    for line in output("/sbin/ldconfig", "-p").splitlines():
        match = re.match(r"\s+(\S+) \(.*\) => (\S+)", line)
        if match:
            found.setdefault(match[1], match[2])
    for program in programs:  # those that lie in folders of their own
        for folder in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", output("readelf", "-d", program)):
            for name in needed:
                for part in folder.split(":"):
                    if part.startswith("/") and os.path.exists(os.path.join(part, name)):
                        found[name] = os.path.join(part, name)
    return {found[name] for name in needed if name in found}


def native(names):
    """Of packages that share a file that of this machine's architecture."""
    own = ":" + output("dpkg", "--print-architecture").strip()
    return min(names.split(", "), key=lambda name: (":" in name and not name.endswith(own), name))


def owners(paths):
    """Debian package of each file, by name."""
    out = {}
    paths = sorted({p for path in paths for p in (path, os.path.realpath(path))})
    for start in range(0, len(paths), 500):
        # A file that no package owns is no failure of the others.
        result = subprocess.run(["dpkg-query", "-S", *paths[start:start + 500]], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
        for line in result.stdout.splitlines():
            names, _, path = line.partition(": ")
            if not line.startswith("diversion by"):
                out[path] = native(names)
    # Folders that are links into /usr: packages may name either.
    for path in paths:
        if path not in out and path.startswith("/lib"):
            out.update({path: name for name in owners({"/usr" + path}).values()})
        elif path not in out and path.startswith("/usr/lib") and not os.path.islink("/usr/lib"):
            result = subprocess.run(["dpkg-query", "-S", path[4:]], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
            if result.returncode == 0:
                out[path] = native(result.stdout.partition(": ")[0])
    return out


def debian_components(build, targets, programs):
    objects, libraries, inputs = linked_files(build, targets)
    ways = {"static": {p for p in libraries if p.endswith(".a")}, "shared": shared_libraries(programs), "headers": headers(build, objects)}
    package_of = {}
    for way in STRONGEST:
        for package in set(owners(ways[way]).values()):
            package_of.setdefault(package, way)
    rows = []
    for line in output("dpkg-query", "-W", "-f", "${binary:Package}\t${Package}\t${Version}\t${Architecture}\t${source:Package}\n", *sorted(package_of)).splitlines():
        binary, name, version, arch, source = line.split("\t")
        way = package_of.get(binary) or package_of.get(name)
        if way:
            purl = f"pkg:deb/debian/{name}@{version.replace(':', '%3A').replace('+', '%2B')}?arch={arch}"
            rows.append({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
                         "properties": [{"name": PROPERTY, "value": way}, {"name": "cortiq:source", "value": source}]})
    return rows, inputs


def crate_components(crate):
    """The crates that the text library is built of on this machine: neither those of tests nor of other systems."""
    host = f"{os.uname().machine}-unknown-linux-gnu"
    data = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host,
                             "--manifest-path", os.path.join(crate, "Cargo.toml")))
    packages = {p["id"]: p for p in data["packages"]}
    nodes = {n["id"]: n for n in data["resolve"]["nodes"]}
    wanted, todo = set(), [data["resolve"]["root"]]
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            macro = any("proc-macro" in t["kind"] for t in packages[dependency["pkg"]]["targets"])
            if linked and not macro and dependency["pkg"] not in wanted:
                wanted.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    with open(os.path.join(crate, "Cargo.lock"), encoding="utf-8") as file:
        blocks = file.read().split("[[package]]")
    sums = {}
    for block in blocks:
        field = dict(re.findall(r'^(\w+) = "(.*)"$', block, re.M))
        if "checksum" in field:
            sums[field["name"], field["version"]] = field["checksum"]
    for number in wanted:
        p = packages[number]
        purl = f"pkg:cargo/{p['name']}@{p['version'].replace('+', '%2B')}"
        row = {"type": "library", "bom-ref": purl, "name": p["name"], "version": p["version"], "purl": purl, "properties": [{"name": PROPERTY, "value": "static"}]}
        if (p["name"], p["version"]) in sums:
            row["hashes"] = [{"alg": "SHA-256", "content": sums[p["name"], p["version"]]}]
        if p.get("license"):
            row["licenses"] = [{"expression": p["license"].replace("/", " OR ")}]
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("build", "name", "version", "crate", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("programs", nargs="+", help="targets of the build, as bin/cortiq-run")
    args = parser.parse_args()
    rows, inputs = debian_components(args.build, args.programs, [os.path.join(args.build, p) for p in args.programs])
    if any(re.search(r"rust/.*libcortiq_text\.a$", i) for i in inputs):
        rows.extend(crate_components(args.crate))
    rows.sort(key=lambda row: row["bom-ref"])
    own = f"pkg:generic/{args.name}@{args.version}"
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
           "metadata": {"component": {"type": "application", "bom-ref": own, "name": args.name, "version": args.version, "purl": own}},
           "components": rows, "dependencies": [{"ref": own, "dependsOn": [row["bom-ref"] for row in rows]}]}
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump(bom, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
