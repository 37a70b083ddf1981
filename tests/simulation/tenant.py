"""A hostile user of another namespace: `edit` there, and nothing elsewhere.

The tenant knows the names and UIDs of the other gangs, which Events and dashboards show. All its
objects are ones that the API server accepts: owners by UIDs that are not theirs, groups with the
names of other groups, names as long as they may be, and more text than anything needs. It leaves
when the storm ends: nothing of it may then keep a gang waiting.
"""

from collections.abc import Callable
from typing import Any, Final

from shared.contracts import annotations
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.kube.resources import DISRUPTION_BUDGETS, PODGROUPS_VOLCANO, PODS, Resource
from tests.simulation.kube_api import delete
from tests.simulation.kube_server import Etcd, Obj, with_
from tests.simulation.lives import Life, Lives
from tests.simulation.workload import GROUPS, OWNERS

NAMESPACE: Final = "evil"
_USER: Final = "tenant"
#: Between two acts, on average.
_GAP_S: Final = 1.5
#: Objects of the tenant at a time, as a quota on their number would have it.
_OBJECTS_MAX: Final = 24
#: UIDs that the API server stores in an ownerReference without looking at them.
UIDS: Final = ("a b", "..", "*", ">", "a.b", "\N{SNOWMAN}", "x" * 3000, "$KV.LEASES.gang-planner")
#: A label's value, and an annotation's, as long as they may be.
_LABEL: Final = "r" * 63
_TEXT: Final = "t" * 20_000
#: Resources that no node has, in one pod.
_RESOURCES: Final = 300
_SECONDS: Final = "999999999"
_RUNS_MS: Final = 4000


