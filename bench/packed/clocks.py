"""What nvidia-smi says of a GPU while something runs on it: clocks, power, temperature, and why clocks are not higher."""
import os
import pty
import shutil
import statistics
import subprocess
import threading
import time

FIELDS = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "utilization.gpu")
REASON_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # the name of now, and that of older drivers
REASONS = ((0x1, "idle"), (0x2, "application clocks"), (0x4, "software power cap"), (0x8, "hardware slowdown"), (0x10, "sync boost"),
           (0x20, "software thermal slowdown"), (0x40, "hardware thermal slowdown"), (0x80, "power brake"), (0x100, "display clocks"))


def number(text):
    try:
        return float(text)
    except ValueError:  # "[N/A]"
        return None


def reasons(text):
    """Names of the bits of a mask; bits that nobody named stay numbers."""
    try:
        mask = int(text, 16)
    except ValueError:
        return []
    names = [name for bit, name in REASONS if mask & bit]
    rest = mask & ~sum(bit for bit, _ in REASONS)
    return names + ([hex(rest)] if rest else [])


class Clocks:
    """Samples while its block runs; where there is no nvidia-smi, `samples` stays empty and `why_none` says so."""

    def __init__(self, machine, device, milliseconds):
        self.samples, self.why_none, self.process = [], None, None
        self.machine, self.device, self.milliseconds, self.program = machine, device, milliseconds, shutil.which("nvidia-smi")

    def query(self, *more):
        last = []
        for field in REASON_FIELDS:
            last = [self.program, "-i", self.device, f"--query-gpu={','.join((*FIELDS, field))}", "--format=csv,noheader,nounits"]
            try:
                if subprocess.run(last, capture_output=True, timeout=30).returncode == 0:
                    return [*last, *more]
            except (OSError, subprocess.TimeoutExpired):
                break
        self.why_none = f"{' '.join(last)} fails"
        return None

    def __enter__(self):
        if self.milliseconds == 0 or not self.program:
            self.why_none = "sampling is off" if self.milliseconds == 0 else "there is no nvidia-smi"
            return self
        if command := self.query("-lms", str(self.milliseconds)):
            # A terminal, so that each line comes when it is written and none is lost in a buffer.
            reading, writing = pty.openpty()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.DEVNULL, start_new_session=True)
            self.machine.running.add(self.process.pid)
            os.close(writing)
            self.thread = threading.Thread(target=self.read, args=(reading,), daemon=True)
            self.thread.start()
        return self

    def read(self, source):
        with open(source, "rb", buffering=0) as lines:
            rest = b""
            while True:
                try:
                    piece = lines.read(65536)
                except OSError:  # how a terminal whose other side is closed ends
                    return
                if not piece:
                    return
                *whole, rest = (rest + piece).split(b"\n")
                self.samples += [sample for line in whole if (sample := self.sample(line.decode(errors="replace")))]

    @staticmethod
    def sample(line):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(FIELDS) + 1:
            return None
        return {"time": time.time(), **dict(zip(FIELDS, map(number, cells))), "reasons": reasons(cells[-1])}

    def __exit__(self, *exc):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.machine.running.discard(self.process.pid)
            self.thread.join(5)

    def summary(self, began=0.0, ended=float("inf")):
        """Least and median (of power and temperature greatest and median) of the samples between two times; None without any."""
        inside = [sample for sample in self.samples if began <= sample["time"] <= ended]
        if not inside:
            return None
        out = {"samples": len(inside)}
        for field, name, extreme in (("clocks.sm", "sm_mhz", min), ("clocks.mem", "memory_mhz", min), ("power.draw", "watts", max), ("temperature.gpu", "celsius", max)):
            values = [sample[field] for sample in inside if sample[field] is not None]
            if values:
                out[name] = {extreme.__name__: extreme(values), "median": statistics.median(values)}
        out["reasons"] = {name: sum(name in sample["reasons"] for sample in inside) for name in sorted({n for s in inside for n in s["reasons"]})}
        return out


def sentence(summary):
    """One line of a summary."""
    if not summary:
        return "no clocks"
    parts = [f"{label} {summary[key]['min']:.0f}/{summary[key]['median']:.0f} MHz" for label, key in (("SM", "sm_mhz"), ("memory", "memory_mhz")) if key in summary]
    if "watts" in summary:
        parts.append(f"{summary['watts']['max']:.0f} W")
    if "celsius" in summary:
        parts.append(f"{summary['celsius']['max']:.0f} °C")
    why = ", ".join(f"{name} {count}/{summary['samples']}" for name, count in summary["reasons"].items())
    return ", ".join(parts) + f" ({why or 'no reasons'})"
