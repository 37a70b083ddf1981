"""Holds survive their planner, whichever log its successor reads first."""

import pytest

from services.gang_planner.core.planner import Planner
from shared.contracts.cluster import PodChanges
from shared.contracts.decisions import Cycle, EpochOpened, GangStarted
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.losing import closed, opened, place_of, running, successor
from tests.services.gang_planner.core.scene import Scene, make_group, make_node


def standby_of(scene: Scene, *, minimum: int = 3) -> Planner:
    """A planner that has read what the scene's has read, and does not lead."""
    other = Scene(make_node(f"node-{i}") for i in range(3))
    other.planner = Planner(scene.planner.configuration)
    other.pods = dict(scene.pods)
    other.cluster_seq = scene.cluster_seq - 1
    group = make_group("job", minimum)
    other.load_snapshot([make_node(f"node-{i}") for i in range(3)], objects=[group])
    for seq, record in scene.records:
        other.planner.apply_decision(seq, record)
    return other.planner


def replacements(planner: Planner) -> dict[str, str]:
    return {uid: hold.node for uid, hold in state_of(planner).holds.by_uid.items()}


def test_a_member_that_is_lost_with_its_node_and_then_deleted_is_owed_once() -> None:
    scene = running()
    scene.remove(make_node(place_of(scene, "job-worker-1")))
    scene.remove(scene.pods["job-worker-1"])
    scene.settle()
    (note,) = opened(scene)
    scene.now_ms = note.until_ms
    scene.settle()
    assert closed(scene) == ["Expired"]
    state = scene.state
    assert not state.holds.owes(state.gangs.by_id["group-job"].key)


def test_a_hold_that_is_filled_in_the_cycle_that_opened_it_has_no_notes() -> None:
    scene = running()
    scene.change("job-worker-1", phase="Failed")
    scene.put(successor(1))
    (decision,) = scene.settle()
    assert [one.uid for one in decision.bindings] == ["job-worker-1-again"]
    assert (opened(scene), closed(scene)) == ([], [])


def take_over(scene: Scene, standby: Planner) -> None:
    """The standby leads from here on."""
    scene.decision_seq += 1
    standby.apply_decision(
        scene.decision_seq,
        EpochOpened(epoch=scene.decision_seq, planner="b", at_ms=scene.now_ms, cluster_epoch=1),
    )
    standby.lead(scene.decision_seq)
    scene.planner = standby
    scene.step()


@pytest.mark.parametrize("first", ["log", "snapshot"])
def test_a_standby_owes_the_same_whichever_log_it_reads_first(first: str) -> None:
    scene = running()
    standby = standby_of(scene)
    place = place_of(scene, "job-worker-1")
    behind, before = len(scene.records), scene.cluster_seq
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    failed = PodChanges(epoch=1, at_ms=scene.now_ms, changed=(scene.pods["job-worker-1"],))
    if first == "snapshot":
        standby.apply_cluster(before + 1, failed)
    for seq, record in scene.records[behind:]:
        standby.apply_decision(seq, record)
    if first == "log":
        standby.apply_cluster(before + 1, failed)
    assert replacements(standby) == replacements(scene.planner) == {"job-worker-1": place}
    assert not state_of(standby).holds.pending
    validate(standby)


def test_a_standby_does_not_owe_again_what_was_filled_before_it_saw_the_loss() -> None:
    scene = running()
    standby = standby_of(scene)
    behind, before = len(scene.records), scene.cluster_seq
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    failed = PodChanges(epoch=1, at_ms=scene.now_ms, changed=(scene.pods["job-worker-1"],))
    scene.put(successor(1))
    scene.settle()
    assert closed(scene) == ["Filled"]
    for seq, record in scene.records[behind:]:
        standby.apply_decision(seq, record)
    standby.apply_cluster(before + 1, failed)
    made_again = PodChanges(epoch=1, at_ms=scene.now_ms, changed=(successor(1),))
    standby.apply_cluster(before + 2, made_again)
    take_over(scene, standby)
    assert replacements(standby) == {}
    assert len(opened(scene)) == 1


def test_a_planner_that_dies_before_it_noted_a_loss_leaves_it_to_its_standby() -> None:
    scene = running()
    standby = standby_of(scene)
    place = place_of(scene, "job-worker-1")
    before = scene.cluster_seq
    scene.change("job-worker-1", phase="Failed")
    failed = PodChanges(epoch=1, at_ms=scene.now_ms, changed=(scene.pods["job-worker-1"],))
    standby.apply_cluster(before + 1, failed)
    take_over(scene, standby)
    assert replacements(standby) == {"job-worker-1": place}


def test_a_standby_does_not_owe_what_its_predecessor_had_decided_not_to() -> None:
    """The predecessor's group had hold-seconds 0 when the loss was judged; nothing in the log says
    so but the records of its later cycles. The gang has enough members without the lost one.
    """
    scene = running(minimum=2)
    standby = standby_of(scene, minimum=2)
    before = scene.cluster_seq
    scene.change("job-worker-1", phase="Failed")
    failed = PodChanges(epoch=1, at_ms=scene.now_ms, changed=(scene.pods["job-worker-1"],))
    standby.apply_cluster(before + 1, failed)
    for seq in (1, 2):
        # A note of the first cycle that has read the loss may follow yet.
        assert list(state_of(standby).holds.pending) == ["job-worker-1"]
        cycle = Cycle(
            cluster_seq=before + seq, outcomes_seq=0, now_ms=scene.now_ms, configuration=""
        )
        scene.decision_seq += 1
        started = GangStarted(gang_id="other", epoch=1, at_ms=0, attempt=1, cycle=cycle)
        standby.apply_decision(scene.decision_seq, started)
    take_over(scene, standby)
    assert replacements(standby) == {}
