"""Groups whose pods are not placed although there is capacity for all of them."""

from typing import Any

import msgspec
import pytest

from shared.contracts.pending_reasons import PendingReason
from shared.model.objects import Queue
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

CPU = make_shape({"cpu": 1000})
CLOSED = Queue(uid="c", dialect="volcano", name="closed", resource_version=1, state="Closed")


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        ({"errors": ("minMember must be a number",)}, PendingReason.INVALID_GROUP),
        ({"deleting": True}, PendingReason.GROUP_DELETING),
        ({"min_task_member": (("server", 1),)}, PendingReason.NOT_ENOUGH_PODS_OF_TASK),
        ({"queue": "closed"}, PendingReason.QUEUE_NOT_OPEN),
    ],
)
def test_no_pod_of_such_a_group_is_placed(group: dict[str, Any], reason: PendingReason) -> None:
    scene = Scene([make_node("n")])
    scene.put(CLOSED, make_group("job", 2, **group), *make_pods("job", 2, CPU))
    assert scene.settle() == []
    scene.step(after_ms=5_000)
    why = scene.verdict("job").why
    assert why is not None
    assert why.reason == reason


def test_a_started_gang_gets_its_members_while_its_queue_is_closed() -> None:
    scene = Scene([make_node("n")])
    scene.put(CLOSED, make_group("job", 2), *make_pods("job", 2, CPU))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.put(make_group("job", 2, queue="closed", resource_version=2))
    scene.put(make_pods("job", 3, CPU)[2])
    (extra,) = scene.settle()
    assert [one.uid for one in extra.bindings] == ["job-worker-2"]


def test_pods_whose_group_we_make_wait_for_their_queue_and_cause_another_attempt_then(
    golden: Golden,
) -> None:
    """The API server refuses a generated group in a closed queue. The attempt of the podgroup
    controller that follows the next verdict creates it.
    """
    scene = Scene([make_node("n")])
    scene.put(CLOSED, *make_pods("job", 2, CPU, group_implied=True, queue="closed"))
    scene.settle()
    why = scene.verdict("job").why
    assert why is not None
    assert why.reason == PendingReason.QUEUE_NOT_OPEN
    golden(why.sentence)
    scene.put(msgspec.structs.replace(CLOSED, state="Open", resource_version=2))
    scene.settle()
    later = scene.verdict("job")
    assert later.why is not None
    assert later.why.reason == PendingReason.GROUP_MISSING
    assert later.why.sentence.startswith("Tutti has not created its PodGroup yet; ")
    assert later.group_wanted == "job"
