"""Missing members of started gangs that no planner remembers as lost go before other gangs."""

import msgspec

from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.losing import WORKER, bound_of
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods


def found_after_a_cold_start(*, priority: int = 0) -> set[str]:
    """A worker of `job`, which has one on each of three nodes, vanishes while no planner lives, and
    its controller makes it again; `rival` has waited since before. Returns the placed gangs.
    """
    scene = LoggedScene(make_node(f"node-{i}") for i in range(3))
    workers = make_pods("job", 3, WORKER)
    scene.put(make_group("job", 3, created_ms=2), *workers)
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    scene.put(make_group("rival", 1, created_ms=1))
    scene.put(*make_pods("rival", 1, WORKER, priority=priority))
    scene.until_quiet()
    assert scene.bound("job") == 3
    assert scene.bound("rival") == 0
    lost = scene.pods.pop(workers[2].uid)
    scene.pods["again"] = msgspec.structs.replace(workers[2], uid="again")
    scene.restart(checkpoint=True)
    found = bound_of(scene.settle())
    assert set(found.values()) == {lost.node}
    return set(found)


def test_a_successor_goes_before_gangs_that_have_waited_longer() -> None:
    assert found_after_a_cold_start() == {"again"}


def test_a_gang_of_higher_priority_goes_before_it() -> None:
    assert found_after_a_cold_start(priority=1) == {"rival-worker-0"}
