"""Inject faults between jobs and a real S3-compatible server until 1,000 have been.

    python -m tests.long.s3_faults --faults 1000 [--seed 7] [--share 0.3]

A proxy before the server spoils a random share of all requests: throttling, errors and refusals of
many kinds, resets before and after the request was carried out, answers that are cut or never come.
Input and dataset lie on S3, jobs run whole, in partitions and as twins. A job that gives up ends
with exit code 4 and is started again, as a scheduler would. The dataset must be that of a job that
nothing hindered, row for row, pass `verify` and leave no leftovers.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import faulty_jobs as jobs
from faulty_jobs import Faulty
from s3_proxy import FAULTS, Faults, at_random, s3_proxy
from s3_server import S3Server, s3_server

from pipeline.config import OutputConfig

KINDS = {"whole": (1, 1), "partitions": (2, 1), "twins": (1, 2)}


@dataclass
class Outcome:
    """What was injected, and what jobs did of it.

    Attributes:
        gave_up: processes that ended with exit code 4, and were started again.
    """

    faults: Faults
    jobs: int = 0
    gave_up: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def again(self, code: int) -> bool:
        """Whether a process that ended so is started again."""
        self.gave_up += code == jobs.STORAGE_LOST
        return code == jobs.STORAGE_LOST


def run(
    server: S3Server, folder: Path, count: int, seed: int, share: float, stall_seconds: float = 1.0
) -> Outcome:
    """Jobs through the proxy until `count` faults were injected.

    Raises:
        AssertionError: if anything was lost, doubled or left behind.
    """
    jobs.prepare()
    sources = jobs.put_on_s3(server, folder)
    calm_output = OutputConfig(dataset=f"s3://{jobs.BUCKET}/calm", s3_endpoint=server.endpoint)
    calm = jobs.configured(folder, sources, calm_output)
    jobs.finish(Faulty(calm))
    with s3_proxy(server.port) as (endpoint, faults):
        faults.stall_seconds = stall_seconds
        outcome = Outcome(faults)
        while faults.total < count:
            for name, (partitions, twins) in KINDS.items():
                faults.choose = at_random(seed + outcome.jobs, share, limit=count - faults.total)
                place = f"s3://{jobs.BUCKET}/{name}-{outcome.jobs}"
                output = OutputConfig(dataset=place, s3_endpoint=endpoint)
                config = jobs.configured(folder, sources, output)
                jobs.finish(Faulty(config, 0.0, partitions, twins), outcome.again)
                faults.choose = lambda _: None
                jobs.check(config, calm)
                outcome.jobs += 1
                if faults.total >= count:
                    break
            print(
                f"{faults.total} faults, {outcome.jobs} jobs, {outcome.gave_up} gave up", flush=True
            )
    return outcome


def told(outcome: Outcome) -> str:
    """Faults by kind and by operation."""
    by_kind: Counter[str] = Counter()
    by_operation: Counter[str] = Counter()
    for (kind, operation), count in outcome.faults.done.items():
        by_kind[kind] += count
        by_operation[operation] += count
    requests = dict(outcome.faults.requests)
    return f"faults {dict(by_kind)}; of operations {dict(by_operation)}; requests {requests}"


def main() -> None:
    """Hinder, compare, and say what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--share", type=float, default=0.3)
    options = parser.parse_args()
    started = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pantalla-faults-")))
        (folder / "s3").mkdir()
        (folder / "input").mkdir()
        server = stack.enter_context(s3_server(folder / "s3"))
        outcome = run(server, folder / "input", options.faults, options.seed, options.share)
    assert outcome.faults.done.keys() and {kind for kind, _ in outcome.faults.done} <= {*FAULTS}
    print(told(outcome))
    print(
        f"{outcome.faults.total} faults in {outcome.jobs} jobs and "
        f"{time.monotonic() - started:.0f} s; {outcome.gave_up} processes gave up with exit code "
        "4 and were started again; every dataset equals the undisturbed one row for row, verify "
        "passes, nothing is left over"
    )


if __name__ == "__main__":
    main()
