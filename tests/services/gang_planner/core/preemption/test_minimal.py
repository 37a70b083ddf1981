"""The victims chosen are the cheapest there are: compared with every possible choice, worked out
here from the pods themselves.
"""

from itertools import chain, combinations
from typing import Any, NamedTuple

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from shared.model.objects import Queue
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import cluster, configured, evictions, submit
from tests.services.gang_planner.core.scene import amounts, make_shape

NODE_CPU = 4000
RECLAIM = configured(
    "enqueue, allocate, reclaim, backfill",
    "name: gang, enablePreemptable: false, enableReclaimable: false",
    "  - name: capacity\n",
)


class Low(NamedTuple):
    """A gang that runs: where its members are, what each asks for."""

    nodes: tuple[int, ...]
    cpu: int
    minimum: int
    priority: int


Cost = tuple[int, int, int]
"""Gangs broken, highest priority, pods."""


@st.composite
def crowds(draw: st.DrawFn) -> tuple[int, list[Low]]:
    """Nodes, and gangs on them that over-fill none."""
    nodes = draw(st.integers(1, 3))
    free = [NODE_CPU] * nodes
    gangs: list[Low] = []
    for _ in range(draw(st.integers(1, 4))):
        cpu = draw(st.sampled_from([1000, 2000, 3000, 4000]))
        places: list[int] = []
        for _ in range(draw(st.integers(1, 3))):
            fitting = [node for node in range(nodes) if free[node] >= cpu]
            if fitting and sum(len(one.nodes) for one in gangs) + len(places) < 8:
                places.append(draw(st.sampled_from(fitting)))
                free[places[-1]] -= cpu
        if places:
            minimum = draw(st.integers(0, len(places)))
            gangs.append(Low(tuple(places), cpu, minimum, draw(st.integers(0, 2))))
    return nodes, gangs


def cheapest(
    nodes: int, gangs: list[Low], cpu: int, count: int, over: int | None = None
) -> Cost | None:
    """The least cost of any choice of victims that makes room; None: none does. `over`: by how much
    their queue holds more than it deserves, None: it does not matter.
    """
    pods = [(place, node) for place, gang in enumerate(gangs) for node in gang.nodes]
    found: Cost | None = None
    for chosen in chain.from_iterable(
        combinations(range(len(pods)), size) for size in range(len(pods) + 1)
    ):
        lost = [0] * len(gangs)
        free = [NODE_CPU] * nodes
        for index, (place, node) in enumerate(pods):
            if index in chosen:
                lost[place] += 1
            else:
                free[node] -= gangs[place].cpu
        broken = 0
        for gang, gone in zip(gangs, lost, strict=True):
            if gone and len(gang.nodes) - gone < gang.minimum:
                if gone < len(gang.nodes):
                    break
                broken += gang.minimum > 1
        else:
            if over is not None and not gives(gangs, lost, over):
                continue
            if sum(reservation // cpu for reservation in free) >= count:
                highest = max(
                    (g.priority for g, n in zip(gangs, lost, strict=True) if n), default=-1
                )
                cost = broken, highest, len(chosen)
                found = cost if found is None else min(found, cost)
    return found


def gives(gangs: list[Low], lost: list[int], over: int) -> bool:
    """Whether a queue gives so much: without the largest that goes at once it has still too much,
    so that each goes while it has.
    """
    total = largest = 0
    for gang, gone in zip(gangs, lost, strict=True):
        total += gone * gang.cpu
        if gone:
            breaks = len(gang.nodes) - gone < gang.minimum
            largest = max(largest, gang.cpu * (gang.minimum if breaks else 1))
    return not total or total - largest < over


def cost_in(scene: LoggedScene, gangs: list[Low]) -> Cost:
    (eviction,) = evictions(scene)
    lost = [0] * len(gangs)
    for victim in eviction.victims:
        lost[int(victim.name.split("-")[1])] += 1
    broken = 0
    for gang, gone in zip(gangs, lost, strict=True):
        if gone and len(gang.nodes) - gone < gang.minimum:
            assert gone == len(gang.nodes), "half a gang is evicted"
            broken += gang.minimum > 1
    highest = max(g.priority for g, n in zip(gangs, lost, strict=True) if n)
    return broken, highest, len(eviction.victims)


@settings(max_examples=150, deadline=None)
@example((3, [Low((0, 0, 1), 2000, 2, 0), Low((1, 1), 1000, 0, 1)]), 3000, 2)
@given(crowds(), st.sampled_from([1000, 2000, 3000, 4000]), st.integers(1, 3))
def test_no_choice_of_victims_costs_less_than_the_one_that_is_made(
    crowd: tuple[int, list[Low]], cpu: int, count: int
) -> None:
    nodes, gangs = crowd
    scene = cluster(nodes)
    fill(scene, gangs)
    submit(scene, "high", count, priority=9, shape=make_shape({"cpu": cpu}))
    scene.until_quiet()
    judge(scene, gangs, cheapest(nodes, gangs, cpu, count))


@settings(max_examples=100, deadline=None)
@given(crowds(), st.sampled_from([1000, 2000, 3000, 4000]), st.integers(1, 3), st.integers(0, 12))
def test_no_choice_of_what_a_queue_may_lose_costs_less_than_the_one_that_is_made(
    crowd: tuple[int, list[Low]], cpu: int, count: int, deserved: int
) -> None:
    nodes, gangs = crowd
    used = sum(len(gang.nodes) * gang.cpu for gang in gangs)
    deserved *= 1000
    # No other gang is to get less than it declares.
    assume(deserved + count * cpu <= nodes * NODE_CPU)
    scene = cluster(nodes, RECLAIM)
    for name, amount in (("rich", deserved), ("poor", count * cpu)):
        given_to = amounts(cpu=amount)
        queue = Queue(uid=name, dialect="volcano", name=name, resource_version=1, deserved=given_to)
        scene.put(queue)
    fill(scene, gangs, group={"queue": "rich"})
    submit(scene, "high", count, shape=make_shape({"cpu": cpu}), group={"queue": "poor"})
    scene.until_quiet()
    judge(scene, gangs, cheapest(nodes, gangs, cpu, count, used - deserved))


def fill(scene: LoggedScene, gangs: list[Low], **fields: Any) -> None:
    """These gangs run."""
    for place, gang in enumerate(gangs):
        pods = submit(
            scene,
            f"low-{place}",
            len(gang.nodes),
            minimum=gang.minimum,
            priority=gang.priority,
            shape=make_shape({"cpu": gang.cpu}),
            phase="Running",
            node="n00",
            started_ms=1_000,
            **fields,
        )
        for pod, node in zip(pods, gang.nodes, strict=True):
            scene.change(pod.uid, node=f"n{node:02d}")
    scene.until_quiet()


def judge(scene: LoggedScene, gangs: list[Low], best: Cost | None) -> None:
    """What was decided costs no more than the best choice."""
    if best is None:
        assert evictions(scene) == []
        assert scene.decisions == []
    elif best[2] == 0:
        assert evictions(scene) == []
        assert len(scene.decisions) == 1
    else:
        assert cost_in(scene, gangs) == best
