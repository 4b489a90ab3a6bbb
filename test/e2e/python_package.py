"""The Python package as a wheel against an installed cortiq, in a folder of its own."""
import glob
import hashlib
import os
import shutil
import sys

import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def kept_site(args):
    return os.path.join(os.path.dirname(os.path.abspath(args.bin)), "test", "python-site")


def stamp(args):
    """Of all that the package is made of."""
    digest = hashlib.sha256(sys.version.encode())
    library = os.path.join(os.path.dirname(os.path.abspath(args.bin)), "lib", "libcortiq.so")
    for path in [library, *sorted(glob.glob(os.path.join(ROOT, "python", "**", "*.*"), recursive=True)), *sorted(glob.glob(os.path.join(ROOT, "api", "*.h*")))]:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


def site(args, scratch, tally):
    """A folder with the installed package: the one that is kept, where it is of this build, else a new one."""
    kept = kept_site(args)
    try:
        with open(os.path.join(kept, "stamp.txt")) as file:
            if file.read() == stamp(args):
                return kept
    except OSError:
        pass
    package = Package(args, scratch)
    package.build(tally)
    package.keep()
    return kept


class Package:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.site = scratch.path("site")

    def checked(self, tally, label, command, **options):
        result = harness.run(command, timeout=600, **options)
        tally.check(label, harness.why_not_success(result))
        return result

    def build(self, tally):
        prefix = self.scratch.path("prefix")
        build = os.path.dirname(os.path.abspath(self.args.bin))
        self.checked(tally, "cmake --install", ["cmake", "--install", build, "--prefix", prefix, "--component", "runtime"])
        # A cache of the user's own must not decide, and nothing is fetched.
        env = dict(os.environ, CMAKE_PREFIX_PATH=prefix, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
        pip = [sys.executable, "-m", "pip", "-q"]
        self.checked(tally, "pip wheel", [*pip, "wheel", "--no-build-isolation", "--no-deps", os.path.join(ROOT, "python"), "-w",
                                          self.scratch.path("wheel")], env=env)
        wheel = [os.path.join(self.scratch.path("wheel"), name) for name in os.listdir(self.scratch.path("wheel"))]
        self.checked(tally, "pip install", [*pip, "install", "--no-deps", "--target", self.site, *wheel], env=env)

    def keep(self):
        """Leaves it in the build folder, for tests that use the package and do not test it."""
        kept = kept_site(self.args)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.site, kept)
        with open(os.path.join(kept, "stamp.txt"), "w") as file:
            file.write(stamp(self.args))

    def python(self, tally, label, *command):
        env = dict(os.environ, PYTHONPATH=self.site, LD_LIBRARY_PATH="")
        return self.checked(tally, label, [sys.executable, *command], env=env).stdout
