"""Pods of a gang that name the default scheduler: the gang waits, binds nothing of them, and its
group says why.
"""

from typing import Any

import msgspec

from shared.contracts.verdicts import Condition
from tests.services.gang_planner.core.losing import WORKER
from tests.services.gang_planner.core.scene import Scene, make_group, make_node, make_pods
from tests.support.golden import Golden

LOST: dict[str, Any] = {"ours": False, "scheduler_name": "default-scheduler", "misdirected": True}


def reported(scene: Scene, name: str = "job") -> Condition:
    (found,) = (one for one in scene.verdict(name).conditions if one.type == "OtherScheduler")
    return found


def test_a_gang_whose_pods_name_the_default_scheduler_says_so_while_they_wait(
    golden: Golden,
) -> None:
    scene = Scene([make_node("node-0")])
    scene.put(make_group("job", 2), *make_pods("job", 2, WORKER, **LOST))
    assert scene.settle() == []
    verdict = scene.verdict("job")
    assert verdict.why is not None
    assert verdict.why.reason == "NotEnoughPods"
    golden(verdict.why.sentence)
    condition = reported(scene)
    assert (condition.status, condition.reason) == ("True", "DefaultScheduler")
    assert condition.message.endswith("tutti.dev/schedule=true: job-worker-0, job-worker-1")
    assert verdict.waiting == (), "their conditions are written by their own scheduler"


def test_it_says_so_also_when_the_other_scheduler_has_bound_them() -> None:
    scene = Scene([make_node("node-0")])
    scene.put(make_group("job", 2), *make_pods("job", 2, WORKER, **LOST))
    scene.settle()
    for pod in scene.pods_of("job"):
        scene.change(pod.uid, node="node-0", phase="Running")
    scene.step(after_ms=2_000)
    assert scene.verdict("job").phase == "Running"
    assert reported(scene).status == "True"


def test_one_misdirected_member_among_others_is_named() -> None:
    scene = Scene([make_node("node-0")])
    scene.put(make_group("job", 3), *make_pods("job", 2, WORKER))
    (late,) = make_pods("job", 1, WORKER, role="late", **LOST)
    scene.put(late)
    scene.settle()
    assert reported(scene).message.startswith("1 of its pods names the scheduler default-")
    scene.remove(late)
    scene.step(after_ms=2_000)
    assert reported(scene).status == "False"


def test_pods_that_name_a_missing_group_and_another_scheduler_are_no_gang_of_ours() -> None:
    scene = Scene([make_node("node-0")])
    scene.put(*make_pods("job", 2, WORKER, **LOST))
    scene.step(after_ms=2_000)
    assert scene.published == []
    for pod in scene.pods_of("job"):
        scene.put(msgspec.structs.replace(pod, node="node-0", phase="Running"))
    scene.step(after_ms=2_000)
    assert scene.published == []
