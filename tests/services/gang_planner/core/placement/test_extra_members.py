"""Members above the quorum, where several gangs want what is left."""

from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

FULL = make_shape({"cpu": 4000})


def test_gangs_that_all_want_more_of_a_full_cluster_wait_until_something_is_freed() -> None:
    """Found by the simulation (seed 167): gangs for which nothing was free were tried again at
    once, for ever.
    """
    nodes = [make_node(f"n{i}") for i in range(2)]
    scene = LoggedScene(nodes)
    for name in ("a", "b"):
        scene.put(make_group(name, 1), make_pods(name, 3, FULL)[0])
        scene.until_quiet()
        scene.carry_out(phase="Running")
        scene.until_quiet()
    for name in ("a", "b"):
        scene.put(*make_pods(name, 3, FULL)[1:])
    scene.until_quiet()
    assert (scene.bound("a"), scene.bound("b")) == (1, 1)
    scene.put(make_node("n2"), make_node("n3"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    assert (scene.bound("a"), scene.bound("b")) == (2, 2)
