"""Members above the quorum, where several gangs want what is left."""

from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.services.gang_planner.core.story import Story

FULL = make_shape({"cpu": 4000})


def test_gangs_that_all_want_more_of_a_full_cluster_wait_until_something_is_freed() -> None:
    """Found by the simulation (seed 167): who had no part of no room was tried again at once, for
    ever.
    """
    nodes = [make_node(f"n{i}") for i in range(2)]
    story = Story(nodes)
    for name in ("a", "b"):
        story.put(make_group(name, 1), make_pods(name, 3, FULL)[0])
        story.until_quiet()
        story.carry_out(phase="Running")
        story.until_quiet()
    for name in ("a", "b"):
        story.put(*make_pods(name, 3, FULL)[1:])
    story.until_quiet()
    assert (story.bound("a"), story.bound("b")) == (1, 1)
    story.put(make_node("n2"), make_node("n3"))
    story.until_quiet()
    story.carry_out(phase="Running")
    assert (story.bound("a"), story.bound("b")) == (2, 2)
