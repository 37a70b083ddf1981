"""``python -m bench.claims``: the same gangs with and without a ResourceClaim for each pod, drained
in turns on one real API server.

A pod with a claim needs more writes than its Binding: the claim's finalizer, and its status with
devices and reservation. So the figure is writes of bindings and claims per second, from the first
binding to the last, as a ratio to the drain without claims right before it. With --strict a median
below the bar is a failure.

    python -m bench.claims [--rounds N] [--load GxN] [--nodes N] [--strict]
"""

import argparse
import asyncio
import statistics
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from bench import drain
from bench.contenders import Tutti
from bench.drain import DrainRun
from bench.load import DEVICE_CLASS, Load, parsed
from bench.testbed import PODS_PER_NODE_MAX, Bed, open_testbed
from shared.kube.resources import DEVICE_CLASSES, RESOURCE_SLICES

#: Writes per second with claims, as a ratio to those without.
BAR: Final = 0.9
_DRIVER: Final = "gpu.example.com"
_CLASS: Final[dict[str, Any]] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": DEVICE_CLASS},
    "spec": {
        "selectors": [
            {
                "cel": {
                    "expression": f"device.driver == '{_DRIVER}' && "
                    f"device.attributes['{_DRIVER}'].type == 'gpu'"
                }
            }
        ]
    },
}


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two drains, one after the other."""

    without: DrainRun
    with_claims: DrainRun

    @property
    def ratio(self) -> float:
        """Writes per second with claims, to those without."""
        return writes_per_s(self.with_claims) / writes_per_s(self.without)


def writes_per_s(run: DrainRun) -> float:
    """Writes that binding the pods needed, per second of its duration."""
    return run.rate * needed_writes(run) / run.pods


def _by_role(run: DrainRun) -> str:
    return ", ".join(f"{role} {cpu_s:.1f} s" for role, cpu_s in sorted(run.cpu_by_role().items()))


def needed_writes(run: DrainRun) -> int:
    """Bindings, and writes of claims."""
    return sum(
        count
        for name, count in run.writes.items()
        if name.partition(" ")[2].startswith(("pods/binding", "resourceclaims"))
    )


async def measure(what: Load, nodes: int, rounds: int, say: Callable[[str], None]) -> list[Pair]:
    """Drain the load without and with claims, so many times.

    Raises:
        Stalled, WatchBroken, ContenderFailed: A drain did not end.
    """
    found: list[Pair] = []
    async with open_testbed(nodes, warm_up_pods=what.pods) as bed:
        await _add_devices(bed)
        for _ in range(rounds):
            runs: list[DrainRun] = []
            for claims in (False, True):
                run = await drain.measure(
                    bed, Tutti(), msgspec.structs.replace(what, claims=claims)
                )
                runs.append(run)
                say(
                    f"{run.load}: {run.rate:.0f} pods/s, {writes_per_s(run):.0f} writes/s, "
                    f"{run.cpu_s:.1f} s of CPU, API server {run.apiserver_ms_per_pod:.2f} and etcd "
                    f"{run.etcd_ms_per_pod:.2f} ms a pod; CPU by service: {_by_role(run)}"
                )
            found.append(Pair(without=runs[0], with_claims=runs[1]))
    return found


async def _add_devices(bed: Bed) -> None:
    """A device for each pod that a node has room for."""
    post = bed.burst.post
    await bed.create([post(DEVICE_CLASSES.path(), _CLASS)])
    await bed.create(post(RESOURCE_SLICES.path(), _slice(node)) for node in bed.nodes)


def _slice(node: str) -> dict[str, Any]:
    def device(index: int) -> dict[str, Any]:
        return {
            "name": f"gpu-{index}",
            "attributes": {
                "type": {"string": "gpu"},
                "productName": {"string": "B200"},
                "uuid": {"string": f"GPU-{node}-{index}"},
            },
            "capacity": {"memory": {"value": "192Gi"}},
        }

    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": _DRIVER,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "nodeName": node,
            "devices": [device(index) for index in range(PODS_PER_NODE_MAX)],
        },
    }


def main() -> None:
    """Drain and print the ratios."""
    parser = argparse.ArgumentParser(prog="python -m bench.claims", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="pairs of drains (median)")
    parser.add_argument("--load", type=parsed, default=Load(gangs=250, size=20), metavar="GxN")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--strict", action="store_true", help="fail when the bar is missed")
    options = parser.parse_args()
    found = asyncio.run(
        measure(options.load, options.nodes, options.rounds, lambda line: print(line, flush=True))
    )
    median = statistics.median(pair.ratio for pair in found)
    each = ", ".join(f"{pair.ratio:.2f}" for pair in found)
    print(f"writes with claims: {found[-1].with_claims.writes}")
    print(f"bench.claims: writes per second {median:.2f} of a drain without claims ({each})")
    if median < BAR and options.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
