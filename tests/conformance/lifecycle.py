"""Plays lifecycle cases to a real control plane with the suite, and says what differs.

    python -m tests.conformance.lifecycle --only job/suspend [--all] [--events] [--suite "FLAGS"]

One stand (control plane, four nodes of 4 CPU, kubelets, `tutti up` with the webhook) serves any
number of cases; a file's scheduler configuration is written where the suite watches it.
"""

import argparse
import asyncio
import re
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.conformance.cluster_view import ClusterView
from tests.conformance.explained import unexplained
from tests.conformance.process_kubelet import ProcessKubelet
from tests.conformance.recordings import Difference, Object, differences, read, themes
from tests.conformance.scenario import KINDS_WATCHED, Scenario
from tests.controlplane.client import ApiError, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.nodes import NodeShape, delete_nodes, node_manifest
from tests.integration.suite import RunningSuite, running_suite
from tests.support.background import in_background
from tests.support.scheduler_conf import configure
from tests.support.waiting import eventually

#: A state counts when nothing has changed for so long, as in the recordings.
QUIET_S: Final = 3.0
_CONF: Final = "volcano-scheduler.conf"


Cases = Mapping[str, Sequence[Object]]
"""Cases by theme."""


class Outcome(NamedTuple):
    """What became of one case."""

    key: str
    """`THEME/CASE`."""

    differences: list[Difference]


class Stand:
    """Where cases are played, one after the other or several at once."""

    def __init__(self, api: RawClient, view: ClusterView, conf: Path, quiet_s: float) -> None:
        self._api, self._view, self._conf, self._quiet_s = api, view, conf, quiet_s

    async def play(self, cases: Cases, *, at_once: int = 3) -> AsyncIterator[Outcome]:
        """Play cases; those with the same scheduler configuration together, exclusive ones alone.
        Gives each as it ends.
        """
        by_conf: dict[str, list[tuple[str, Object]]] = {}
        for theme, chosen in cases.items():
            conf = read(f"lifecycle/{theme}")["schedulerConf"]
            by_conf.setdefault(conf, []).extend((theme, case) for case in chosen)
        for conf, together in by_conf.items():
            await configure(self._conf, conf)
            for exclusive in (False, True):
                sort = [one for one in together if bool(one[1].get("exclusive")) is exclusive]
                async for outcome in self._all(sort, 1 if exclusive else at_once):
                    yield outcome

    async def _all(
        self, cases: Sequence[tuple[str, Object]], at_once: int
    ) -> AsyncIterator[Outcome]:
        left = iter(cases)
        ended: asyncio.Queue[Outcome] = asyncio.Queue()

        async def work() -> None:
            for theme, case in left:
                await ended.put(await self._one(theme, case))

        async with asyncio.TaskGroup() as group:
            for number in range(at_once):
                group.create_task(work(), name=f"player-{number}")
            for _ in cases:
                yield await ended.get()

    async def _one(self, theme: str, case: Object) -> Outcome:
        key = f"{theme}/{case['name']}"
        scenario = Scenario(self._api, self._view, case, quiet_s=self._quiet_s)
        try:
            played = await scenario.play()
        except (ApiError, AssertionError) as error:  # a step that cannot be taken
            return Outcome(key, [Difference("step", repr(error))])
        return Outcome(key, list(differences(case, played)))


@contextmanager
def suite(plane: ControlPlane, folder: Path, *flags: str) -> Iterator[tuple[RunningSuite, Path]]:
    """The control plane's `tutti up` and the file of its scheduler configuration."""
    conf = folder / _CONF
    conf.write_text(read("lifecycle/gang")["schedulerConf"])
    with running_suite(
        plane.admin_kubeconfig, folder, f"--scheduler-conf={conf}", "--webhook-port=0", *flags
    ) as running:
        yield running, conf


@asynccontextmanager
async def stand(
    plane: ControlPlane, conf: Path, *, quiet_s: float = QUIET_S
) -> AsyncIterator[Stand]:
    """Nodes, kubelets and watches on a control plane whose suite runs."""
    async with RawClient(plane.admin_kubeconfig) as api:
        shape = NodeShape(cpu_milli=4000, memory_bytes=16 * 2**30, pods=110)
        for index in range(1, 5):
            await api.create("/api/v1/nodes", node_manifest(f"worker-{index}", shape))
        view = ClusterView(api, KINDS_WATCHED)
        try:
            async with (
                in_background(ProcessKubelet(api).run(), name="kubelet"),
                in_background(view.run(), name="view"),
            ):
                await eventually(lambda: view.synced, because="every kind was listed")
                yield Stand(api, view, conf, quiet_s)
        finally:
            await delete_nodes(api)


def control_plane() -> ControlPlane:
    """With default-scheduler and the controllers that workloads need; not started yet."""
    options = ControlPlaneOptions(controllers=WORKLOAD_CONTROLLERS, scheduler=True)
    return ControlPlane(options)


def selected(pattern: str) -> dict[str, list[Object]]:
    """Cases whose `THEME/CASE` matches somewhere, by theme."""
    found = {}
    for name in themes("lifecycle"):
        theme = name.partition("/")[2]
        cases = [
            case for case in read(name)["cases"] if re.search(pattern, f"{theme}/{case['name']}")
        ]
        if cases:
            found[theme] = cases
    return found


async def _main(arguments: argparse.Namespace, plane: ControlPlane, conf: Path) -> int:
    bad = count = 0
    async with stand(plane, conf, quiet_s=arguments.quiet) as here:
        async for key, found in here.play(selected(arguments.only)):
            shown = found if arguments.all else unexplained(key, found, events=arguments.events)
            count += 1
            bad += bool(shown)
            sys.stdout.write(f"{'DIFF' if shown else 'ok  '} {key}\n")
            for one in shown:
                sys.stdout.write(f"     {one.where} -> {one.what[:300]}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{count} cases, {bad} differ\n")
    return 1 if bad else 0


def main() -> int:
    """Play what the command line chooses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose THEME/CASE matches")
    parser.add_argument("--all", action="store_true", help="also differences that are explained")
    parser.add_argument("--events", action="store_true", help="also differences of events")
    parser.add_argument("--quiet", type=float, default=QUIET_S, help="seconds without a change")
    parser.add_argument("--suite", default="", help="more flags for tutti up")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, control_plane() as plane:
        plane.install_crds(CRDS_DIR)
        folder = Path(name)
        with suite(plane, folder, *shlex.split(arguments.suite)) as (_, conf):
            return asyncio.run(_main(arguments, plane, conf))


if __name__ == "__main__":
    sys.exit(main())
