"""A process that hangs (SIGSTOP for 40 s) under `tutti up` on a real API server: it is replaced,
and no gang is bound in part for longer than promised.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape, create_nodes
from tests.support.waiting import eventually
from tests.tutti.up.gangs import bound, make_gang, placed
from tests.tutti.up.running import suite
from tests.tutti.up.test_launchers import lives

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

HUNG_S = 40.0
#: `tutti.dev/repair-deadline-seconds`, by default.
PROMISED_S = 30.0
#: Its bindings take long enough to be caught in the middle.
MEMBERS = 150


@asynccontextmanager
async def hanging(pids: Sequence[int]) -> AsyncIterator[None]:
    """Stop processes; after 40 s, or with the block, those that still live continue."""

    def go_on() -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    timer = asyncio.get_running_loop().call_later(HUNG_S, go_on)
    try:
        yield
    finally:
        timer.cancel()
        go_on()


def certified(*services: str) -> object:
    return pytest.param(services, marks=pytest.mark.certify, id=" and ".join(services))


@pytest.mark.parametrize(
    "services",
    [
        pytest.param(("binder-0", "binder-1"), id="all binders"),
        certified("binder-0"),
        certified("gang-planner-0", "gang-planner-1"),
        certified("watcher-0"),
        certified("controller-0"),
        certified("admission-webhook-0"),
        certified("nats"),
    ],
)
async def test_what_hangs_while_a_gang_is_bound_is_replaced_and_the_gang_is_whole_in_time(
    services: tuple[str, ...],
    api: RawClient,
    namespace: str,
    empty_cluster: None,
    control_plane: ControlPlane,
    tmp_path: Path,
) -> None:
    await create_nodes(api, 10, NodeShape(cpu_milli=40_000))
    async with suite(control_plane.admin_kubeconfig, tmp_path) as running:
        ready = await running.wait_ready()
        pids = {f"{row.service}-{row.ordinal}": row.pid for row in ready.services}
        pids["nats"] = ready.nats_pid
        making = asyncio.create_task(
            make_gang(api, namespace, "large", members=MEMBERS, least=MEMBERS)
        )

        async def partly() -> bool:
            return bool(await placed(api, namespace, "large"))

        await eventually(partly, timeout_s=60)
        begun_s = time.monotonic()
        async with hanging([pids[service] for service in services]):
            in_part = len(await placed(api, namespace, "large"))
            came_s = time.monotonic()
            await make_gang(api, namespace, "small", members=2, least=2)
            created_s = time.monotonic() - came_s
            await bound(api, namespace, "large", MEMBERS, timeout_s=HUNG_S)
            partly_s = time.monotonic() - begun_s
            await bound(api, namespace, "small", 2, timeout_s=HUNG_S)
            small_s = time.monotonic() - came_s
            await eventually(
                lambda: not any(lives(pids[service]) for service in services), timeout_s=HUNG_S
            )
            replaced_s = time.monotonic() - begun_s
        await making
        print(  # noqa: T201 - figures for docs/reliability.md
            f"{'+'.join(services)}: {in_part} of {MEMBERS} bound; whole after {partly_s:.1f} s, "
            f"replaced after {replaced_s:.1f} s, a gang that came then was created in "
            f"{created_s:.1f} s and bound after {small_s:.1f} s"
        )
        assert partly_s < PROMISED_S
        assert replaced_s < HUNG_S / 2, running.errors
        assert "hangs" in running.errors or "hung" in running.errors
