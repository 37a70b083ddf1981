"""Judges evictions for other gangs: each proven, of pods that may be evicted, and none without
effect.

Read from the decision as it is stored and from what etcd holds then; what the deciding cycle could
not know (a pod that another scheduler has bound since) is left out.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from shared.contracts.decisions import EvictionDecision, GangDecision, Victim
from shared.kube.resources import NODES, PODS
from tests.simulation.kube_api import ENDED
from tests.simulation.kube_server import Obj
from tests.simulation.lives import Life
from tests.simulation.nodes import cpu_milli
from tests.simulation.tenant import NAMESPACE as TENANTS_NAMESPACE
from tests.simulation.truth import Stored, Truth
from tests.simulation.world import World

_REASONS: Final = ("Preempted", "Reclaimed")
#: Two gangs may change places once, when what their queues deserve has changed.
_TURNS_MAX: Final = 2


class Evictions:
    """Everything about one run's preemptions."""

    def __init__(
        self,
        world: World,
        truth: Truth,
        *,
        taken: Callable[[str, int], int],
        broken: Callable[[str, str], None],
    ) -> None:
        """`taken(node, sequence of CLUSTER)`: what of it is taken, as published up to there;
        `broken(gang, what)` ends the run.
        """
        self._world = world
        self._truth = truth
        self._taken = taken
        self._broken = broken
        #: (preemptor, victim), by gangs' names.
        self._turns: Counter[tuple[str, str]] = Counter()

    def judge(self, stored: Stored) -> None:
        """A decision is stored."""
        act = stored.act
        if isinstance(act, GangDecision) or act.via != "eviction":
            return
        life = self._life_of(act.bindings[0].uid) if act.bindings else None
        name = life.name if life is not None else act.gang_id
        if act.reason not in _REASONS or act.until_ms <= act.cycle.now_ms:
            self._broken(name, f"eviction {stored.seq} has no reason or no end")
        if not act.bindings or not act.victims:
            self._broken(name, f"eviction {stored.seq} has no proven placement, or no victims")
        self._placement(name, stored, act)
        if life is not None:
            for victim in act.victims:
                self._victim(life, stored.seq, act.reason, victim)
            self._halves(life, stored.seq, act)

    def _life_of(self, uid: str) -> Life | None:
        found = self._world.lives.places.get(uid)
        return found[0] if found is not None else None

    def _placement(self, name: str, stored: Stored, act: EvictionDecision) -> None:
        """With the victims and all other terminating pods gone, the bindings fit."""
        pods = {pod["metadata"]["uid"]: pod for pod in self._world.etcd.all(PODS)}
        going = {victim.uid for victim in act.victims}
        for other in self._truth.preempting.values():
            going.update(victim.uid for victim in other.victims)
        for pods_in_flight in self._truth.unanswered.values():
            # Its preemption may have ended: its victims are still being evicted.
            if isinstance(pods_in_flight.act, EvictionDecision):
                going.update(victim.uid for victim in pods_in_flight.act.victims)
        going.update(uid for uid, pod in pods.items() if pod["metadata"].get("deletionTimestamp"))
        for node in sorted({binding.node for binding in act.bindings}):
            kubelet = self._world.nodes.kubelets.get(node)
            if kubelet is None:
                continue
            asked = sum(
                cpu_milli(pods[binding.uid])
                for binding in act.bindings
                if binding.node == node and binding.uid in pods
            )
            freed = sum(cpu_milli(pods[uid]) for uid in sorted(going) if _is_on(node, pods, uid))
            taken = self._taken(node, act.cycle.cluster_seq) - freed
            if asked + taken > kubelet.cpu_milli:
                self._broken(
                    name,
                    f"eviction {stored.seq} is without effect: on {node} {taken} of "
                    f"{kubelet.cpu_milli} stay taken, and {asked} are wanted",
                )

    def _victim(self, life: Life, seq: int, reason: str, victim: Victim) -> None:
        other = self._life_of(victim.uid)
        if other is None:
            if victim.namespace != TENANTS_NAMESPACE:
                self._broken(life.name, f"eviction {seq} takes {victim.name}, which is not ours")
            return
        if any(one.ended or one.plan.loses_its_group for one in (life, other)):
            return  # without its group a gang is in the default queue
        same_queue = other.plan.queue == life.plan.queue
        lower = other.plan.priority < life.plan.priority
        if other is life or (reason == "Preempted") != same_queue or (same_queue and not lower):
            self._broken(
                life.name,
                f"eviction {seq} ({reason}) may not take {victim.name}: priority "
                f"{other.plan.priority} in queue {other.plan.queue!r} for {life.plan.priority} "
                f"in {life.plan.queue!r}",
            )

    def _halves(self, life: Life, seq: int, act: EvictionDecision) -> None:
        """No gang is evicted by half, and no two gangs evict each other for ever."""
        going = {victim.uid for victim in act.victims}
        others = {one.name: one for uid in going if (one := self._life_of(uid)) is not None}
        for name, other in sorted(others.items()):
            self._turns[life.name, name] += 1
            if min(self._turns[life.name, name], self._turns[name, life.name]) >= _TURNS_MAX:
                self._broken(life.name, f"eviction {seq}: it and {name} evict each other")
            counts, runs, back = self._bound(other)
            left = len((counts | back) - going)
            whole = len(counts) >= other.minimum and not other.resized
            if whole and runs - going and left < other.minimum:
                self._broken(
                    life.name,
                    f"eviction {seq} leaves {left} of {name}, which needs {other.minimum}",
                )

    def _bound(self, life: Life) -> tuple[set[str], set[str], set[str]]:
        """Pods of a gang that count towards its quorum, those of them that have not ended, and
        those that came back with their nodes: whether the planner has read that is not
        known here. A pod on a node that is gone does not count.
        """
        counts: set[str] = set()
        runs: set[str] = set()
        back: set[str] = set()
        made = {
            node["metadata"]["name"]: node["metadata"]["creationTimestamp"]
            for node in self._world.etcd.all(NODES)
        }
        for pod in self._world.etcd.all(PODS):
            phase, uid = pod["status"].get("phase"), pod["metadata"]["uid"]
            # A Job of Kubernetes counts what succeeds while it is deleted, and makes it no more.
            done = phase == "Succeeded" and life.plan.owner == "Job"
            gone = phase == "Failed" or (pod["metadata"].get("deletionTimestamp") and not done)
            if gone or self._world.lives.life_of(pod) is not life:
                continue
            since = made.get(pod["spec"].get("nodeName"), "")
            if phase == "Succeeded":
                # What is done stays done when its node goes.
                counts.add(uid)
            elif since > pod["metadata"]["creationTimestamp"]:
                back.add(uid)
            elif since:
                counts.add(uid)
                runs.add(uid)
        return counts, runs, back


def _is_on(node: str, pods: dict[str, Obj], uid: str) -> bool:
    pod = pods.get(uid)
    if pod is None or pod["status"].get("phase") in ENDED:
        return False
    return bool(pod["spec"].get("nodeName") == node)
