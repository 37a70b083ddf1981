"""The benchmark of names that come and go, made small."""

from bench.churn import come_and_go, measured
from tests.services.gang_planner.core.scene import Scene, make_node


def test_a_round_leaves_no_gang_and_no_queue() -> None:
    scene = Scene([make_node("n0")])
    for number in range(3):
        come_and_go(scene, number, shapes=True)
    used, cycle_s = measured(scene, 3, shapes=False)
    assert used == 0, "nothing traces memory here"
    assert cycle_s > 0
    state = scene.state
    assert not state.gangs.gangs
    assert set(state.queues.entries) == {"default"}
