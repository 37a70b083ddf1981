"""The contrast: a plain scheduler that places one pod after the other. Not Tutti, and labelled so.

It does what any scheduler does that knows pods only: take the oldest pod without a node, bind it to
the first node where it fits, continue. `fitting` is pure; the demo also counts room with it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from shared.kube import objects as kube
from shared.kube.client import KubeClient
from shared.kube.requests import effective_requests
from tutti.demo.observer import Observer
from tutti.demo.record import Sighting

#: What pods ask for that are to be scheduled this way.
SCHEDULER_NAME: Final = "pod-by-pod"


def fitting(
    pods: Iterable[kube.Pod], nodes: Mapping[str, Mapping[str, int]], seen: Iterable[Sighting]
) -> list[tuple[kube.Pod, str]]:
    """Each pod that fits, in turn, with the first node where it does.

    Args:
        pods: What waits, in order.
        nodes: What each node has, by resource.
        seen: All pods; those with a node take their room from it.
    """
    used: dict[str, Counter[str]] = {name: Counter() for name in nodes}
    for each in seen:
        if each.holds_room and each.node in used:
            used[each.node].update(each.requests)
    placed = []
    for pod in pods:
        asked = dict(effective_requests(pod.spec))
        for name in sorted(nodes):
            room = nodes[name]
            if all(used[name][kind] + n <= room.get(kind, 0) for kind, n in asked.items()):
                used[name].update(asked)
                placed.append((pod, name))
                break
    return placed


async def schedule(client: KubeClient, observer: Observer) -> None:
    """Place pods one by one until cancelled.

    Raises:
        KubeError: The API server refused a binding.
    """
    bound: set[str] = set()

    def placeable() -> list[tuple[kube.Pod, str]]:
        """What to bind now: nothing while a binding of ours is not yet seen."""
        seen = observer.pods
        if any(not (seen[uid].node or seen[uid].gone) for uid in bound):
            return []
        waiting = [
            pod
            for uid, pod in observer.specs.items()
            if pod.spec.scheduler_name == SCHEDULER_NAME and uid not in bound
        ]
        waiting.sort(key=lambda pod: pod.metadata.version)
        return fitting(waiting, observer.nodes, seen.values())

    while True:
        await observer.until(lambda: bool(placeable()), "a pod that fits", timeout_s=None)
        for pod, node in placeable():
            meta = pod.metadata
            reply = await client.bind(meta.namespace, meta.name, meta.uid, node, {})
            reply.raise_for_status()
            bound.add(meta.uid)
