"""Which gang objects a watcher traces: each once, when it appears."""

import pytest

from services.watcher.reporting import Reporting
from shared.contracts.cluster import Gone, PodGroupChanges
from shared.contracts.identity import gang_trace_id
from shared.model.objects import PodGroup
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracing import gang_span
from tests.support.kept_spans import KeptSpans


@pytest.fixture
def tracer() -> KeptSpans:
    return KeptSpans()


@pytest.fixture
def reporting(tracer: KeptSpans) -> Reporting:
    return Reporting(Metrics("watcher"), tracer)


def group(uid: str, *, phase: str = "") -> PodGroup:
    return PodGroup(
        uid=uid,
        dialect="volcano",
        namespace="default",
        name=uid,
        resource_version=1,
        created_ms=1_000,
        min_member=3,
        phase=phase,
    )


def flush(reporting: Reporting, *groups: PodGroup, removed: tuple[str, ...] = ()) -> None:
    gone = tuple(Gone(uid=uid, resource_version=2) for uid in removed)
    reporting.packed(PodGroupChanges(epoch=1, at_ms=1_400, changed=groups, removed=gone))
    reporting.flushed([("cluster.podgroup", b"")], 0.003)


def test_a_group_is_traced_once_from_its_creation_to_the_append(
    reporting: Reporting, tracer: KeptSpans
) -> None:
    flush(reporting, group("a"))
    flush(reporting, group("a", phase="Running"), group("b"))
    first, second = tracer.spans
    assert (first.name, first.start_ms, first.end_ms) == ("observe", 1_000, 1_403)
    assert first.trace_id == gang_trace_id("a", 1)
    assert first.parent == gang_span(first.trace_id)
    assert first.attributes == {"gang": "default/a", "dialect": "volcano", "min_member": 3}
    assert second.attributes["gang"] == "default/b"


def test_a_new_watcher_traces_only_groups_that_no_watcher_has_seen(
    reporting: Reporting, tracer: KeptSpans
) -> None:
    reporting.opened(5, [group("known", phase="Inqueue"), group("fresh")], 2_000)
    flush(reporting, group("known", phase="Running"), group("fresh", phase="Inqueue"))
    (span,) = tracer.spans
    assert (span.attributes["gang"], span.end_ms) == ("default/fresh", 2_000)


def test_a_group_that_went_is_forgotten(reporting: Reporting, tracer: KeptSpans) -> None:
    flush(reporting, group("a"))
    flush(reporting, removed=("a",))
    flush(reporting, group("a"))
    assert len(tracer.spans) == 2


def test_without_an_endpoint_no_group_is_kept() -> None:
    tracer = KeptSpans(enabled=False)
    reporting = Reporting(Metrics("watcher"), tracer)
    reporting.opened(5, [group("fresh")], 2_000)
    flush(reporting, group("a"))
    assert not tracer.spans
