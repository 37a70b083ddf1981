"""What the writer makes of an API server that refuses, sheds load or falls silent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import msgspec
import pytest

from services.controller.core.statuses.intents import (
    CompareGroup,
    FreeNodes,
    Intent,
    PatchGroup,
    ReportEvicted,
    plan,
)
from services.controller.errors import RetryLater
from services.controller.intent_writer import IntentWriter
from services.controller.reporting import Reporting
from services.controller.state import Report, WrittenGang
from shared.contracts.verdicts import Condition, PodRef, Verdict
from shared.dialects.protocol import JsonObject
from shared.kube.client import KubeClient
from shared.kube.credentials import Credentials
from shared.kube.kubeconfig import Access
from shared.kube.resources import PODGROUPS_VOLCANO
from shared.runtime.steady_clock import SteadyClock
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracers import tracer_for
from tests.services.controller.core.samples import (
    KNOBS,
    START_MS,
    make_running,
    make_waiting,
    situation,
)
from tests.support.scripted_apiserver import Answer, answer, failure, reset, scripted_apiserver

OK = answer(200, {})
BOUND = answer(200, {"spec": {"nodeName": "n"}})
PENDING = answer(200, {"spec": {}})


class Bench:
    """A writer, its memory, and the paths it asked for."""

    def __init__(self, writer: IntentWriter, asked: list[str], metrics: Metrics) -> None:
        self.writer = writer
        self.asked = asked
        self.memory = WrittenGang()
        self.metrics = metrics

    async def write(self, verdict: Verdict, kind: type) -> Intent:
        """Write the first intent of a kind that the verdict asks for."""
        due = plan(situation(verdict), self.memory, START_MS + 60_000, KNOBS).now
        intent = next(one for one in due if isinstance(one, kind))
        await self.writer.write(intent, verdict, self.memory)
        return intent


@asynccontextmanager
async def a_bench(*script: Answer) -> AsyncIterator[tuple[Bench, list[str]]]:
    metrics = Metrics("controller")
    async with scripted_apiserver(*script) as server:
        credentials = Credentials(Access(origin="test", server=server.url))
        async with KubeClient(credentials) as client:
            reporting = Reporting(metrics, tracer_for("", service="controller", instance="0"))
            writer = IntentWriter(
                client, SteadyClock(), reporting, writes_per_s=1_000, pod_events_per_s=10
            )
            asked: list[str] = []
            yield Bench(writer, asked, metrics), asked
            asked += [f"{one.method} {one.path}" for one in server.requests]


@pytest.mark.parametrize(
    ("refusal", "delay_s"),
    [
        pytest.param(failure(500, "InternalError"), 2.0, id="error"),
        pytest.param(
            failure(503, "ServiceUnavailable", details={"retryAfterSeconds": 7}), 7.0, id="later"
        ),
        pytest.param(answer(429, b"", {"Retry-After": "3600"}), 60.0, id="an hour is too long"),
        pytest.param(reset, 2.0, id="lost connection"),
    ],
)
async def test_what_is_not_taken_now_is_tried_later_and_not_remembered(
    refusal: Answer, delay_s: float
) -> None:
    async with a_bench(refusal) as (bench, _):
        with pytest.raises(RetryLater) as later:
            await bench.write(make_running(), PatchGroup)
        assert later.value.delay_s == delay_s
        assert bench.memory.annotation is None
        assert bench.metrics.figures()["retries_total"] == 1


KUBERNETES = Verdict(
    gang_id="uid-g",
    epoch=1,
    at_ms=START_MS,
    dialect="kubernetes",
    namespace="team",
    name="g",
    uid="uid-g",
    phase="Running",
    first_seen_ms=START_MS,
    conditions=(Condition(type="Scheduled", status="True", since_ms=START_MS),),
)
ABSENT = failure(404, "NotFound")
SERVED = answer(200, {"resources": [{"name": "podgroups"}]})


def serving(version: str) -> list[Answer]:
    """The answers of discovery where this is the only version."""
    return [answer(200, {"versions": [{"version": version}]}), SERVED]


async def test_a_status_is_written_in_the_served_version_in_its_words() -> None:
    """And in another one, as soon as that version is gone."""
    script = [*serving("v1alpha2"), ABSENT, *serving("v1beta1"), OK, OK]
    async with scripted_apiserver(*script) as server:
        credentials = Credentials(Access(origin="test", server=server.url))
        async with KubeClient(credentials) as client:
            metrics = Metrics("controller")
            reporting = Reporting(metrics, tracer_for("", service="controller", instance="0"))
            writer = IntentWriter(
                client, SteadyClock(), reporting, writes_per_s=1_000, pod_events_per_s=10
            )
            bench = Bench(writer, [], metrics)
            await bench.write(KUBERNETES, PatchGroup)
        patches = [one for one in server.requests if one.method == "PATCH"]
    group = "/namespaces/team/podgroups/g"
    assert [one.path.removeprefix("/apis/scheduling.k8s.io/") for one in patches] == [
        f"v1alpha2{group}/status",
        f"v1beta1{group}/status",
        f"v1beta1{group}",
    ]
    first, second, mark = patches
    assert [one.json["status"]["conditions"][0]["type"] for one in (first, second)] == [
        "PodGroupScheduled",
        "PodGroupInitiallyScheduled",
    ]
    assert "strategic" in first.headers["Content-Type"]
    assert set(mark.json) == {"metadata"}
    assert "strategic" not in mark.headers["Content-Type"]
    assert not bench.memory.group_missing


async def test_what_is_refused_for_good_counts_as_written_until_the_next_verdict() -> None:
    async with a_bench(failure(403, "Forbidden", "no right to")) as (bench, _):
        await bench.write(make_running(), PatchGroup)
        assert bench.memory.annotation is not None
        assert not bench.memory.group_missing
        assert bench.metrics.figures()['refused_total{kind="PatchGroup"}'] == 1


async def test_a_group_whose_annotations_leave_no_room_gets_its_status_all_the_same() -> None:
    full = failure(422, "Invalid", "metadata.annotations: Too long: may not be more than 262144")
    async with a_bench(full, OK) as (bench, asked):
        await bench.write(make_running(), PatchGroup)
        assert bench.memory.meaning is not None
        figures = bench.metrics.figures()
        assert not any(figures[name] for name in figures if name.startswith("refused_total"))
    assert len(asked) == 2
    group = {"metadata": {"uid": "gang-uid"}}
    async with a_bench(full, full, answer(200, group)) as (bench, _):
        await bench.write(make_running(), PatchGroup)
        assert bench.metrics.figures()['refused_total{kind="PatchGroup"}'] == 1
        assert not bench.memory.group_missing


async def test_a_conflict_over_the_same_group_is_tried_again() -> None:
    group = {"metadata": {"uid": "gang-uid"}}
    async with a_bench(failure(409, "Conflict"), answer(200, group)) as (bench, _):
        with pytest.raises(RetryLater):
            await bench.write(make_running(), PatchGroup)
        assert not bench.memory.group_missing


async def test_a_conflict_with_another_group_of_that_name_ends_the_writing() -> None:
    group = {"metadata": {"uid": "another"}}
    async with a_bench(failure(409, "Conflict"), answer(200, group)) as (bench, _):
        await bench.write(make_running(), PatchGroup)
        assert bench.memory.group_missing


async def test_a_group_of_kubernetes_that_was_created_again_counts_as_missing() -> None:
    """The API server answers Invalid there, because the UID of an object is immutable."""
    refusal = failure(422, "Invalid", 'metadata.uid: Invalid value: "uid-g": field is immutable')
    for found in (answer(200, {"metadata": {"uid": "another"}}), ABSENT):
        # Where the object is missing, the served version is looked up again.
        script = [*serving("v1beta1"), refusal, found, *serving("v1beta1")]
        async with a_bench(*script) as (bench, asked):
            await bench.write(KUBERNETES, PatchGroup)
            assert bench.memory.group_missing
            figures = bench.metrics.figures()
            assert not any(figures[name] for name in figures if name.startswith("refused_total"))
        assert [line.split()[0] for line in asked].count("PATCH") == 1


async def test_comparing_finds_a_group_that_is_gone() -> None:
    async with a_bench(failure(404, "NotFound")) as (bench, _):
        compare = CompareGroup(PODGROUPS_VOLCANO, "team", "job", "gang-uid")
        await bench.writer.write(compare, make_running(), bench.memory)
        assert bench.memory.group_missing


async def test_an_event_that_has_expired_is_sent_again() -> None:
    script = (failure(404, "NotFound"), answer(201, {}))
    async with a_bench(*script) as (bench, asked):
        verdict = make_waiting()
        bench.memory.events["gang-uid/Unschedulable"] = Report("another reason", "", 0)
        intent = next(
            one
            for one in plan(situation(verdict), bench.memory, START_MS + 60_000, KNOBS).now
            if type(one).__name__ == "EventIntent"
        )
        await bench.writer.write(intent, verdict, bench.memory)
    assert [line.split()[0] for line in asked] == ["GET", "POST"]


async def test_evicted_pods_get_one_event_each_and_an_existing_event_is_no_error() -> None:
    async with a_bench(answer(201, {}), failure(409, "AlreadyExists")) as (bench, asked):
        gone = tuple(PodRef(uid=f"u-{i}", name=f"w-{i}", node="n-0") for i in range(2))
        intent = await bench.write(make_waiting(evicted=gone), ReportEvicted)
    assert isinstance(intent, ReportEvicted)
    assert asked == ["POST /api/v1/namespaces/team/events"] * 2
    assert bench.memory.evicted == {"u-0", "u-1"}


async def test_a_mark_on_a_pod_that_was_bound_meanwhile_is_taken_back() -> None:
    async with a_bench(BOUND, OK) as (bench, asked):
        verdict = make_waiting(waiting=make_waiting().waiting[2:])
        mark = plan(situation(verdict), bench.memory, START_MS + 60_000, KNOBS).now[-1]
        await bench.writer.write(mark, verdict, bench.memory)
    assert asked == ["PATCH /api/v1/namespaces/team/pods/w-2/status"] * 2


async def test_a_mark_on_a_waiting_pod_is_one_request() -> None:
    async with a_bench(PENDING, PENDING, PENDING) as (bench, asked):
        verdict = make_waiting()
        marks = plan(situation(verdict), bench.memory, START_MS + 60_000, KNOBS).now[-1]
        await bench.writer.write(marks, verdict, bench.memory)
    assert len(asked) == 3


async def test_a_pod_that_has_ended_and_is_gone_counts_as_freed() -> None:
    async with a_bench(OK, failure(404, "NotFound")) as (bench, asked):
        pods = make_waiting().waiting[:2]
        intent = await bench.write(make_running(phase="Completed", ended=pods), FreeNodes)
    assert isinstance(intent, FreeNodes)
    assert asked == [f"PATCH /api/v1/namespaces/team/pods/w-{n}/status" for n in range(2)]
    assert bench.memory.ended == {"u-0", "u-1"}


@pytest.mark.parametrize("status", [404, 503])
async def test_marks_for_autoscalers_are_written_even_if_one_fails(status: int) -> None:
    """A pod that is gone counts as marked; one that failed for the moment is marked later."""
    async with a_bench(PENDING, failure(status, "Failed"), PENDING) as (bench, asked):
        verdict = make_waiting(unschedulable=3)
        (marks,) = plan(situation(verdict), bench.memory, START_MS + 300, KNOBS).now
        with pytest.raises(RetryLater) if status == 503 else nullcontext():
            await bench.writer.write(marks, verdict, bench.memory)
    assert len(asked) == 3
    assert len(bench.memory.marked) == (2 if status == 503 else 3)


GROVE = msgspec.structs.replace(KUBERNETES, dialect="grove")


def pod_gang(version: str, *conditions: JsonObject | None) -> Answer:
    """A stored PodGang, with the version that a patch must name."""
    meta = {"uid": "uid-g", "resourceVersion": version}
    return answer(200, {"metadata": meta, "status": {"conditions": list(conditions) or None}})


async def test_conditions_of_other_components_stay_beside_ours() -> None:
    theirs = {"type": "Initialized", "status": "True"}
    old = {"type": "Scheduled", "status": "Unknown"}
    async with scripted_apiserver(pod_gang("7", theirs, old), OK, OK) as server:
        credentials = Credentials(Access(origin="test", server=server.url))
        async with KubeClient(credentials) as client:
            metrics = Metrics("controller")
            reporting = Reporting(metrics, tracer_for("", service="controller", instance="0"))
            writer = IntentWriter(
                client, SteadyClock(), reporting, writes_per_s=1_000, pod_events_per_s=10
            )
            await Bench(writer, [], metrics).write(GROVE, PatchGroup)
        read, status, mark = server.requests
    assert (read.method, status.path) == ("GET", f"{read.path}/status")
    assert status.json["metadata"] == {"uid": "uid-g", "resourceVersion": "7"}
    found = status.json["status"]["conditions"]
    assert [(one["type"], one["status"]) for one in found] == [
        ("Initialized", "True"),
        ("Scheduled", "True"),
    ]
    assert "resourceVersion" not in mark.json["metadata"]


async def test_a_status_that_changed_after_it_was_read_is_written_later() -> None:
    conflict = failure(409, "Conflict")
    async with a_bench(pod_gang("7"), conflict, pod_gang("8")) as (bench, _):
        with pytest.raises(RetryLater):
            await bench.write(GROVE, PatchGroup)
        assert bench.memory.annotation is None
        assert not bench.memory.group_missing


async def test_a_status_is_not_written_where_the_object_is_gone() -> None:
    async with a_bench(ABSENT) as (bench, _):
        await bench.write(GROVE, PatchGroup)
        assert bench.memory.group_missing
