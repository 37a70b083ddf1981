"""A gang's decisions as lines: nothing that happened is missing, and what failed is marked."""

from collections.abc import Sequence

import msgspec
import pytest

from services.api.core.decision_history import DecisionHistory
from shared.contracts.decisions import (
    Binding,
    Cycle,
    EvictionDecision,
    GangDecision,
    GangStarted,
    Note,
    NoteClosed,
    NoteOpened,
    Victim,
)
from shared.contracts.identity import gang_trace_id
from shared.contracts.outcomes import Member, Outcome
from shared.contracts.visibility import Decision
from tests.support.golden import Golden
from tutti.api.failures import Refusal
from tutti.trace.timeline import Line, read_reference, timeline, with_lines


def cycle(now_ms: int) -> Cycle:
    return Cycle(cluster_seq=1, outcomes_seq=0, now_ms=now_ms, configuration="c")


def decision(attempt: int, now_ms: int) -> GangDecision:
    return GangDecision(
        gang_id="g",
        gang="team/train",
        dialect="volcano",
        epoch=2,
        attempt=attempt,
        bindings=tuple(
            Binding(uid=f"u-{i}", namespace="team", name=f"w-{i}", node="n") for i in range(2)
        ),
        quorum=2,
        why="quorum of 2 placed together on 1 node",
        trace_id=gang_trace_id("g", attempt),
        first_seen_ms=1_000,
        cycle=cycle(now_ms),
        domain="rack=a" if attempt == 2 else "",
    )


RELEASE = EvictionDecision(
    gang_id="g",
    gang="team/train",
    epoch=2,
    attempt=1,
    victims=(Victim(uid="u-0", namespace="team", name="w-0"),),
    via="delete",
    reason="BindingRefused",
    why="w-1: denied",
    trace_id=gang_trace_id("g", 1),
    cycle=cycle(2_200),
)
REFUSED = Outcome(
    gang_id="g",
    decision_seq=5,
    epoch=2,
    binder="binder-0",
    delivered=1,
    bound=1,
    members=(Member(uid="u-1", node="n", result="refused", code=403, message="denied"),),
    received_ms=2_010,
    first_bound_ms=2_050,
    last_bound_ms=2_060,
)
WHOLE = Outcome(
    gang_id="g",
    decision_seq=9,
    epoch=2,
    binder="binder-1",
    delivered=1,
    bound=2,
    received_ms=3_010,
    preflight_ms=3_030,
    first_bound_ms=3_040,
    last_bound_ms=3_050,
)
REMOVED = Outcome(
    gang_id="g", decision_seq=7, epoch=2, binder="binder-0", delivered=1, evicted=1,
    received_ms=2_210, last_bound_ms=2_250,
)  # fmt: skip
OPENED = NoteOpened(
    gang_id="g",
    epoch=2,
    kind="backoff",
    at_ms=2_300,
    until_ms=2_900,
    reason="BindingRefused",
    message="w-1: denied",
)
CLOSED = NoteClosed(gang_id="g", epoch=2, kind="backoff", at_ms=2_900, reason="Elapsed")
STARTED = GangStarted(gang_id="g", epoch=2, at_ms=3_100, attempt=2)
WANTED = read_reference("team/train", "default")


def decisions(
    *acts: tuple[int, GangDecision | EvictionDecision],
    outcomes: Sequence[Outcome] = (),
    notes: Sequence[Note] = (),
) -> list[Decision]:
    """As the API service has them; outcomes and notes may come before their decisions."""
    history = DecisionHistory()
    for outcome in outcomes[:1]:
        history.take_outcome(outcome)
    for seq, act in acts:
        history.take(seq, act)
    for outcome in outcomes:
        history.take_outcome(outcome)
    for note in notes:
        history.take_note(note)
    return list(history.oldest_first())


ALL = decisions(
    (5, decision(1, 2_000)),
    (7, RELEASE),
    (9, decision(2, 3_000)),
    outcomes=(REFUSED, REMOVED, WHOLE),
    notes=(OPENED, CLOSED, STARTED),
)


def test_the_attempts_of_a_gang_are_listed_in_order(golden: Golden) -> None:
    found = with_lines(timeline(WANTED, [], ALL), [])
    assert (found.gang, found.gang_id, found.phase) == ("team/train", "g", "Gone")
    assert [(line.at_ms, line.what, line.failed) for line in found.lines] == [
        (1_000, "queued", False),
        (2_000, "decided", False),
        (2_060, "bound", True),
        (2_200, "releasing", True),
        (2_250, "removed", False),
        (2_300, "backoff begun", False),
        (2_900, "backoff ended", False),
        (3_000, "decided", False),
        (3_030, "proved", False),
        (3_050, "bound", False),
        (3_100, "started", False),
    ]
    details = {line.at_ms: line.detail for line in found.lines}
    golden(details[2_000])
    golden(details[2_060])
    assert details[2_200] == "1 pod, BindingRefused: w-1: denied"
    assert details[3_000].endswith("in rack=a")
    golden(details[3_050])
    assert [line.took_ms for line in found.lines if line.what in {"proved", "bound"}] == [
        50,
        20,
        20,
    ]
    assert found.traces == (gang_trace_id("g", 1), gang_trace_id("g", 2))


def test_a_proof_that_failed_is_no_binding() -> None:
    members = (
        Member(uid="u-0", node="n", result="skipped"),
        Member(uid="u-1", node="n", result="refused", code=403, message="denied"),
    )
    disproved = msgspec.structs.replace(
        WHOLE, decision_seq=5, reason="PreflightFailed", bound=0, members=members
    )
    found = timeline(WANTED, [], decisions((5, decision(1, 3_000)), outcomes=[disproved]))
    last = found.lines[-1]
    assert (last.what, last.detail, last.failed) == (
        "proof failed",
        "w-1: refused 403 denied",
        True,
    )


def test_exported_lines_are_sorted_in_by_time() -> None:
    admitted = Line(at_ms=900, what="admit", detail="by admission-webhook")
    assert with_lines(timeline(WANTED, [], ALL), [admitted]).lines[0] == admitted


UID = "51de3f48-4270-447d-9189-14de98090c2b"


@pytest.mark.parametrize(
    ("typed", "name", "meant"),
    [
        ("train", "train", True),
        ("team/train", "train", True),
        ("train", f"train-{UID}", True),
        ("train", "train-2", False),
        ("train", f"train-2-{UID}", False),
    ],
)
def test_a_gang_is_named_as_its_group_or_as_its_job(typed: str, name: str, *, meant: bool) -> None:
    wanted = read_reference(typed, "team")
    assert wanted.namespace == "team"
    assert wanted.is_named(name) == meant


def test_an_id_is_taken_as_an_id() -> None:
    assert read_reference(UID, "team").gang_id == UID
    assert read_reference(f"{UID}-x", "team").gang_id == ""


@pytest.mark.parametrize("gang", ["unknown", UID])
def test_an_unknown_gang_is_an_error_that_names_it(gang: str) -> None:
    with pytest.raises(Refusal, match=gang):
        timeline(read_reference(gang, "team"), [], ALL)
