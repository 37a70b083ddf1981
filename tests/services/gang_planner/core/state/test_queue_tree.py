"""The tree of queues is arranged where a record may have changed it, and only there."""

import random
from typing import Any

import pytest
from typing_extensions import override

from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import QueueEntry, QueueTable
from tests.services.gang_planner.core.scene import amounts
from tests.services.gang_planner.core.state.test_queues import a_queue

NAMES = ("root", "a", "b", "c", "d", "e")


def places(table: QueueTable) -> dict[str, object]:
    return {
        name: (entry.fault, [one.name for one in entry.chain], entry.has_children)
        for name, entry in table.entries.items()
    }


def a_table(*, hierarchical: bool) -> QueueTable:
    table = State().queues
    table.arrange(hierarchical=hierarchical)
    return table


@pytest.mark.parametrize("seed", range(8))
def test_a_settled_tree_is_the_one_that_a_full_pass_makes(seed: int) -> None:
    chance = random.Random(seed)
    hierarchical = seed % 4 != 0
    table = a_table(hierarchical=hierarchical)
    for version in range(80):
        name = chance.choice(NAMES)
        if chance.random() < 0.25:
            table.remove(f"q-{name}")
        else:
            parent = chance.choice(("", "root", *NAMES, "nowhere"))
            capability = chance.choice(((), amounts(cpu=1000)))
            table.put(a_queue(name, version, parent=parent, capability=capability))
        if chance.random() < 0.05:
            hierarchical = not hierarchical
            table.arrange(hierarchical=hierarchical)
        changes = table.changes
        table.settle()
        settled = places(table)
        assert table.changes >= changes
        table.arrange(hierarchical=not hierarchical)
        table.arrange(hierarchical=hierarchical)
        assert places(table) == settled


class Entries(dict[str, QueueEntry]):
    """Counts the passes over all queues."""

    passes = 0

    @override
    def values(self) -> Any:
        self.passes += 1
        return super().values()


@pytest.mark.parametrize("hierarchical", [False, True])
def test_a_record_that_moves_no_queue_costs_no_pass_over_all_queues(*, hierarchical: bool) -> None:
    table = a_table(hierarchical=hierarchical)
    entries = table.entries = Entries(table.entries)
    queues = [a_queue(f"q{index}") for index in range(50)]
    for queue in queues:
        table.put(queue)
    table.settle()
    assert bool(entries.passes) == hierarchical
    before, changes = entries.passes, table.changes
    for queue in queues:
        table.put(queue)
        table.settle()
    assert entries.passes == before
    assert table.changes == changes + len(queues)
