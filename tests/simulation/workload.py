"""What users ask for in a run: one `Plan` per gang, drawn from the seed.

Sizes, dialects, owners, deadlines and mishaps are chosen so that a cluster of a few nodes is
crowded most of the time and every gang could be placed whole on the empty cluster.
"""

from random import Random
from typing import Any, Final, Literal

import msgspec

from shared.contracts import annotations
from shared.kube.resources import PODGROUPS_INCUBATOR, PODGROUPS_SIGS, PODGROUPS_VOLCANO, Resource
from tests.simulation.kube_api import BUDGET

OwnerKind = Literal["ReplicaSet", "TFJob", "Job", ""]
"""ReplicaSet: made again under new names, for nothing. TFJob: under the same names, for nothing.
Job: under new names, counted as a retry. "": it is not recreated."""

Mishap = Literal[
    "member_fails",
    "member_deleted",
    "gives_up",
    "scaled_down",
    "scaled_up",
    "resized",
    "group_again",
    "owner_deleted",
    "never_runs",
    "made_again",
]

OWNERS: Final[dict[OwnerKind, str]] = {
    "ReplicaSet": "apps/v1",
    "TFJob": "kubeflow.org/v1",
    "Job": "batch/v1",
}
GROUPS: Final[tuple[Resource, ...]] = (PODGROUPS_VOLCANO, PODGROUPS_INCUBATOR, PODGROUPS_SIGS)
#: On a pod: the status with which the policy refuses every binding of it.
POISON: Final = "simulation/poison"
#: A queue beside the default one; gangs reclaim from each other what their queues deserve.
OTHER_QUEUE: Final = "other"
#: On a pod: which of its gang's places it fills.
SLOT: Final = "simulation/slot"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One gang's life as its user means it; what becomes of it is the run's business."""

    name: str
    arrives_ms: int
    size: int
    minimum: int
    cpu_milli: int
    runs_ms: int
    #: The group's kind; None: pods of one owner, with the gang's size in an annotation.
    group: Resource | None
    owner: OwnerKind
    priority: int = 0
    #: "": the default one.
    queue: str = ""
    #: A disruption budget protects its pods.
    budget: bool = False
    #: Index of the member whose bindings a policy refuses, and with which status; -1: of none.
    poison: int = -1
    poison_status: int = 403
    #: After so long the policy is lifted; 0: never.
    heals_ms: int = 0
    settings: tuple[tuple[str, int], ...] = ()
    preflight: bool = False
    mishaps: tuple[tuple[Mishap, int], ...] = ()

    @property
    def loses_its_group(self) -> bool:
        """Whether its group is deleted and made again while it lives."""
        return any(kind in {"group_again", "made_again"} for kind, _ in self.mishaps)

    @property
    def is_of_job_set(self) -> bool:
        """Whether a JobSet makes it again as a whole."""
        return any(kind == "made_again" for kind, _ in self.mishaps)


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How large a run is."""

    gangs: int = 40
    #: Over which time they arrive.
    over_ms: int = 60_000
    nodes: int = 5
    node_cpu_milli: int = 6000


def draw(rng: Random, shape: Shape) -> list[Plan]:
    """The plans of one run."""
    plans = [_plan(rng, shape, number) for number in range(shape.gangs)]
    return [_perhaps_made_again(rng, plan) for plan in plans]


def _perhaps_made_again(rng: Random, plan: Plan) -> Plan:
    """Some gangs belong to a JobSet, which makes them again as a whole when a worker fails."""
    after_ms = rng.randint(500, 8_000)
    if rng.random() >= 0.15 or plan.group is None or plan.owner not in {"ReplicaSet", "TFJob"}:
        return plan
    return msgspec.structs.replace(plan, mishaps=(*plan.mishaps, ("made_again", after_ms)))


