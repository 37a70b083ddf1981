"""A planner that reads the log, or a checkpoint and its later records, knows what its writer knew:
compared after every cycle of scenes with refusals, repairs, releases and deadlines.
"""

from collections.abc import Callable
from typing import Any

import pytest

from services.gang_planner.core.planner import Planner
from shared.contracts import annotations
from shared.contracts.decisions import Checkpoint
from shared.contracts.outcomes import Member
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

FULL = make_shape({"cpu": 4000})


def what_is_known(planner: Planner, *, bad: bool) -> dict[str, Any]:
    """What is open, as far as it must outlive a restart."""
    state = state_of(planner)
    histories = {gang_id: gang.history for gang_id, gang in state.gangs.by_id.items()}
    return {
        "gangs": {
            gang_id: (
                history.attempt,
                history.started or history.dormant,
                0 if history.started else history.failures,
                list(history.notes),
                dict(history.bad) if bad else None,
            )
            for gang_id, history in histories.items()
        },
        "evictions": {seq: (one.uids, one.outcome) for seq, one in state.evictions.items()},
        "decisions": {seq: one.act for seq, one in state.open.items()},
        "rooms": sorted(
            (
                reservation.uid,
                state.nodes.names[reservation.slot],
                reservation.reason,
                reservation.act.seq if reservation.act else 0,
            )
            for reservation in state.reservations.every()
        ),
    }


def twin(scene: LoggedScene, pages: list[Checkpoint]) -> Planner:
    """Another planner that has read the same."""
    planner = Planner(scene.conf)
    planner.restore(pages)
    behind = pages[0].up_to if pages else 0
    read = pages[0].outcomes_seq if pages else 0
    for seq, record in scene.records:
        if seq > behind:
            planner.apply_decision(seq, record)
    mine, scene.planner = scene.planner, planner
    scene.load_present_snapshot()
    scene.planner = mine
    for seq, outcome in scene.outcomes:
        if seq > read:
            planner.apply_outcome(seq, outcome)
    return planner


def compare(scene: LoggedScene, pages: list[Checkpoint]) -> None:
    """The log alone, an old checkpoint and the newest one all give the same state."""
    known = what_is_known(scene.planner, bad=False)
    assert what_is_known(twin(scene, []), bad=False) == known
    assert what_is_known(twin(scene, pages), bad=False) == known
    newest = twin(scene, scene.pages)
    assert what_is_known(newest, bad=True) == what_is_known(scene.planner, bad=True)


def submit(scene: LoggedScene, name: str, size: int, **group: Any) -> None:
    scene.put(make_group(name, size, **group), *make_pods(name, size, FULL))


def poisoned(scene: LoggedScene) -> None:
    scene.refuses = lambda binding: binding.name == "a-worker-1"
    submit(scene, "a", 3)


def doubtful(scene: LoggedScene) -> None:
    submit(scene, "a", 3)
    scene.step()
    seq, decision = scene.decisions[-1]
    scene.done.add(seq)
    first, second, third = decision.bindings
    scene.change(first.uid, node=first.node)
    scene.answer(
        seq,
        decision,
        [
            Member(uid=second.uid, node=second.node, result="unknown", code=504),
            Member(uid=third.uid, node=third.node, result="conflict", code=409),
        ],
    )


def never_whole(scene: LoggedScene) -> None:
    submit(scene, "a", 3)
    scene.step()
    seq, decision = scene.decisions[-1]
    scene.done.add(seq)
    for one in decision.bindings[:2]:
        scene.change(one.uid, node=one.node)
    scene.remove(scene.pods[decision.bindings[2].uid])
    scene.answer(seq, decision)


def never_runs(scene: LoggedScene) -> None:
    submit(scene, "a", 2, settings=((annotations.START_DEADLINE_SECONDS, "20"),))


def runs(scene: LoggedScene) -> None:
    submit(scene, "a", 2)
    submit(scene, "b", 3)


_NOTED = {"GangDecision", "NoteOpened", "NoteClosed"}
#: What each scene writes into the log, or it is not the scene that it is meant to be.
_WRITTEN: dict[Callable[[LoggedScene], None], set[str]] = {
    poisoned: _NOTED | {"EvictionDecision"},
    doubtful: _NOTED | {"GangStarted"},
    never_whole: _NOTED | {"EvictionDecision"},
    never_runs: _NOTED | {"EvictionDecision", "GangStarted"},
    runs: {"GangDecision", "GangStarted"},
}


@pytest.mark.parametrize("begin", list(_WRITTEN))
def test_a_planner_that_starts_anywhere_in_the_log_knows_what_its_writer_knew(
    begin: Callable[[LoggedScene], None],
) -> None:
    scene = LoggedScene([make_node(f"n{i}") for i in range(5)])
    begin(scene)
    pods = list(scene.pods.values())
    old: list[Checkpoint] = []
    kinds: set[str] = set()
    for turn in range(24):
        scene.step(after_ms=(0, 0, 500, 1_000, 7_000)[turn % 5])
        compare(scene, old)
        kinds.update(type(one).__name__ for _, one in scene.records)
        if turn % 3 == 1:
            scene.carry_out()
            compare(scene, old)
        if turn % 3 == 2:
            scene.make_again(pods)
        if turn % 7 == 0:
            old = scene.pages
    assert kinds >= _WRITTEN[begin]
