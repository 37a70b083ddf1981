"""What names that users choose leave in a planner after they came and went, in process.

Each round, a tenant with new names creates a namespace, a queue, a priority class, two gangs, of
which one names a queue that does not exist, and pods with new roles and owners; then all of it
goes. Memory (tracemalloc, after a collection) and the time of a cycle that places a gang are those
of the first rounds and of the last. With `--shapes`, the requests and node selectors of the pods
are new in each round as well: what the planner knows of a shape and of a resource stays, so these
figures are printed and not held to anything.

    python -m bench.churn [--rounds N] [--shapes] [--strict]
"""

import argparse
import gc
import sys
import time
import tracemalloc
from statistics import median
from typing import Any, Final

from shared.contracts.identity import gang_trace_id
from shared.model.objects import Owner, PriorityClass, Queue
from shared.model.reference_objects import Namespace
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

_NODES: Final = 200
#: Cycles and tables are warm after these rounds.
_FIRST: Final = 200
_MEASURED: Final = 50
#: The end over the start, at most; measurements of equal cycles differ by a third.
_MEMORY_BAR: Final = 1.1
_TIME_BAR: Final = 1.5


def come_and_go(scene: Scene, number: int, *, shapes: bool) -> float:
    """One round. Returns the seconds of the cycle in which its gangs appear."""
    name = f"x{number}"
    here: dict[str, Any] = {"namespace": f"ns-{name}"}
    shape = make_shape({"cpu": 100})
    if shapes:
        shape = make_shape({"cpu": 100, f"example.com/{name}": 1}, node_selector=((name, "v"),))
    owner = Owner(api_version="batch/v1", kind="Job", name=name, uid=f"owner-{name}")
    objects: list[Any] = [
        Queue(uid=f"queue-{name}", dialect="volcano", name=name, resource_version=1),
        Namespace(uid=f"namespace-{name}", name=f"ns-{name}", resource_version=1),
        PriorityClass(uid=f"class-{name}", name=name, resource_version=1, value=number),
        make_group(f"a-{name}", 2, queue=name, uid=f"a-{name}", priority_class=name, **here),
        make_group(f"b-{name}", 1, queue=f"no-{name}", uid=f"b-{name}", **here),
        *make_pods(f"a-{name}", 1, shape, role=f"role-{name}", owner=owner, **here),
        *make_pods(f"b-{name}", 1, shape, role=f"role-{name}", owner=owner, **here),
    ]
    scene.put(*objects)
    before_s = time.process_time()
    scene.step()
    taken_s = time.process_time() - before_s
    scene.remove(*reversed(objects))
    scene.step(after_ms=10_000)
    # Only the scene keeps what was published.
    scene.published.clear()
    scene.verdicts.clear()
    scene.records.clear()
    return taken_s


def measured(scene: Scene, first: int, *, shapes: bool) -> tuple[int, float]:
    """(bytes in use, median seconds of a cycle) over some rounds."""
    times_s = [come_and_go(scene, first + one, shapes=shapes) for one in range(_MEASURED)]
    # It keeps the newest ids, at most so many.
    gang_trace_id.cache_clear()
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    return used, median(times_s)


def main() -> None:
    """Print memory and time at start and end; exit status 1 if a ratio exceeds its bar."""
    parser = argparse.ArgumentParser(prog="python -m bench.churn")
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--shapes", action="store_true", help="new shapes and resources as well")
    parser.add_argument("--strict", action="store_true", help="exit status 1 when a bar is missed")
    options = parser.parse_args()
    tracemalloc.start()
    scene = Scene([make_node(f"n{number}") for number in range(_NODES)])
    for number in range(_FIRST):
        come_and_go(scene, number, shapes=options.shapes)
    start_bytes, start_s = measured(scene, _FIRST, shapes=options.shapes)
    for number in range(_FIRST + _MEASURED, options.rounds):
        come_and_go(scene, number, shapes=options.shapes)
    end_bytes, end_s = measured(scene, options.rounds, shapes=options.shapes)
    memory, cycles = end_bytes / start_bytes, end_s / start_s
    print(f"{options.rounds:,} names of each kind, {_NODES} nodes")
    print(
        f"memory  {start_bytes / 2**20:8.2f} MiB {end_bytes / 2**20:8.2f} MiB  ratio {memory:.2f}"
    )
    print(f"cycle   {start_s * 1e3:8.2f} ms  {end_s * 1e3:8.2f} ms   ratio {cycles:.2f}")
    missed = memory > _MEMORY_BAR or cycles > _TIME_BAR
    if options.strict and not options.shapes and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
