"""Turns are those of the plain way: compare all queues before each of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.policies import capacity, proportion
from services.gang_planner.core.queueing.turns import Turns
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.objects import Queue
from tests.services.gang_planner.core.scene import amounts, make_shape

_TOTALS = (100_000, 1_000, 1_000)
_BY_LEVEL = PolicySet([capacity.build(Arguments("here", {"enableHierarchy": True}))], State())
_BY_WEIGHT = PolicySet([proportion.build(Arguments("here", {}))], State())


class Tree(NamedTuple):
    """Some queues of which those without others below them stand in line."""

    state: State
    leaves: list[QueueEntry]
    pod: ShapeEntry

    @classmethod
    def of(cls, queues: Sequence[Queue], *, hierarchical: bool = True) -> "Tree":
        """All queues, arranged."""
        state = State()
        state.queues.arrange(hierarchical=hierarchical)
        for one in queues:
            state.queues.put(one)
        state.queues.settle()
        leaves = [one for one in state.queues.entries.values() if not one.has_children]
        return cls(state, leaves, state.shapes.intern(make_shape({"cpu": 1000})))


def a_queue(name: str, *, deserved: int = 10, parent: str = "", **fields: Any) -> Queue:
    """A queue that deserves so many CPUs."""
    return Queue(
        uid=name,
        dialect="volcano",
        name=name,
        resource_version=1,
        parent=parent,
        deserved=amounts(cpu=1000 * deserved),
        **fields,
    )


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Queues below each other, up to ten levels deep."""
    queues = [
        a_queue(
            f"q{index}",
            parent=draw(st.sampled_from(["", *(f"q{above}" for above in range(index))])),
            deserved=draw(st.integers(1, 4)),
            priority=draw(st.sampled_from([0, 0, 0, 1])),
            weight=draw(st.integers(1, 3)),
        )
        for index in range(draw(st.integers(1, 11)))
    ]
    return Tree.of(queues, hierarchical=draw(st.booleans()))


@given(trees(), st.sampled_from([_BY_LEVEL, _BY_WEIGHT]), st.data())
def test_the_first_queue_is_the_least_of_all_after_whatever_was_placed(
    tree: Tree, policies: PolicySet, data: st.DataObject
) -> None:
    in_line = {one.name: one for one in tree.leaves}
    turns = Turns(policies, _TOTALS, tree.leaves)
    stays = ""
    while in_line:
        least = min(in_line.values(), key=lambda one: policies.queue_order(one, _TOTALS))
        assert turns.first() is least
        assert stays in ("", least.name)
        assert turns.alone == (len(in_line) == 1)
        placed = data.draw(st.integers(0, 3))
        least.charge(tree.pod, placed)
        stays = least.name if turns.stays_first() else ""
        if placed == 0:
            del in_line[least.name]
            turns.drop_first()
            stays = ""
    assert turns.first() is None


def test_a_queue_keeps_its_turn_until_it_holds_more_of_its_part_than_its_sibling() -> None:
    """What their parent holds grows with every gang, and is no reason to look at them again."""
    tree = Tree.of(
        [a_queue("all"), a_queue("a", parent="all"), a_queue("b", parent="all", deserved=5)]
    )
    a, b = tree.leaves
    b.charge(tree.pod, 2)
    turns = Turns(_BY_LEVEL, _TOTALS, [a, b])
    assert turns.first() is a
    kept = 0
    while turns.stays_first():
        a.charge(tree.pod, 1)
        kept += 1
    assert kept == 5
    assert turns.first() is b


def test_queues_of_another_parent_are_compared_by_what_the_parents_hold() -> None:
    names = ("left", "right")
    tree = Tree.of(
        [*map(a_queue, names), a_queue("a", parent="left"), a_queue("z", parent="right")]
    )
    a, z = tree.leaves
    turns = Turns(_BY_LEVEL, _TOTALS, [a, z])
    assert turns.first() is a
    a.charge(tree.pod, 1)
    assert not turns.stays_first()
    assert turns.first() is z
