"""Attempts followed through the logs: when which planner exports their spans, and how they end."""

import msgspec
import pytest

from services.gang_planner import tracing as module
from services.gang_planner.inbox import (
    CheckpointArrival,
    DecisionArrival,
    OutcomeArrival,
    VerdictArrival,
)
from services.gang_planner.tracing import GangTraces
from shared.contracts import codec
from shared.contracts.decisions import (
    Binding,
    Checkpoint,
    Cycle,
    DecisionRecord,
    EvictionDecision,
    GangDecision,
    GangStarted,
    NoteClosed,
    NoteKind,
    NoteOpened,
    OpenDecision,
    OpenGang,
    Victim,
)
from shared.contracts.identity import gang_trace_id, nameless_gang_id, traceparent_of
from shared.contracts.outcomes import Member, Outcome
from shared.contracts.verdicts import Verdict
from shared.telemetry.tracing import gang_span
from tests.support.kept_spans import KeptSpans

FIRST_SEEN_MS = 1_000
DECIDED_MS = 2_000
LINK = f"00-{'a' * 32}-{'b' * 16}-01"


@pytest.fixture
def tracer() -> KeptSpans:
    return KeptSpans()


@pytest.fixture
def leading(tracer: KeptSpans) -> GangTraces:
    """Of the active planner."""
    traces = GangTraces(tracer)
    traces.lead(0)
    return traces


def decision(attempt: int = 1, *, quorum: int = 3, now_ms: int = DECIDED_MS) -> GangDecision:
    return GangDecision(
        gang_id="g",
        gang="default/g",
        dialect="volcano",
        epoch=2,
        attempt=attempt,
        bindings=tuple(
            Binding(uid=f"u-{i}", namespace="default", name=f"w-{i}", node="n") for i in range(3)
        ),
        quorum=quorum,
        trace_id=gang_trace_id("g", attempt),
        first_seen_ms=FIRST_SEEN_MS,
        cycle=Cycle(cluster_seq=7, outcomes_seq=0, now_ms=now_ms, configuration="c"),
        traceparent=LINK,
    )


def stored(seq: int, record: DecisionRecord, stored_ms: int = 0) -> DecisionArrival:
    return DecisionArrival(seq, codec.encode(record), stored_ms)


def outcome(
    seq: int, *, bound: int = 3, reason: str = "", stored_ms: int = 0, last_ms: int = 2_100
) -> OutcomeArrival:
    record = Outcome(
        gang_id="g",
        decision_seq=seq,
        epoch=2,
        binder="binder-0",
        delivered=1,
        reason=reason,
        bound=bound,
        members=tuple(
            Member(uid=f"u-{i}", node="n", result="refused", code=403) for i in range(3 - bound)
        ),
        last_bound_ms=last_ms if bound else 0,
    )
    return OutcomeArrival(seq, record, b"", stored_ms)


def started(seq: int, *, attempt: int = 1, at_ms: int = 2_200) -> DecisionArrival:
    return stored(seq, GangStarted(gang_id="g", epoch=2, at_ms=at_ms, attempt=attempt))


def note(kind: NoteKind, *, at_ms: int) -> NoteOpened:
    return NoteOpened(
        gang_id="g", epoch=2, kind=kind, at_ms=at_ms, until_ms=at_ms + 30_000, reason="Lost"
    )


def closed(kind: NoteKind, *, at_ms: int) -> NoteClosed:
    return NoteClosed(gang_id="g", epoch=2, kind=kind, at_ms=at_ms, reason="Done")


def gone(*, attempt: int, at_ms: int = 9_000, gang_id: str = "g") -> VerdictArrival:
    verdict = Verdict(
        gang_id=gang_id,
        uid="" if gang_id != "g" else gang_id,
        epoch=2,
        at_ms=at_ms,
        dialect="volcano",
        namespace="default",
        name="g",
        phase="Gone",
        attempt=attempt,
        trace_id=gang_trace_id(gang_id, max(attempt, 1)),
        first_seen_ms=FIRST_SEEN_MS,
    )
    return VerdictArrival(1, verdict.gang_id, gone=True, payload=codec.encode(verdict))


