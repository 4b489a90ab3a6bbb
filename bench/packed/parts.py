"""What all parts share: steps with bounds, run in their order of importance until the part's time is over."""
import concurrent.futures
import dataclasses
import os
import time
from collections.abc import Callable

LEAST = 1.0  # seconds that are worth starting a step for


@dataclasses.dataclass
class Step:
    what: str
    bound: float  # seconds
    run: Callable  # of the seconds it may take: (outcome, detail, figures)


@dataclasses.dataclass
class Context:
    """What a package holds, what the user asked for, where results go."""
    machine: object
    manifest: dict
    results: object
    args: object

    def path(self, name):
        return os.path.join(self.machine.root, name)

    def cache(self, name):
        return os.path.join(self.machine.work, "caches", name.replace("/", "-").replace(":", "-"))


class Part:
    workers = 1
    on_gpu = False

    def __init__(self, name, context):
        self.name, self.context, self.machine = name, context, context.machine

    def steps(self):
        """Steps in their order of importance; made as they are asked for, so that later ones can use what earlier ones found."""
        raise NotImplementedError

    def why_not(self):
        """Why nothing of it can run here, else None."""
        return None

    def go(self, until):
        results = self.context.results
        if why_not := self.why_not():
            results.add(self.name, "all", "not run", why_not)
            return

        def one(step):
            left = until - time.monotonic()
            if left < LEAST:
                results.add(self.name, step.what, "not run", "no time left")
                return
            try:
                outcome, detail, figures = step.run(min(step.bound, left))
            except Exception as why:  # of one step; the others go on
                outcome, detail, figures = "failed", f"{type(why).__name__}: {why}", {}
            if outcome == "failed" and left < step.bound and time.monotonic() >= until:
                outcome = "not run"  # what the part's end cut off says nothing
            results.add(self.name, step.what, outcome, detail, **figures)

        if self.workers == 1:
            for step in self.steps():
                one(step)
            return
        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(one, self.steps()))
