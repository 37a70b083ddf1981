"""Evictions: how long a gang waits for the decision which pods to evict for it, and whether those
are the fewest that could go.
"""

from collections.abc import Iterator
from typing import Final

from bench.bars import Figure
from bench.planner.world import World, make_gang, make_nodes, shape_of

NODES: Final = 100
_PODS_PER_NODE: Final = 10
_RUNS: Final = 3
_POD_CPU: Final = 6_400
_CONFIGURATION: Final = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: nodeorder
"""


def evicting(runs: int = _RUNS) -> Iterator[Figure]:
    """A full cluster of 1,000 pods on 100 nodes; gangs of higher priority come."""
    small, node = shape_of(_POD_CPU), shape_of(_POD_CPU * _PODS_PER_NODE)
    for name, low, quorum, gangs, size, shape, victims in (
        ("1 gang of 100 from 1,000 single pods", 1, 1, 1, 100, small, 100),
        ("10 gangs of 10 from 1,000 single pods", 1, 1, 10, 10, small, 100),
        ("1 gang of 100 from 100 gangs of 10, 5 above the quorum", 10, 5, 1, 100, small, 100),
        ("1 gang of 100 from 100 whole gangs of 10", 10, 10, 1, 100, small, 100),
        ("10 gangs of 10 from 100 whole gangs of 10", 10, 10, 10, 10, small, 100),
        ("1 gang of 10 whole nodes from 100 gangs spread over 10 nodes", 10, 10, 1, 10, node, 100),
        ("1 gang of 50 whole nodes from 1,000 single pods", 1, 1, 1, 50, node, 500),
    ):
        best: World | None = None
        for _ in range(runs):
            world = _crowded(low, quorum)
            world.put_gangs(
                make_gang(f"high-{index}", size, [shape], created_ms=index, priority=10)
                for index in range(gangs)
            )
            binds, evictions = world.decide()
            evicted = sum(len(one.victims) for one in evictions)
            assert (len(binds), len(evictions)) == (0, gangs), f"{name}: {len(evictions)} decided"
            assert evicted == victims, f"{name}: {evicted} evicted where {victims} do"
            if best is None or world.cpu_s < best.cpu_s:
                best = world
        assert best is not None
        value = best.cpu_s * 1e3
        yield Figure(group="evictions", name=name, value=value, unit="ms", bar=50)


def _crowded(size: int, quorum: int) -> World:
    """1,000 pods of low priority fill 100 nodes, in gangs whose members lie on successive nodes."""
    world = World(make_nodes(NODES), configuration=_CONFIGURATION)
    total = NODES * _PODS_PER_NODE
    shape = shape_of(_POD_CPU)
    world.put_gangs(
        make_gang(
            f"low-{first:04d}",
            size,
            [shape],
            quorum=quorum,
            created_ms=first,
            nodes=[f"node-{(first + index) % NODES:05d}" for index in range(size)],
            started_ms=1_000,
        )
        for first in range(0, total, size)
    )
    assert world.decide() == ([], [])
    return world
