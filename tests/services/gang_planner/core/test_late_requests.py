"""Room of a member that was refused, when an earlier request for it may still be carried out.

Found by tests/model: a POST without an answer, then a second one refused; the room was given to
another gang, and then the first POST arrived.
"""

import pytest

from shared.contracts.outcomes import Member, Outcome
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

FULL = make_shape({"cpu": 4000})


@pytest.mark.parametrize("late", [False, True])
def test_the_room_of_a_refused_member_is_kept_while_an_earlier_request_may_bind_it(
    late: bool,
) -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    (decision,) = scene.settle()
    (binding,) = decision.bindings
    seq = scene.decisions[-1][0]
    refused = Member(uid=binding.uid, node=binding.node, result="refused", code=403, late=late)
    scene.outcome_seq += 1
    scene.planner.apply_outcome(
        scene.outcome_seq,
        Outcome(
            gang_id="group-a",
            decision_seq=seq,
            epoch=decision.epoch,
            binder="b",
            delivered=1,
            members=(refused,),
        ),
    )
    scene.put(make_group("other", 1), *make_pods("other", 1, FULL))
    assert [one.gang for one in scene.settle()] == ([] if late else ["team/other"])