class Tenant:
    """Everything that one hostile user does in a run."""

    def __init__(self, etcd: Etcd, lives: Lives, note: Callable[[str, str], None]) -> None:
        """`note(gang, what)` is called with what the tenant does about a gang."""
        self._etcd = etcd
        self._lives = lives
        self._note = note
        self._rng = etcd.loop.dice.rng("tenant")
        self._made = 0
        self._active = False
        self._acts: tuple[Callable[[Life], None], ...] = (
            self._claim_owner,
            self._claim_owner,
            self._declare_budget,
            self._take_name,
            self._write_any_uid,
            self._ask_for_everything,
            self._be_verbose,
            self._change_owner,
            self._delete_something,
        )
        etcd.on_restore.append(self._restored)

    def begin(self) -> None:
        """Act from now on."""
        self._active = True
        self._wait()

    def leave(self) -> None:
        """Delete everything, and do nothing more."""
        self._active = False
        for resource, obj in self._own():
            delete(self._etcd, resource, obj, by=_USER)

    def _restored(self) -> None:
        """etcd went back to an instant before it left: it leaves again."""
        if not self._active:
            self.leave()

    def _wait(self) -> None:
        self._etcd.loop.at(self._rng.expovariate(1 / _GAP_S), self._act)

    def _act(self) -> None:
        if not self._active:
            return
        arrived = [one for one in self._lives.lives.values() if one.arrived and not one.ended]
        if arrived:
            act = self._rng.choice(self._acts)
            if len(self._own()) >= _OBJECTS_MAX:
                act = self._delete_something
            life = self._rng.choice(arrived)
            self._note(life.name, f"the tenant of {NAMESPACE}: {act.__name__.strip('_')}")
            act(life)
        self._wait()

    def _own(self) -> list[tuple[Resource, Obj]]:
        kinds = (PODS, DISRUPTION_BUDGETS, *GROUPS)
        return [
            (resource, obj)
            for resource in kinds
            for obj in self._etcd.all(resource)
            if obj["metadata"].get("namespace") == NAMESPACE
        ]

    # ---- what it does

    def _claim_owner(self, life: Life) -> None:
        """Pods that name the owner of another namespace's gang, and more members than it has."""
        for _ in range(self._rng.randint(1, 2)):
            owner = _owner(life, life.owner_uid)
            self._pod({annotations.GROUP_MIN_MEMBER: str(self._rng.randint(1, 9))}, owner=owner)

    def _declare_budget(self, life: Life) -> None:
        """A budget with that owner, which declares a gang of pods of that owner."""
        budget = {
            "metadata": self._metadata(
                {annotations.START_DEADLINE_SECONDS: "3"}, owner=_owner(life, life.owner_uid)
            ),
            "spec": {
                "minAvailable": self._rng.randint(1, 9),
                "selector": {"matchLabels": {"app": life.name}},
            },
        }
        self._etcd.create(DISRUPTION_BUDGETS, budget, by=_USER)

    def _take_name(self, life: Life) -> None:
        """A group with the name of another namespace's group, and a pod in it."""
        seconds = str(self._rng.randint(1, 3))
        notes = {
            annotations.START_DEADLINE_SECONDS: seconds,
            annotations.DEGRADED_GRACE_SECONDS: seconds,
        }
        metadata = self._metadata(notes, owner=_owner(life, life.owner_uid)) | {"name": life.name}
        resource = self._rng.choice(GROUPS)
        group = {"metadata": metadata, "spec": {"minMember": 9}, "status": {}}
        self._etcd.create(resource, group, by=_USER)
        self._pod({annotations.GROUP_NAME: life.name}, scheduler="volcano")

    def _write_any_uid(self, _: Life) -> None:
        """A pod whose owner's UID is no UID."""
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}
        self._pod(
            {annotations.GROUP_MIN_MEMBER: str(self._rng.randint(1, 2))},
            owner=owner | {"uid": self._rng.choice(UIDS)},
        )

    def _ask_for_everything(self, life: Life) -> None:
        """A group of one small pod that reserves all nodes for as long as it may."""
        notes = {annotations.RESERVE_SECONDS: _SECONDS, annotations.HOLD_SECONDS: _SECONDS}
        metadata = self._metadata(notes)
        group = {
            "metadata": metadata,
            "spec": {"minMember": 1, "minResources": {"cpu": "1000"}, "queue": life.plan.queue},
            "status": {},
        }
        self._etcd.create(PODGROUPS_VOLCANO, group, by=_USER)
        self._pod({annotations.GROUP_NAME: metadata["name"]}, scheduler="volcano")

    def _be_verbose(self, _: Life) -> None:
        """Pods with resources that no node has, and with more text than there is room for."""
        more = {f"evil.example/{number}": "1" for number in range(_RESOURCES)}
        notes = {annotations.TASK_SPEC: _LABEL, annotations.QUEUE_NAME: _TEXT, "note": _TEXT}
        self._pod(notes, requests=more)

    def _change_owner(self, life: Life) -> None:
        """One of its pods belongs to another gang's owner from now on."""
        pods = [obj for resource, obj in self._own() if resource == PODS]
        if pods:
            owners = [_owner(life, life.owner_uid)]
            self._etcd.change(
                PODS,
                self._rng.choice(pods),
                lambda now: with_(now, metadata={"ownerReferences": owners}),
                by=_USER,
            )

    def _delete_something(self, _: Life) -> None:
        own = self._own()
        if own:
            resource, obj = self._rng.choice(own)
            delete(self._etcd, resource, obj, by=_USER)

    # ---- objects

    def _metadata(self, notes: dict[str, str], *, owner: Obj | None = None) -> Obj:
        self._made += 1
        metadata: Obj = {
            "name": f"evil-{self._made}",
            "namespace": NAMESPACE,
            "annotations": notes | {"simulation/runs-ms": str(_RUNS_MS)},
        }
        return metadata if owner is None else metadata | {"ownerReferences": [owner]}

    def _pod(
        self,
        notes: dict[str, str],
        *,
        owner: Obj | None = None,
        scheduler: str = "kube-batch",
        requests: dict[str, str] | None = None,
    ) -> None:
        cpu = {"cpu": f"{self._rng.choice((100, 500))}m"}
        pod: dict[str, Any] = {
            "metadata": self._metadata(notes, owner=owner),
            "spec": {
                "schedulerName": scheduler,
                "priority": 0,
                "containers": [{"name": "main", "resources": {"requests": cpu | (requests or {})}}],
            },
            "status": {"phase": "Pending"},
        }
        self._etcd.create(PODS, pod, by=_USER)


def _owner(life: Life, uid: str) -> Obj:
    kind = life.plan.owner or "Job"
    reference = {"apiVersion": OWNERS[kind], "kind": kind, "name": life.name, "uid": uid}
    return reference | {"controller": True}


def crosses_namespaces(record: object) -> str:
    """What a decision does to two namespaces although it is one gang's business; "" if nothing.

    Preemption and reclaim evict pods of any namespace; a gang is bound and released in its own.
    """
    if isinstance(record, GangDecision):
        bound = sorted({one.namespace for one in record.bindings})
        return f"binds pods of {bound} as one gang" if len(bound) > 1 else ""
    if isinstance(record, EvictionDecision) and not record.bindings:
        taken = sorted({one.namespace for one in record.victims})
        return f"releases pods of {taken} as one gang" if len(taken) > 1 else ""
    return ""
