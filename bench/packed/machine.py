"""The machine that a package was carried to: programs get the libraries that it lacks, the Vulkan loader among them, and run with a limit."""
import dataclasses
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

MISSING = re.compile(r"error while loading shared libraries: (\S+): cannot open")
TOO_OLD = re.compile(r"([^\s/:]+\.so[.\d]*): version `[^']+' not found")
MANIFESTS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")
NVIDIA = ("libGLX_nvidia.so.0", "libEGL_nvidia.so.0")  # either has the driver of Vulkan in it


@dataclasses.dataclass
class Finished:
    status: int | None  # None: the time limit ended it
    out: str
    err: str
    seconds: float

    def why_not(self):
        """Why it is no success, else None."""
        if self.status is None:
            return f"cut off after {self.seconds:.0f} s"
        last = (self.err.strip().splitlines() or self.out.strip().splitlines() or ["no message"])[-1]
        return f"ended with {self.status}: {last}" if self.status else None


class Machine:
    def __init__(self, root, work, keep):
        """`keep`: the folder of work is the user's own and stays."""
        self.root, self.work, self.keep, self.used = root, work, keep, os.path.join(work, "libraries")
        os.makedirs(self.used, exist_ok=True)
        self.environment = {**os.environ, "LD_LIBRARY_PATH": self.joined(self.used, os.environ.get("LD_LIBRARY_PATH"))}
        self.notes, self.running = [], set()

    def end(self, *_):
        """What a signal does: nothing that was started here stays behind. Results are on disk already."""
        for group in list(self.running):
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not self.keep:
            shutil.rmtree(self.work, ignore_errors=True)
        os._exit(1)

    @staticmethod
    def joined(*folders):
        return ":".join(filter(None, folders))

    def program(self, name):
        return os.path.join(self.root, "bin", name)

    def call(self, command, timeout, cache=None, **more):
        """Runs a program with its whole group bound by `timeout`; `cache` is the folder where drivers and we keep pipelines."""
        environment = {**self.environment, **more}
        if cache:
            os.makedirs(cache, exist_ok=True)
            environment.update({name: cache for name in ("XDG_CACHE_HOME", "MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH")})
        began = time.monotonic()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                       errors="replace", env=environment, start_new_session=True)
        except OSError as why:
            return Finished(127, "", f"cannot run {command[0]}: {why.strerror}", 0)
        self.running.add(process.pid)
        status = None
        try:
            out, err = process.communicate(timeout=max(timeout, 0.1))
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        self.running.discard(process.pid)
        return Finished(status, out, err, time.monotonic() - began)

    def carry(self, library):
        """Has programs take the package's copy of a library; False when it has none or they have it already."""
        here, there = os.path.join(self.root, "libraries", library), os.path.join(self.used, library)
        if not os.path.exists(here) or os.path.lexists(there):
            return False
        os.symlink(here, there)
        self.notes.append(f"{library} is the package's")
        return True

    def settle(self, commands):
        """The system's own libraries serve where they can: newer drivers may need what is newer than the package's. For each command that
        still does not start, a note."""
        for command in commands:
            while True:
                finished = self.call(command, 30)
                lacks = MISSING.search(finished.err) or TOO_OLD.search(finished.err)
                if not lacks or not self.carry(lacks[1]):
                    break
            if lacks or finished.status == 127:
                self.notes.append(f"{os.path.basename(command[0])} does not start: {finished.why_not()}")
        if not self.loads("libvulkan.so.1"):
            self.carry("libvulkan.so.1")
        self.name_driver()

    def loads(self, library):
        return self.call([sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r})"], 30).status == 0

    def name_driver(self):
        """NVIDIA's driver without the file that tells the loader of it, as containers have it."""
        if {"VK_ICD_FILENAMES", "VK_DRIVER_FILES"} & set(self.environment):
            return
        known = [os.path.join(folder, name) for folder in MANIFESTS if os.path.isdir(folder) for name in sorted(os.listdir(folder)) if name.endswith(".json")]
        if any("nvidia" in os.path.basename(path) for path in known):
            return
        driver = next(filter(self.loads, NVIDIA), None)
        if not driver:
            return
        path = os.path.join(self.work, "nvidia_icd.json")
        with open(path, "w") as file:
            json.dump({"file_format_version": "1.0.0", "ICD": {"library_path": driver, "api_version": "1.3.0"}}, file)
        self.environment["VK_ICD_FILENAMES"] = self.joined(path, *known)
        self.notes.append(f"the loader is told of {driver}")

    def devices(self):
        """The lines of --device list, or a sentence on why there are none."""
        listed = self.call([self.program("cortiq-run"), "--device", "list"], 60, cache=os.path.join(self.work, "caches", "list"))
        return (listed.out.splitlines(), listed.why_not() or "the Vulkan loader lists no device")

    def about(self):
        with open("/proc/cpuinfo") as info:
            names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
        return {"processor": names[0] if names else platform.machine(), "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(),
                "libc": " ".join(platform.libc_ver()), "load": os.getloadavg()[0]}