def test_an_attempt_is_reported_when_all_are_bound_and_the_quorum_is_placed(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    leading.take([stored(5, decision(), stored_ms=2_003)])
    leading.take([outcome(5)])
    assert not tracer.spans
    leading.take([started(6)])
    root, queue, decide = tracer.spans
    trace_id = gang_trace_id("g", 1)
    assert {span.trace_id for span in tracer.spans} == {trace_id}
    assert (root.name, root.start_ms, root.end_ms, root.error) == ("gang", 1_000, 2_200, "")
    assert root.parent == ""
    assert root.links == (LINK,)
    assert (queue.name, queue.start_ms, queue.end_ms) == ("queue", 1_000, 2_000)
    assert (decide.name, decide.start_ms, decide.end_ms) == ("decide", 2_000, 2_003)
    assert queue.parent == decide.parent == gang_span(trace_id)
    expected = {"dialect": "volcano", "members": 3, "decision.seq": 5, "bound": 3}
    assert expected.items() <= root.attributes.items()
    assert root.attributes["result"] == "Started"


def test_the_order_in_which_the_logs_are_read_does_not_matter(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    leading.take([outcome(5), stored(5, decision(), stored_ms=2_003), started(6)])
    assert [span.name for span in tracer.spans] == ["gang", "queue", "decide"]
    assert tracer.spans[0].end_ms == 2_200


def test_the_root_lasts_until_the_last_member_is_bound(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    """Elastic extras are bound after the quorum was seen placed."""
    leading.take([stored(5, decision(quorum=1)), started(6, at_ms=2_050), outcome(5)])
    assert tracer.spans[0].end_ms == 2_100


def test_a_failed_attempt_is_an_error_and_the_next_begins_where_it_ended(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    leading.take([stored(5, decision()), outcome(5, bound=2, stored_ms=2_500)])
    leading.take([stored(8, decision(2, now_ms=3_500)), outcome(8), started(9, attempt=2)])
    first, second = tracer.named("gang")
    assert (first.end_ms, first.error) == (2_500, "1 of 3 members not bound: refused")
    assert (second.start_ms, second.error) == (2_500, "")
    assert second.trace_id == gang_trace_id("g", 2)


def test_what_is_added_to_a_started_gang_ends_with_its_outcome(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    leading.take([stored(5, decision()), outcome(5), started(6)])
    leading.take([stored(9, decision(2, now_ms=60_000)), outcome(9, last_ms=60_100)])
    _, added = tracer.named("gang")
    assert (added.start_ms, added.end_ms) == (60_000, 60_100)
    assert added.attributes["result"] == "Bound"


def test_an_attempt_whose_quorum_had_to_be_placed_again_is_an_error(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    """All were bound, and the kubelets refused them."""
    leading.take([stored(5, decision()), outcome(5), stored(8, decision(2, now_ms=9_000))])
    (first,) = tracer.named("gang")
    assert (first.error, first.end_ms) == ("QuorumNotPlaced", 9_000)


def test_a_repair_of_some_members_leaves_the_first_attempt_open(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    leading.take([stored(5, decision()), outcome(5), stored(8, decision(2, quorum=1))])
    assert not tracer.spans
    leading.take([outcome(8), started(9, attempt=2)])
    assert [root.error for root in tracer.named("gang")] == ["", ""]


def test_a_gang_that_goes_ends_what_is_open(leading: GangTraces, tracer: KeptSpans) -> None:
    leading.take([stored(5, decision()), gone(attempt=1)])
    (root,) = tracer.named("gang")
    assert (root.error, root.end_ms) == ("Gone", 9_000)


def test_a_gang_that_goes_undecided_has_a_root_without_error(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    leading.take([gone(attempt=0)])
    (root,) = tracer.spans
    assert (root.name, root.start_ms, root.end_ms, root.error) == ("gang", 1_000, 9_000, "")
    assert root.trace_id == gang_trace_id("g", 1)


def test_a_gang_that_ran_and_is_deleted_is_not_reported_again(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    leading.take([stored(5, decision()), outcome(5), started(6), gone(attempt=1)])
    assert len(tracer.named("gang")) == 1


def test_a_standby_is_silent_and_goes_on_where_the_active_one_died(tracer: KeptSpans) -> None:
    standby = GangTraces(tracer)
    standby.take([stored(5, decision())])
    standby.lead(2_050)
    assert not tracer.spans
    standby.take([outcome(5), started(6)])
    assert [span.name for span in tracer.spans] == ["gang", "queue", "decide"]


def test_attempts_that_ended_just_before_a_takeover_are_reported_again_and_no_older_ones(
    tracer: KeptSpans,
) -> None:
    standby = GangTraces(tracer)
    standby.take([stored(5, decision()), outcome(5), started(6)])
    other = decision(2, now_ms=60_000)
    standby.take([stored(9, other), outcome(9, last_ms=60_100)])
    standby.lead(60_100 + module.RECENT_MS)
    assert [root.trace_id for root in tracer.named("gang")] == [other.trace_id]


def test_an_attempt_has_a_link_to_the_one_before_it(leading: GangTraces, tracer: KeptSpans) -> None:
    leading.take([stored(5, decision()), outcome(5, bound=2, stored_ms=2_500)])
    leading.take([stored(8, decision(2, now_ms=3_500)), outcome(8), started(9, attempt=2)])
    first, second = tracer.named("gang")
    assert first.links == (LINK,)
    assert second.links == (LINK, traceparent_of(first.trace_id))


def test_a_gang_whose_pods_came_before_its_group_has_a_link_to_their_trace(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    nameless = nameless_gang_id("", "default", "g")
    early = gone(attempt=0, gang_id=nameless)
    other = gone(attempt=0, gang_id=nameless_gang_id("", "default", "h"))
    leading.take([early, other, stored(5, decision()), outcome(5), started(6)])
    *_, root = tracer.named("gang")
    assert root.links == (LINK, traceparent_of(gang_trace_id(nameless, 1)))


def test_changes_between_decisions_are_events_of_the_next_root_span(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    eviction = EvictionDecision(
        gang_id="g",
        gang="default/g",
        epoch=2,
        attempt=0,
        victims=(Victim(uid="v", namespace="default", name="v"),),
        via="eviction",
        reason="Preempted",
        trace_id=gang_trace_id("g", 1),
        cycle=Cycle(cluster_seq=6, outcomes_seq=0, now_ms=1_500, configuration="c"),
    )
    leading.take([stored(4, eviction), stored(5, decision())])
    leading.take([stored(6, note("repair", at_ms=2_050)), outcome(5)])
    leading.take([stored(7, closed("repair", at_ms=2_150)), started(8)])
    (root,) = tracer.named("gang")
    assert [(event.name, event.at_ms) for event in root.events] == [
        ("eviction decided", 1_500),
        ("repair begun", 2_050),
        ("repair ended", 2_150),
    ]
    assert root.events[0].attributes == {"reason": "Preempted", "victims": 1}
    assert root.start_ms == FIRST_SEEN_MS


def test_an_attempt_that_makes_a_loss_good_begins_with_the_loss(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    leading.take([stored(5, decision()), outcome(5), started(6)])
    leading.take([stored(7, note("hold", at_ms=50_000))])
    successor = msgspec.structs.replace(decision(2, now_ms=60_000), fills=("u-1",))
    leading.take([stored(9, successor), outcome(9, last_ms=60_100)])
    _, added = tracer.named("gang")
    assert (added.start_ms, added.end_ms) == (50_000, 60_100)
    assert [event.name for event in added.events] == ["hold begun"]


def test_an_unfilled_hold_is_no_event_of_members_that_are_added_later(
    leading: GangTraces, tracer: KeptSpans
) -> None:
    leading.take([stored(5, decision()), outcome(5), started(6)])
    leading.take([stored(7, note("hold", at_ms=50_000)), stored(8, closed("hold", at_ms=55_000))])
    leading.take([stored(9, decision(2, now_ms=60_000)), outcome(9, last_ms=60_100)])
    _, added = tracer.named("gang")
    assert (added.start_ms, added.events) == (60_000, ())


def test_a_checkpoint_brings_back_what_was_open(tracer: KeptSpans) -> None:
    pause = NoteOpened(
        gang_id="h", epoch=2, kind="backoff", at_ms=1_700, until_ms=2_700, reason="DecisionFailed"
    )
    page = Checkpoint(
        epoch=2,
        up_to=9,
        outcomes_seq=3,
        page=0,
        pages=1,
        decisions=(OpenDecision(seq=5, decision=decision()),),
        gangs=(OpenGang(gang_id="g", attempt=1), OpenGang(gang_id="h", attempt=1, notes=(pause,))),
    )
    traces = GangTraces(tracer)
    traces.take([CheckpointArrival((page,), {})])
    traces.lead(3_000)
    # Its outcome was read before the checkpoint was written.
    traces.take([started(10, at_ms=3_100)])
    (root,) = tracer.named("gang")
    assert (root.start_ms, root.end_ms, root.error) == (1_000, 3_100, "")


def test_memory_is_bounded(
    leading: GangTraces, tracer: KeptSpans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OPEN_MAX", 2)
    for seq in (5, 6, 7):
        leading.take([stored(seq, decision(seq, quorum=8 - seq), stored_ms=2_000 + seq)])
    (root,) = tracer.named("gang")
    assert (root.error, root.attributes["decision.seq"]) == ("Unfinished", 5)


def test_without_an_endpoint_nothing_is_kept() -> None:
    """Attempts followed without an endpoint could not be exported at a takeover either."""
    tracer = KeptSpans(enabled=False)
    traces = GangTraces(tracer)
    traces.take([stored(5, decision()), outcome(5), started(6)])
    tracer.enabled = True
    traces.lead(2_300)
    assert not tracer.spans
