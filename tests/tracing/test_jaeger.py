"""Gangs of Volcano Jobs on a real API server, as a real Jaeger tells them.

The assertions are those of `test_job_trace`, which needs neither.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.jaeger import running_jaeger
from tests.support.waiting import eventually
from tests.tracing.jobs_gang import submit
from tests.tracing.traces import Trace, trace_of_jaeger
from tests.tutti.up.gangs import bound, make_nodes
from tests.tutti.up.running import suite

pytestmark = [pytest.mark.certify, pytest.mark.timeout(180)]

SERVICES = {
    f"tutti-{name}"
    for name in ("watcher", "gang-planner", "binder", "controller", "admission-webhook")
}
JOBS = 4
PODS = 3


@pytest.fixture
def kubeconfig() -> Iterator[Path]:
    """Of a control plane of its own: no other test's gangs are in the traces."""
    with ControlPlane() as running:
        running.install_crds(CRDS_DIR)
        yield running.admin_kubeconfig


async def test_jaeger_shows_each_jobs_gang_as_one_trace(
    kubeconfig: Path, jaeger_program: Path, tmp_path: Path
) -> None:
    async with (
        running_jaeger(jaeger_program, tmp_path / "jaeger") as jaeger,
        RawClient(kubeconfig) as api,
        suite(kubeconfig, tmp_path / "up", f"--otlp={jaeger.otlp}") as running,
    ):
        await make_nodes(api, JOBS)
        await running.wait_ready()
        ids = {f"train-{index}": await submit(api, f"train-{index}", PODS) for index in range(JOBS)}
        for name in ids:
            await bound(api, "default", name, PODS)
        traces: dict[str, Trace] = {}
        for name, trace_id in ids.items():

            async def whole(trace_id: str = trace_id) -> Trace | None:
                told = await jaeger.trace(trace_id)
                trace = trace_of_jaeger(told) if told is not None else None
                return trace if trace is not None and trace.says_it_runs else None

            found = await eventually(whole, timeout_s=30.0, because=f"{name} is told")
            assert found is not None
            traces[name] = found
        assert await jaeger.services() >= SERVICES
        told = await jaeger.traces("tutti-gang-planner")
    for name, trace in traces.items():
        trace.check_jobs_gang(f"default/{name}", PODS)
        assert trace.services == SERVICES
    assert {one["traceID"] for one in told} == set(ids.values()), "one trace each, and no other"
