"""A scheduler that places pods one by one, for a comparison with Tutti.

Like any scheduler without gangs, it takes the oldest pod without a node and binds it to the first
node where it fits. `fitting` is pure; the demo also counts free capacity with it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from shared.kube import objects as kube
from shared.kube.client import KubeClient
from shared.kube.requests import effective_requests
from tutti.demo.claims import PodObservation
from tutti.demo.observer import Observer

#: Scheduler name of the pods that it places.
SCHEDULER_NAME: Final = "pod-by-pod"


def fitting(
    pods: Iterable[kube.Pod], nodes: Mapping[str, Mapping[str, int]], seen: Iterable[PodObservation]
) -> list[tuple[kube.Pod, str]]:
    """Each waiting pod that fits, in order, with the first node where it fits. The requests of
    bound pods among `seen` count on their nodes.
    """
    used: dict[str, Counter[str]] = {name: Counter() for name in nodes}
    for each in seen:
        if each.uses_capacity and each.node in used:
            used[each.node].update(each.requests)
    placed = []
    for pod in pods:
        requests = dict(effective_requests(pod.spec))
        for name in sorted(nodes):
            allocatable = nodes[name]
            if all(
                used[name][kind] + n <= allocatable.get(kind, 0) for kind, n in requests.items()
            ):
                used[name].update(requests)
                placed.append((pod, name))
                break
    return placed


async def schedule(client: KubeClient, observer: Observer) -> None:
    """Place pods one by one until cancelled. Raises KubeError."""
    bound: set[str] = set()

    def placeable() -> list[tuple[kube.Pod, str]]:
        """The pods to bind now; none while a binding of ours was not observed yet."""
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
