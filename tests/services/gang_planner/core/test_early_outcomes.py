"""An outcome may be read before its decision, or before the snapshot: it must still end its room.

After a restart the three logs are read side by side. Found in review: an outcome that said
"refused" came before the snapshot, found no room to end, and was forgotten; the room that the
decision then assumed had no end, and the gang waited for ever.
"""

import itertools

import pytest

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from shared.contracts.cluster import SnapshotPage
from shared.contracts.decisions import Binding, Cycle, EpochOpened, GangDecision, NoteOpened
from shared.contracts.outcomes import Member, Outcome
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.running import make_gang, make_node
from tests.support.snapshots import snapshot_of

_NOW_MS = 1_000_000
_GROUP, _PODS = make_gang("first", 2)
_DECISION = GangDecision(
    gang_id=_GROUP.uid,
    gang="default/first",
    dialect="incubator",
    epoch=2,
    attempt=1,
    bindings=tuple(
        Binding(uid=pod.uid, namespace="default", name=pod.name, node=f"n{number}")
        for number, pod in enumerate(_PODS)
    ),
    quorum=2,
    trace_id="0" * 32,
    first_seen_ms=1,
    cycle=Cycle(cluster_seq=5, outcomes_seq=0, now_ms=_NOW_MS, configuration="c"),
)
_OUTCOME = Outcome(
    gang_id=_GROUP.uid,
    decision_seq=3,
    epoch=2,
    binder="binder-0",
    delivered=1,
    reason="PreflightFailed",
    members=tuple(
        Member(uid=binding.uid, node=binding.node, result="skipped")
        for binding in _DECISION.bindings
    ),
)


def _snapshot(*, at_ms: int = _NOW_MS, cluster_seq: int = 5) -> SnapshotPage:
    objects = [make_node("n0"), make_node("n1"), _GROUP, *_PODS]
    return snapshot_of(objects, at_ms=at_ms, epoch=2, cluster_seq=cluster_seq)


def _restarted(order: tuple[str, ...]) -> Planner:
    planner = Planner(parse_configuration(""))
    for what in order:
        match what:
            case "snapshot":
                planner.load_snapshot([_snapshot()])
            case "decision":
                epoch = EpochOpened(epoch=2, planner="old", at_ms=1, cluster_epoch=2)
                planner.apply_decision(2, epoch)
                planner.apply_decision(3, _DECISION)
            case _:
                planner.apply_outcome(1, _OUTCOME)
    planner.apply_decision(4, EpochOpened(epoch=4, planner="new", at_ms=_NOW_MS, cluster_epoch=2))
    planner.lead(4)
    return planner


@pytest.mark.parametrize(
    "order", list(itertools.permutations(("snapshot", "decision", "outcome"))), ids="-".join
)
def test_a_refused_gang_is_decided_again_after_a_restart_in_whatever_order_the_logs_are_read(
    order: tuple[str, ...],
) -> None:
    planner = _restarted(order)
    validate(planner)
    paused = planner.step(_NOW_MS)
    for seq, note in enumerate(paused.notes, start=5):
        planner.decided(seq, note)
    opened = [note for note in paused.notes if isinstance(note, NoteOpened)]
    assert [note.kind for note in opened] == ["backoff"]
    planner.load_snapshot([_snapshot(at_ms=_NOW_MS + 3000, cluster_seq=9)])
    again = planner.step(_NOW_MS + 3000)
    assert [(one.attempt, len(one.bindings)) for one in again.decisions] == [(2, 2)]
