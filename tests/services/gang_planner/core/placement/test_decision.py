"""What a decision carries for others than the binder."""

import pytest

from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

ON_GROUP = f"00-{'a' * 32}-{'b' * 16}-01"
ON_POD = f"00-{'c' * 32}-{'d' * 16}-01"


@pytest.mark.parametrize(
    ("on_group", "on_pod", "carried"),
    [
        pytest.param(ON_GROUP, ON_POD, ON_GROUP, id="the group's comes first"),
        pytest.param("", ON_POD, ON_POD, id="else a member's"),
        pytest.param("", "", "", id="neither has one"),
    ],
)
def test_a_submitters_traceparent_travels_in_the_decision(
    on_group: str, on_pod: str, carried: str
) -> None:
    scene = Scene([make_node("n0")])
    (first,) = make_pods("a", 1, make_shape({"cpu": 1000}))
    (second,) = make_pods("a", 1, first.shape, role="second", traceparent=on_pod)
    scene.put(make_group("a", 2, traceparent=on_group), first, second)
    scene.step()
    ((_, decision),) = scene.decisions
    assert decision.traceparent == carried