def _plan(rng: Random, shape: Shape, number: int) -> Plan:
    size = rng.choice((2, 2, 3, 3, 4, 5, 6))
    minimum = size if rng.random() < 0.75 else rng.randint(1, size)
    # A gang always fits the empty cluster: at most two members need one node.
    cpu_milli = rng.choice((500, 1000, 1500, 2000, 2500, 3000))
    owner: OwnerKind = rng.choice(
        ("ReplicaSet", "ReplicaSet", "TFJob", "TFJob", "TFJob", "Job", "")
    )
    group = rng.choice((*GROUPS, None)) if owner else rng.choice(GROUPS)
    poisoned = rng.random() < 0.10
    arrives_ms, runs_ms = rng.randrange(shape.over_ms), rng.randint(500, 12_000)
    return Plan(
        name=f"gang-{number}",
        arrives_ms=arrives_ms,
        size=size,
        minimum=minimum,
        cpu_milli=cpu_milli,
        runs_ms=runs_ms,
        group=group,
        owner=owner,
        priority=rng.choice((0, 0, 0, 10)),
        poison=rng.randrange(size) if poisoned else -1,
        poison_status=rng.choice((403, 422)),
        heals_ms=rng.choice((0, 8_000, 20_000)) if poisoned else 0,
        settings=(*_settings(rng), *_run_limit(runs_ms)) if group is not None else (),
        preflight=group is not None and rng.random() < 0.05,
        mishaps=_mishaps(rng),
        queue=rng.choice(("", "", "", OTHER_QUEUE)) if group is not None else "",
        budget=rng.random() < 0.05,
    )


def _settings(rng: Random) -> tuple[tuple[str, int], ...]:
    """Deadlines in seconds, shorter than the defaults so that a run sees them pass."""
    settings = [(annotations.REPAIR_DEADLINE_SECONDS, rng.choice((3, 5, 10)))]
    settings.append((annotations.HOLD_SECONDS, rng.choice((0, 2, 5, 10))))
    if rng.random() < 0.15:
        settings.append((annotations.START_DEADLINE_SECONDS, rng.choice((3, 6))))
    if rng.random() < 0.15:
        settings.append((annotations.DEGRADED_GRACE_SECONDS, rng.choice((2, 4))))
    return tuple(settings)


def _run_limit(runs_ms: int) -> tuple[tuple[str, int], ...]:
    """Half of the gangs state how long they run at most, in seconds. Those that lose members run
    longer, and are evicted at their limit. It is drawn from what was drawn before, so that the
    plans of known seeds are the same as without it.
    """
    if runs_ms % 2:
        return ()
    return ((annotations.RUN_LIMIT, runs_ms // 1_000 + 1 + runs_ms % 5),)


def _mishaps(rng: Random) -> tuple[tuple[Mishap, int], ...]:
    """Return the mishaps of a gang, and how long after its arrival they happen."""
    kinds: tuple[tuple[Mishap, float], ...] = (
        ("member_fails", 0.12),
        ("member_deleted", 0.12),
        ("gives_up", 0.03),
        ("scaled_down", 0.04),
        ("scaled_up", 0.04),
        ("resized", 0.03),
        ("group_again", 0.05),
        ("owner_deleted", 0.05),
        ("never_runs", 0.04),
    )
    return tuple((kind, rng.randint(50, 8_000)) for kind, share in kinds if rng.random() < share)


def group_manifest(plan: Plan, namespace: str, minimum: int) -> dict[str, Any]:
    """The group object."""
    notes = {key: str(value) for key, value in plan.settings}
    if plan.preflight:
        notes[annotations.PREFLIGHT] = "always"
    return {
        "metadata": {"name": plan.name, "namespace": namespace, "annotations": notes},
        "spec": {"minMember": minimum} | ({"queue": plan.queue} if plan.queue else {}),
        "status": {},
    }


def pod_manifest(
    plan: Plan, namespace: str, name: str, slot: int, *, owner_uid: str
) -> dict[str, Any]:
    """The pod that fills one place of the gang."""
    notes = {SLOT: str(slot)}
    if plan.group is not None:
        notes[annotations.GROUP_NAME] = plan.name
    else:
        notes[annotations.GROUP_MIN_MEMBER] = str(plan.minimum)
    if plan.budget:
        notes[BUDGET] = "spent"
    if slot == plan.poison:
        notes[POISON] = str(plan.poison_status)
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "annotations": notes}
    if plan.is_of_job_set:
        metadata["labels"] = {"jobset.sigs.k8s.io/jobset-name": plan.name}
    if plan.owner:
        metadata["ownerReferences"] = [
            {
                "apiVersion": OWNERS[plan.owner],
                "kind": plan.owner,
                "name": plan.name,
                "uid": owner_uid,
                "controller": True,
            }
        ]
    requests = {"cpu": f"{plan.cpu_milli}m"}
    return {
        "metadata": metadata,
        "spec": {
            # kube-batch's pods are gangs by their owner alone; Volcano's would get a PodGroup.
            "schedulerName": "volcano" if plan.group is not None else "kube-batch",
            "priority": plan.priority,
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Pending"},
    }
