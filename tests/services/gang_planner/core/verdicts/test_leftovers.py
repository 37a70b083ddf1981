"""What is left of pods whose group was deleted is no gang of its own: nothing is said of it."""

import msgspec
import pytest

from shared.contracts.identity import nameless_gang_id
from tests.services.gang_planner.core.losing import WORKER, running
from tests.services.gang_planner.core.scene import Scene, make_group, make_node, make_pods

NAMELESS = nameless_gang_id("", "team", "job")


def ids_published(scene: Scene) -> set[str]:
    return {verdict.gang_id for verdict in scene.published}


@pytest.mark.parametrize("leaving", [False, True], ids=["running on", "leaving"])
def test_pods_that_outlive_their_group_are_no_other_gang(*, leaving: bool) -> None:
    scene = running()
    if leaving:
        for pod in scene.pods_of("job"):
            scene.change(pod.uid, deleting=True)
        scene.settle()
    scene.remove(make_group("job", 3))
    scene.step(after_ms=2_000)
    for pod in scene.pods_of("job"):
        scene.remove(pod)
        scene.step(after_ms=2_000)
    assert ids_published(scene) == {"group-job"}
    assert scene.verdict("job").phase == "Gone"


@pytest.mark.parametrize(
    "fields", [{"deleting": True}, {"phase": "Succeeded"}, {"phase": "Failed"}]
)
def test_a_pod_seen_when_its_group_is_gone_makes_no_gang_when_it_ends_or_leaves(
    fields: dict[str, object],
) -> None:
    scene = Scene([make_node("node-0")])
    for pod in make_pods("job", 2, WORKER):
        scene.put(msgspec.structs.replace(pod, node="node-0", **fields))
    scene.step(after_ms=2_000)
    assert ids_published(scene) == set()
    assert scene.planner.gangs_by_phase().get("Pending", 0) == 0


def test_a_planner_that_starts_among_leftovers_reports_none() -> None:
    scene = running()
    for pod in scene.pods_of("job"):
        scene.change(pod.uid, deleting=True)
    scene.remove(make_group("job", 3))
    heir = Scene()
    heir.pods = dict(scene.pods)
    heir.load_snapshot(nodes=[make_node("node-0")], epoch=2)
    heir.settle()
    assert ids_published(heir) == set()


def test_pods_that_wait_without_their_group_get_a_condition_that_says_so() -> None:
    scene = Scene([make_node("node-0")])
    scene.put(*make_pods("job", 2, WORKER))
    scene.settle()
    why = scene.verdict("job").why
    assert why is not None
    assert why.reason == "GroupMissing"
    assert ids_published(scene) == {NAMELESS}
