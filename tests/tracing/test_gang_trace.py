"""One trace per gang and attempt, across all services of a running suite."""

import json
import os
import signal
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from shared.contracts.identity import gang_trace_id
from shared.telemetry.tracing import gang_span
from tests.controlplane.client import Object, RawClient
from tests.support.faulty_cluster import ORDERS
from tests.support.otlp_sink import OtlpSink
from tests.support.waiting import eventually
from tests.tracing.traces import Trace, traces_of
from tests.tutti.up.gangs import bound, make_gang
from tests.tutti.up.running import Suite, suite

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(90)]

ALL = frozenset({"tutti-watcher", "tutti-gang-planner", "tutti-binder", "tutti-controller"})
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"
SUBMITTER = ("a" * 32, "b" * 16)


def suite_with(
    kubeconfig: Path, sink: OtlpSink, folder: Path
) -> AbstractAsyncContextManager[Suite]:
    return suite(kubeconfig, folder, "--no-webhook", f"--otlp={sink.endpoint}")


async def uid_of(client: RawClient, gang: str) -> str:
    group = await client.get(f"{GROUPS}/{gang}")
    return str(group["metadata"]["uid"])


async def complete_trace(
    sink: OtlpSink, trace_id: str, *, reports: str = "Running", services: frozenset[str] = ALL
) -> Trace:
    """The trace, once its root, the report of this phase and a span of each service are there."""

    def complete() -> Trace:
        trace = traces_of(sink)[trace_id]
        assert trace.root
        assert services <= trace.services
        assert reports in [each.values["phase"] for each in trace.named("report")]
        return trace

    def known() -> Trace | None:
        return complete() if trace_id in traces_of(sink) else None

    found = await eventually(known, timeout_s=15.0, because=f"trace {trace_id} is complete")
    assert found is not None
    return found


async def misbehave(client: RawClient, **rule: str | int) -> None:
    """Order the embedded cluster to spoil requests."""
    await client.create(ORDERS, {"rules": [rule]})


async def make_traced_gang(client: RawClient, name: str) -> None:
    """Make a gang of three whose submitter traces: the link is on its group."""
    manifest: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "annotations": {"tutti.dev/traceparent": f"00-{SUBMITTER[0]}-{SUBMITTER[1]}-01"},
        },
        "spec": {"minMember": 3},
    }
    await client.create(GROUPS, manifest)
    await make_pods(client, name, 3)


async def make_pods(client: RawClient, gang: str, count: int) -> None:
    for index in range(count):
        await client.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{gang}-{index}",
                    "annotations": {"scheduling.k8s.io/group-name": gang},
                },
                "spec": {
                    "schedulerName": "volcano",
                    "containers": [
                        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
                    ],
                },
            },
        )


async def test_each_gang_has_one_trace_with_every_service_below_its_root(
    client: RawClient, kubeconfig: Path, sink: OtlpSink, tmp_path: Path
) -> None:
    gangs = ("one", "two", "three")
    async with suite_with(kubeconfig, sink, tmp_path / "up") as running:
        await running.wait_ready()
        await make_traced_gang(client, "one")
        for gang in gangs[1:]:
            await make_gang(client, "default", gang)
        for gang in gangs:
            await bound(client, "default", gang)
        ids = {gang: gang_trace_id(await uid_of(client, gang), 1) for gang in gangs}
        traces = {gang: await complete_trace(sink, trace_id) for gang, trace_id in ids.items()}
        assert set(traces_of(sink)) == set(ids.values())
        pod = await client.get(f"{PODS}/one-0")
        logs = logged(running)
    for gang, trace in traces.items():
        trace.check()
        assert trace.services == ALL
        assert trace.names == ["bind", "decide", "gang", "observe", "preflight", "queue", "report"]
        once = [each.name for each in trace.spans if each.name != "report"]
        assert len(once) == len(set(once)), "one of each, never one per pod"
        root = trace.root
        assert root.service == "tutti-gang-planner"
        assert not any(each.failed for each in trace.spans)
        values = root.values
        assert (values["gang"], values["dialect"], values["members"], values["bound"]) == (
            f"default/{gang}",
            "volcano",
            3,
            3,
        )
        assert values["result"] == "Started"
        # The children follow each other, in the order in which the work was done.
        queue, decide, prove, bind = (
            trace.named(name)[0] for name in ("queue", "decide", "preflight", "bind")
        )
        assert root.start_ms == queue.start_ms
        assert queue.end_ms == decide.start_ms
        assert decide.start_ms <= prove.start_ms
        assert prove.end_ms == bind.start_ms
        assert bind.end_ms <= root.end_ms
        for each in (decide, bind):
            assert each.values["decision.seq"] == values["decision.seq"]
        for service in ("gang-planner", "binder", "controller"):
            assert ids[gang] in logs[service], f"{service} logs the trace"
    assert traces["one"].root.links == (SUBMITTER,)
    assert not traces["two"].root.links
    notes = pod["metadata"]["annotations"]
    assert notes["tutti.dev/trace-id"] == ids["one"]
    assert notes["tutti.dev/decision"].endswith(f"/{traces['one'].root.values['decision.seq']}")


