"""What the tests under emulation share: the targets, the plainest processor of each, and the cross-built programs."""
import os
import shutil

import harness

TARGETS = [("armv8", "cortex-a72"), ("dotprod", "cortex-a76"), ("i8mm", "max")]


class Programs:
    """The cross-built cortiq-run and the emulator that runs it."""

    def __init__(self, emulator, runner):
        self.emulator, self.runner = emulator, runner

    def on(self, cpu):
        """The command that runs it on that processor."""
        return [self.emulator, "-cpu", cpu, self.runner]


def find_programs(args):
    """Those that CORTIQ_AARCH64_BIN names; skips the script where they are not built."""
    folder = os.environ.get("CORTIQ_AARCH64_BIN", "")
    runner = os.path.join(folder, "cortiq-run")
    if not folder or not os.path.exists(runner):
        harness.skip_all("CORTIQ_AARCH64_BIN does not name a folder with a cross-built cortiq-run (cmake --preset aarch64)")
    for name in ("qemu-aarch64-static", "qemu-aarch64"):
        if path := shutil.which(name):
            return Programs(path, runner)
    return harness.skip_all("qemu's user emulation of AArch64 is missing (tools/setup installs it)")
