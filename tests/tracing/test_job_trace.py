"""A Volcano Job's gang is one trace from the Job's admission on; in process, without Jaeger.

The same in a real Jaeger, and on a real API server: `test_jaeger`.
"""

from pathlib import Path

import pytest

from tests.controlplane.client import ApiError, RawClient
from tests.support.otlp_sink import OtlpSink
from tests.support.waiting import eventually
from tests.tracing.jobs_gang import JOBS, job, refuse_once, second_trace, submit
from tests.tracing.traces import Trace, check_retry, traces_of
from tests.tutti.up.gangs import bound
from tests.tutti.up.running import suite, tutti

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]


async def test_jobs_gangs_are_traces_from_admission_to_the_last_pod_bound_refusals_included(
    client: RawClient, kubeconfig: Path, sink: OtlpSink, tmp_path: Path
) -> None:
    await refuse_once(client, "hapless-worker-1")
    async with suite(kubeconfig, tmp_path / "up", "--api", f"--otlp={sink.endpoint}") as running:
        await running.wait_ready()
        train = await submit(client, "train", 3)
        hapless = await submit(client, "hapless", 3)
        with pytest.raises(ApiError, match="queue"):
            await client.create(JOBS, job("nowhere", 2, queue="missing"))
        for name in ("train", "hapless"):
            await bound(client, "default", name)
        again = await second_trace(client, "hapless")
        assert await second_trace(client, "train") == train, "it needed only one"

        def is_reported() -> bool:
            traces = traces_of(sink)
            if not {train, hapless, again} <= set(traces):
                return False
            ends = "release" in traces[hapless].names and traces[again].says_it_runs
            return traces[train].is_whole and ends and bool(refusals(sink))

        await eventually(is_reported, timeout_s=20.0)
        asked = ("trace", "hapless", f"--kubeconfig={kubeconfig}")
        order = ["queued", "decided", "bound", "releasing", "removed", "decided", "proved", "bound"]

        async def reported() -> str:
            status, out, errors = await tutti(*asked)
            assert status == 0, errors
            words = iter(out.split())
            assert all(word in words for word in order), out
            return out

        out = await eventually(reported, because="the API has read what is in the traces")
        unknown = await tutti("trace", "team/unknown", f"--kubeconfig={kubeconfig}")
    traces = traces_of(sink)
    traces[train].check_jobs_gang("default/train", 3)
    check_retry(traces[hapless], traces[again])
    refused = refusals(sink)
    assert set(traces) == {train, hapless, again, *refused}, "and no other"
    (admission,) = traces[refused[0]].spans
    assert "queue" in admission.error
    assert admission.parent == "", "it becomes no gang"
    assert "2 of 3 pods by binder-" in out
    assert hapless in out
    assert again in out
    assert unknown[0] == 2
    assert unknown[2].startswith("tutti: no gang team/unknown is known")


def refusals(sink: OtlpSink) -> list[str]:
    """Traces of objects that were not admitted."""
    return [key for key, trace in traces_of(sink).items() if was_refused(trace)]


def was_refused(trace: Trace) -> bool:
    return any(each.failed for each in trace.named("admit"))