def logged(running: Suite) -> dict[str, set[str]]:
    """Trace ids that each service's log names."""
    found: dict[str, set[str]] = {}
    for log in (running.folder / "data" / "logs").glob("*.log"):
        service = log.stem.rsplit("-", 1)[0]
        lines = [json.loads(line) for line in log.read_text().splitlines() if line[:1] == "{"]
        found.setdefault(service, set()).update(line.get("trace_id", "") for line in lines)
    return found


async def test_a_refused_attempt_is_an_error_and_the_next_one_begins_where_it_ended(
    client: RawClient, kubeconfig: Path, sink: OtlpSink, tmp_path: Path
) -> None:
    await misbehave(client, subresource="binding", name="hapless-1", status=403, times=1)
    async with suite_with(kubeconfig, sink, tmp_path / "up") as running:
        await running.wait_ready()
        await make_gang(client, "default", "hapless")
        await bound(client, "default", "hapless")
        uid = await uid_of(client, "hapless")
        # The watcher's span is the group's appearance, with which only the first attempt begins.
        second = await complete_trace(sink, gang_trace_id(uid, 2), services=ALL - {"tutti-watcher"})
        first = traces_of(sink)[gang_trace_id(uid, 1)]
    first.check()
    second.check()
    assert first.root.failed
    assert first.root.values["result"] == "PreflightFailed"
    (proof,) = first.named("preflight")
    assert proof.failed
    assert "403" in proof.error
    assert "configured to misbehave" in proof.error
    assert not first.named("bind"), "nothing was bound"
    assert not any(each.failed for each in second.spans)
    assert second.root.values["decision.attempt"] == 2
    assert second.root.start_ms == first.root.end_ms
    assert second.root.links == ((first.trace_id, gang_span(first.trace_id)),)


async def test_a_gang_that_goes_before_it_was_decided_leaves_no_orphans(
    client: RawClient, kubeconfig: Path, sink: OtlpSink, tmp_path: Path
) -> None:
    async with suite_with(kubeconfig, sink, tmp_path / "up") as running:
        await running.wait_ready()
        await make_gang(client, "default", "huge", members=3, least=500)
        uid = await uid_of(client, "huge")
        trace_id = gang_trace_id(uid, 1)
        # What is said of it is all written once its pods have their conditions, after two seconds.
        await eventually(lambda: "report" in [span.name for _, span in sink.spans])
        for index in range(3):
            await client.delete(f"{PODS}/huge-{index}")
        await client.delete(f"{GROUPS}/huge")
        trace = await complete_trace(
            sink, trace_id, reports="Gone", services=ALL - {"tutti-binder"}
        )
    trace.check()
    assert trace.root.values["result"] == "Gone"
    assert {each.values["reason"] for each in trace.named("report")} >= {"NotEnoughPods"}


async def test_the_standby_reports_spans_that_its_predecessor_could_not(
    client: RawClient, kubeconfig: Path, sink: OtlpSink, tmp_path: Path
) -> None:
    """The planner dies between the decision and its outcome; the bindings take two seconds."""
    await misbehave(client, subresource="binding", latencyMs=2_000, times=3)
    async with suite_with(kubeconfig, sink, tmp_path / "up") as running:
        await running.wait_ready()
        await make_gang(client, "default", "train")
        log = running.folder / "data" / "logs"
        await eventually(lambda: "decided default/train" in planners(log), timeout_s=15.0)
        active = 0 if "decided" in (log / "gang-planner-0.log").read_text() else 1
        os.kill(running.pid("gang-planner", active), signal.SIGKILL)
        await bound(client, "default", "train")
        trace = await complete_trace(sink, gang_trace_id(await uid_of(client, "train"), 1))
    trace.check()
    assert trace.root.values["result"] == "Started"


def planners(log: Path) -> str:
    return "".join(path.read_text() for path in log.glob("gang-planner-*.log"))
