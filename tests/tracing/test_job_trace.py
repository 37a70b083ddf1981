"""A Volcano Job's gang is one trace from the Job's admission on; in process, without Jaeger.

The same on a real API server and in a real Jaeger: `test_jaeger`.
"""

from pathlib import Path

import pytest

from tests.controlplane.client import ApiError, RawClient
from tests.support.otlp_sink import OtlpSink
from tests.support.waiting import eventually
from tests.tracing.jobs_gang import JOBS, job, submit
from tests.tracing.traces import Trace, traces_of
from tests.tutti.up.gangs import bound
from tests.tutti.up.running import suite

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(90)]


async def test_a_jobs_gang_is_one_trace_from_its_admission_to_the_last_pod_bound(
    client: RawClient, kubeconfig: Path, sink: OtlpSink, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path / "up", f"--otlp={sink.endpoint}") as running:
        await running.wait_ready()
        trace_id = await submit(client, "train", 3)
        await bound(client, "default", "train")
        trace = await eventually(lambda: whole(sink, trace_id), timeout_s=20.0)
        with pytest.raises(ApiError):
            await client.create(JOBS, job("nowhere", 2, queue="missing"))
        groups = await client.get("/apis/scheduling.volcano.sh/v1beta1/podgroups")
        refused = await eventually(lambda: refusals(sink))
    assert trace is not None
    trace.check_jobs_gang("default/train", 3)
    assert set(traces_of(sink)) == {trace_id, refused[0].trace_id}
    (group,) = groups["items"]
    assert group["metadata"]["annotations"]["tutti.dev/trace-id"] == trace_id
    (admission,) = refused[0].spans
    assert admission.failed
    assert "queue" in admission.error
    assert admission.parent == "", "it becomes no gang"


def whole(sink: OtlpSink, trace_id: str) -> Trace | None:
    """The trace, once all of it has come."""
    trace = traces_of(sink).get(trace_id)
    return trace if trace is not None and trace.says_it_runs else None


def refusals(sink: OtlpSink) -> list[Trace]:
    """Traces of objects that were not admitted."""
    traces = traces_of(sink).values()
    return [trace for trace in traces if any(each.failed for each in trace.named("admit"))]
