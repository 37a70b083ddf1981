"""``python -m bench.dialects``: the same gangs, written in each gang API, drained in turns.

One control plane with the CRDs of all APIs and Kubernetes' own groups enabled; each round drains
the load once in each API, in an order that rotates from round to round. The figures are ratios to
Volcano's drain of the same round, so that a slow minute of the machine does not look like a slow
API. With --strict a median below the bar is a failure.

    python -m bench.dialects [--rounds N] [--load GxN] [--nodes N] [--json FILE] [--strict]
"""

import argparse
import asyncio
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from bench import drain
from bench.contenders import Tutti
from bench.drain import DrainRun
from bench.gang_apis import GangApi
from bench.load import Load, parsed
from bench.testbed import CRDS_DIR, open_testbed
from tests.controlplane.components import ControlPlaneOptions
from tests.dialects.cases import FOLDER

#: A gang API's drain has at least this rate, as a ratio to Volcano's of the same round.
BAR: Final = 0.97
_GATES: Final = "--feature-gates=GenericWorkload=true,GangScheduling=true"
_OPTIONS: Final = ControlPlaneOptions(
    apiserver_args=(_GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true")
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What the drains of one API showed; medians over the rounds."""

    api: GangApi
    #: Pods per second.
    rate: float
    #: Rates, each as a ratio to that of Volcano's drain of the same round.
    rate_ratios: tuple[float, ...]
    cpu_ratio: float
    writes_per_pod: float
    #: Writes while gangs were bound, without the bindings: they slow these down.
    writes_while_binding: float

    @property
    def rate_ratio(self) -> float:
        """The median."""
        return statistics.median(self.rate_ratios)


async def measure(
    what: Load, nodes: int, rounds: int, say: Callable[[str], None]
) -> dict[GangApi, list[DrainRun]]:
    """Drain the load in every API, so many times.

    Args:
        what: The load; its API is replaced.
        nodes: Nodes of the cluster.
        rounds: Drains in each API.
        say: Called with a line after each drain.

    Raises:
        Stalled, WatchBroken, ContenderFailed: A drain did not end.
    """
    apis = list(GangApi)
    found: dict[GangApi, list[DrainRun]] = {api: [] for api in apis}
    async with open_testbed(nodes, warm_up_pods=what.pods, options=_OPTIONS) as bed:
        for crds in (CRDS_DIR / "kube-batch", FOLDER / "crds"):
            await asyncio.to_thread(bed.control_plane.install_crds, crds)
        for number in range(rounds):
            first = number % len(apis)
            for api in apis[first:] + apis[:first]:
                run = await drain.measure(bed, Tutti(), msgspec.structs.replace(what, api=api))
                found[api].append(run)
                say(f"{run.load}: {run.rate:.0f} pods/s, {run.cpu_s:.1f} s of CPU")
    return found


def rows(found: dict[GangApi, list[DrainRun]]) -> list[Row]:
    """The table: an API a row."""
    return [
        Row(
            api=api,
            rate=statistics.median(run.rate for run in runs),
            rate_ratios=tuple(_ratios(found, api, lambda run: run.rate)),
            cpu_ratio=statistics.median(_ratios(found, api, lambda run: run.cpu_s)),
            writes_per_pod=statistics.median(run.writes_per_pod for run in runs),
            writes_while_binding=statistics.median(run.other_writes_while_binding for run in runs),
        )
        for api, runs in found.items()
    ]


def _ratios(
    found: dict[GangApi, list[DrainRun]], api: GangApi, figure: Callable[[DrainRun], float]
) -> Iterable[float]:
    pairs = zip(found[api], found[GangApi.VOLCANO], strict=True)
    return [figure(run) / figure(volcano) for run, volcano in pairs]


def main() -> None:
    """Drain and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.dialects", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="drains in each API (medians)")
    parser.add_argument("--load", type=parsed, default=Load(gangs=250, size=20), metavar="GxN")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all drains")
    parser.add_argument("--strict", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    found = asyncio.run(
        measure(options.load, options.nodes, options.rounds, lambda line: print(line, flush=True))
    )
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    table = rows(found)
    for row in table:
        each = ", ".join(f"{ratio:.2f}" for ratio in row.rate_ratios)
        print(
            f"{row.api:<13} {row.rate:>6.0f} pods/s  {row.rate_ratio:.2f} of Volcano's ({each})  "
            f"CPU {row.cpu_ratio:.2f}  {row.writes_per_pod:.2f} writes per pod, "
            f"{row.writes_while_binding:.0f} of them beside bindings"
        )
    missed = [row.api for row in table if row.rate_ratio < BAR]
    ratios = "; ".join(f"{row.api} {row.rate_ratio:.2f}" for row in table)
    print(f"bench.dialects: {len(missed)} missed: {ratios}")
    if missed and options.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
