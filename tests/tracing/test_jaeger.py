"""Traces of gangs of Volcano Jobs in a real Jaeger: with a real API server, and with one scripted
to misbehave.

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
from tests.tracing.jobs_gang import refuse_once, second_trace, submit
from tests.tracing.traces import Trace, check_retry, trace_of_jaeger
from tests.tutti.up.gangs import bound, make_nodes
from tests.tutti.up.running import suite, tutti

pytestmark = [pytest.mark.certify, pytest.mark.timeout(180)]

SERVICES = {
    f"tutti-{name}"
    for name in ("watcher", "gang-planner", "binder", "controller", "admission-webhook")
}
JOBS = 4
PODS = 3


@pytest.fixture
def real_kubeconfig() -> Iterator[Path]:
    """Of a control plane of its own: no other test's gangs are in the traces."""
    with ControlPlane() as running:
        running.install_crds(CRDS_DIR)
        yield running.admin_kubeconfig


async def test_jaeger_shows_each_jobs_gang_as_one_trace(
    real_kubeconfig: Path, jaeger_program: Path, tmp_path: Path
) -> None:
    async with (
        running_jaeger(jaeger_program, tmp_path / "jaeger") as jaeger,
        RawClient(real_kubeconfig) as api,
        suite(real_kubeconfig, tmp_path / "up", "--api", f"--otlp={jaeger.otlp}") as running,
    ):
        await make_nodes(api, JOBS)
        await running.wait_ready()
        ids = {f"train-{index}": await submit(api, f"train-{index}", PODS) for index in range(JOBS)}
        for name in ids:
            await bound(api, "default", name, PODS)
        traces: dict[str, Trace] = {}
        for name, trace_id in ids.items():

            async def whole(trace_id: str = trace_id) -> Trace | None:
                found_traces = await jaeger.trace(trace_id)
                trace = trace_of_jaeger(found_traces) if found_traces is not None else None
                return trace if trace is not None and trace.is_whole else None

            found = await eventually(whole, timeout_s=30.0, because=f"{name} is complete")
            assert found is not None
            traces[name] = found
        assert await jaeger.services() >= SERVICES
        found_traces = await jaeger.traces("tutti-gang-planner")
        address = f"--jaeger={jaeger.api}"
        shown = await tutti("trace", "train-0", f"--kubeconfig={real_kubeconfig}", address)
    for name, trace in traces.items():
        trace.check_jobs_gang(f"default/{name}", PODS)
        assert trace.services == SERVICES
    assert {one["traceID"] for one in found_traces} == set(ids.values()), (
        "one trace each, and no other"
    )
    status, out, errors = shown
    assert (status, errors) == (0, "")
    words = iter(out.split())
    assert all(word in words for word in ("queued", "decided", "bound", "started")), out
    assert all(what in out for what in ("admit", "make group", "make pods", "observe", "report"))
    assert f"{jaeger.api}/trace/{ids['train-0']}" in out


async def test_jaeger_shows_a_refused_binding_its_release_and_the_next_attempt(
    client: RawClient, kubeconfig: Path, jaeger_program: Path, tmp_path: Path
) -> None:
    await refuse_once(client, "hapless-worker-1")
    async with (
        running_jaeger(jaeger_program, tmp_path / "jaeger") as jaeger,
        suite(kubeconfig, tmp_path / "up", f"--otlp={jaeger.otlp}") as running,
    ):
        await running.wait_ready()
        first = await submit(client, "hapless", PODS)
        await bound(client, "default", "hapless", PODS)
        second = await second_trace(client, "hapless")

        async def both_traces() -> tuple[Trace, Trace] | None:
            found = [await jaeger.trace(trace_id) for trace_id in (first, second)]
            traces = [trace_of_jaeger(one) for one in found if one is not None]
            whole = len(traces) == 2 and "release" in traces[0].names and traces[1].says_it_runs
            return (traces[0], traces[1]) if whole else None

        traces = await eventually(both_traces, timeout_s=30.0)
    assert traces is not None
    check_retry(*traces)
