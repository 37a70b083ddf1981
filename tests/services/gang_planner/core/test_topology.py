"""Gangs with a topology through their lives: growth, losses, restarts, the order of ranks."""

import msgspec

from services.gang_planner.core.planner import Planner
from shared.model.objects import NetworkTopology, Pod, SubGroup
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.scene import Scene, make_group, make_pods, make_shape
from tests.services.gang_planner.core.topology.racks import (
    ONE_RACK,
    ONE_ROW,
    cluster,
    racks_of,
    scene,
)

CPU = make_shape({"cpu": 1000})


def started(found: Scene, size: int, topology: NetworkTopology = ONE_RACK) -> dict[str, str]:
    """`job` runs; the places of its members."""
    found.put(make_group("job", size, topology=topology), *make_pods("job", size, CPU))
    (decision,) = found.settle()
    found.run(decision)
    found.settle()
    return found.where(decision)


def fill(found: Scene, node: str, cpu: int) -> None:
    """Another scheduler takes room on a node."""
    (pod,) = make_pods(f"filler-{node}", 1, make_shape({"cpu": cpu}), node=node, phase="Running")
    found.put(pod)


def test_members_that_come_later_go_to_the_gangs_rack_and_nowhere_else() -> None:
    found = scene()
    before = started(found, 6)
    found.put(*make_pods("job", 9, CPU)[6:])
    (decision,) = found.settle()
    assert len(decision.bindings) == 2
    assert racks_of(found.where(decision)) == racks_of(before)
    words = found.verdict("job").why
    assert words is not None
    assert "it has members in a domain of tier 1 already" in words.sentence
    assert "the other members must be placed there too" in words.sentence


def test_a_lost_members_successor_stays_in_the_rack() -> None:
    found = scene()
    before = started(found, 6)
    lost = found.pods["job-worker-3"]
    found.change(lost.uid, phase="Failed")
    found.settle()
    (hold,) = found.holds()
    assert racks_of({"held": hold.node}) == racks_of(before)
    found.remove(found.pods[lost.uid])
    found.put(msgspec.structs.replace(make_pods("job", 4, CPU)[3], uid="new"))
    (decision,) = found.settle()
    assert decision.fills == (lost.uid,)
    assert racks_of(found.where(decision)) == racks_of(before)
    assert found.holds() == []


def test_a_gang_that_comes_back_returns_to_its_rack_although_another_fits_better() -> None:
    found = scene()
    before = started(found, 6)
    assert racks_of(before) == {"n-0-0"}
    found.remove_together(*found.pods_of("job"))
    found.settle()
    assert found.verdict("job").domain == "rack-0-0"
    fill(found, "n-1-1-0", 2000)
    found.put(*make_pods("job", 6, CPU))
    (decision,) = found.settle()
    assert decision.domain == "rack-0-0"


def test_a_planner_that_reads_the_log_or_a_checkpoint_knows_the_gangs_domain() -> None:
    found = scene()
    started(found, 6)
    for pages in ([], found.planner.checkpoint(0)):
        other = Planner(found.planner.configuration)
        other.restore(pages)
        if not pages:
            for seq, record in found.records:
                other.apply_decision(seq, record)
        assert state_of(other).gangs.history("group-job").home == "rack-0-0"


def test_neighbours_in_rank_are_neighbours_in_the_row() -> None:
    made, hypernodes = cluster(racks=4)
    found = Scene(reversed(made))
    found.put(*hypernodes)
    places = started(found, 32, ONE_ROW)
    racks = [places[f"job-worker-{index}"].rpartition("-")[0] for index in range(32)]
    assert racks == sorted(racks)
    assert len(set(racks)) == 4


def test_each_sub_gang_goes_back_to_its_own_rack() -> None:
    found = scene()
    stages = SubGroup(name="stage", size=6, match_label_keys=("stage",), topology=ONE_RACK)
    group = make_group("job", 12, topology=ONE_ROW, sub_groups=(stages,))
    found.put(group)
    for stage in "01":
        found.put(*staged(stage, 6))
    (decision,) = found.settle()
    places = found.where(decision)
    for stage in "01":
        of_stage = {name: node for name, node in places.items() if name[0] == stage}
        assert racks_of(of_stage) == {f"n-0-{stage}"}
    found.run(decision)
    found.settle()
    lost = found.pods["1-worker-5"]
    found.remove(lost)
    found.settle()
    found.put(staged("1", 6, uid="again")[5])
    (decision,) = found.settle()
    assert racks_of(found.where(decision)) == {"n-0-1"}


def test_a_stage_that_lost_a_member_keeps_its_gang_from_being_whole() -> None:
    found = scene()
    stages = SubGroup(name="stage", size=6, match_label_keys=("stage",), min_sub_groups=2)
    found.put(make_group("job", 6, sub_groups=(stages,)))
    for stage in "01":
        found.put(*staged(stage, 6))
    (decision,) = found.settle()
    assert len(decision.bindings) == 12
    gang = found.state.gangs.by_id["group-job"]
    phases: list[str] = []
    found.bind(decision, phase="Running", only=11)
    found.settle()
    phases.append(gang.phase)
    found.bind(decision, phase="Running")
    found.settle()
    phases.append(gang.phase)
    found.change("1-worker-5", phase="Failed")
    found.settle()
    phases.append(gang.phase)
    assert phases == ["Starting", "Running", "Unknown"]


def staged(stage: str, count: int, *, uid: str = "") -> list[Pod]:
    """Pods of one stage of `job`."""
    labels = msgspec.msgpack.encode((("stage", stage),))
    pods = make_pods("job", count, CPU, labels=labels)
    return [
        msgspec.structs.replace(
            pod, name=f"{stage}-{pod.role}-{pod.index}", uid=f"{stage}-{pod.role}-{pod.index}{uid}"
        )
        for pod in pods
    ]
