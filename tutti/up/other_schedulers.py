"""Checks the cluster before services start: whether it can be reached, and which other schedulers
are active.

All requests are sent concurrently. Resources that may not be listed are reported once and skipped:
an administrator may have good reasons to withhold these rights.

A scheduler name has one owner: two schedulers on one name bind each other's pods. Another scheduler
is

* a recently renewed Lease named after one of our scheduler names (kube-scheduler's for
  `default-scheduler`), or a ConfigMap used as one (kube-batch),
* a Deployment with available replicas whose name or flags show that it serves one,
* the Lease of another `tutti up`,
* the Lease or Deployment of a controller that creates PodGroups for bare pods, as ours does.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final, Literal, TypeVar

import msgspec

from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, Forbidden, MalformedAnswer, TransportError, Unauthorized
from shared.kube.leases import VOLCANO_CONTROLLERS, Lease, LeaseSpec, aware, server_time
from shared.kube.objects import KubeObject
from shared.kube.resources import CONFIGMAPS, DEPLOYMENTS, LEASES, Resource
from tutti.api.failures import Refusal
from tutti.api.fetches import list_typed
from tutti.api.objects import field, number, text

#: The Lease of `tutti up`.
OWN_LEASE: Final = ("kube-system", "tutti")
#: kube-batch locked a ConfigMap by this annotation.
LOCK_ANNOTATION: Final = "control-plane.alpha.kubernetes.io/leader"

#: Volcano's controllers; one of them creates PodGroups for bare pods.
_PODGROUP_LEASES: Final = frozenset({VOLCANO_CONTROLLERS})
_PODGROUP_DEPLOYMENTS: Final = frozenset({"volcano-controllers"})
#: Default scheduler names of programs, by a part of the name of their image or Deployment.
_DEFAULT_NAMES: Final = {
    "vc-scheduler": "volcano",
    "volcano-scheduler": "volcano",
    "kube-batch": "kube-batch",
    "kai-scheduler": "kai-scheduler",
    "yunikorn:scheduler": "yunikorn",
    "yunikorn-scheduler": "yunikorn",
    "koord-scheduler": "koord-scheduler",
    "scheduler-plugins-scheduler": "scheduler-plugins-scheduler",
}
#: Scheduler names of Leases that have another name. kube-scheduler mostly has no Deployment.
_NAMES_OF_LEASES: Final = {"kube-scheduler": "default-scheduler"}
_NAME_FLAG: Final = "--scheduler-name"

Holding = Literal["name", "suite", "podgroups"]


class Deployment(KubeObject, frozen=True, kw_only=True):
    """apps/v1 Deployment, as the API server sent it."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class ReferenceObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that were read, and the cluster's time; why others could not be read."""

    now: datetime
    leases: Sequence[Lease] = ()
    #: ConfigMaps.
    locks: Sequence[KubeObject] = ()
    deployments: Sequence[Deployment] = ()
    unreadable: tuple[str, ...] = ()


class OtherScheduler(msgspec.Struct, frozen=True, kw_only=True):
    """Another active scheduler.

    Attributes:
        holding: A scheduler name, all of Tutti (another `tutti up`), or bare pods' PodGroups.
        name: The scheduler name; "" for other holdings.
        description: Its identity and start, for messages.
    """

    holding: Holding
    name: str = ""
    description: str


def find_other_schedulers(
    seen: ReferenceObjects, scheduler_names: Iterable[str], is_ours: Callable[[str], bool]
) -> list[OtherScheduler]:
    """All other active schedulers, those with a Lease first. `is_ours`: whether a holder of the
    Lease of `tutti up` is this process, or known to be dead.
    """
    names = frozenset(scheduler_names)
    others = [_by_lease(lease, seen.now, names, is_ours) for lease in seen.leases]
    others += [_by_lock(lock, seen.now, names) for lock in seen.locks]
    active = [other for other in others if other is not None]
    for deployment in seen.deployments:
        active.extend(_by_deployment(deployment, names))
    return active


def _by_lease(
    lease: Lease, now: datetime, names: frozenset[str], is_ours: Callable[[str], bool]
) -> OtherScheduler | None:
    meta, spec = lease.metadata, lease.spec
    if not spec.lives(now):
        return None
    description = f"Lease {meta.namespace}/{meta.name} ({_holder(spec, now)})"
    if (meta.namespace, meta.name) == OWN_LEASE:
        ours = is_ours(spec.holder_identity)
        return None if ours else OtherScheduler(holding="suite", description=description)
    served = _NAMES_OF_LEASES.get(meta.name, meta.name)
    if served in names:
        return OtherScheduler(holding="name", name=served, description=description)
    if meta.name in _PODGROUP_LEASES:
        return OtherScheduler(holding="podgroups", description=description)
    return None


def _by_lock(lock: KubeObject, now: datetime, names: frozenset[str]) -> OtherScheduler | None:
    meta = lock.metadata
    if meta.name not in names:
        return None
    try:
        spec = msgspec.json.decode(meta.annotations.get(LOCK_ANNOTATION, "{}"), type=LeaseSpec)
    except msgspec.MsgspecError:
        # Not a leader election record.
        return None
    if not spec.lives(now):
        return None
    description = f"ConfigMap {meta.namespace}/{meta.name} ({_holder(spec, now)})"
    return OtherScheduler(holding="name", name=meta.name, description=description)


def _by_deployment(deployment: Deployment, names: frozenset[str]) -> list[OtherScheduler]:
    meta, available = deployment.metadata, number(deployment.status, "availableReplicas")
    if available <= 0:
        return []
    since = f" since {_instant(meta.creation_timestamp)}" if meta.creation_timestamp else ""
    pods = "one pod runs" if available == 1 else f"{available} pods run"
    description = f"Deployment {meta.namespace}/{meta.name} ({pods}, it exists{since})"
    if meta.name in _PODGROUP_DEPLOYMENTS:
        return [OtherScheduler(holding="podgroups", description=description)]
    served = sorted(served_names(deployment) & names)
    return [OtherScheduler(holding="name", name=name, description=description) for name in served]


def served_names(deployment: Deployment) -> frozenset[str]:
    """The scheduler names that a Deployment serves, as far as its name, images and flags show."""
    served: set[str] = set()
    for container in field(deployment.spec, "template.spec.containers", []):
        words = [*field(container, "command", []), *field(container, "args", [])]
        served |= _explicit_names(words) or _default_names(text(container, "image"))
    # A wrapper script may hide the flags.
    return frozenset(served or _default_names(deployment.metadata.name))


def _explicit_names(words: list[str]) -> set[str]:
    """The values of all `--scheduler-name X` and `--scheduler-name=X,Y`."""
    values = [word.partition("=")[2] for word in words if word.startswith(f"{_NAME_FLAG}=")]
    values += [value for flag, value in pairwise(words) if flag == _NAME_FLAG]
    return {name.strip() for value in values for name in value.split(",") if name.strip()}


def _default_names(text: str) -> set[str]:
    base = text.rpartition("/")[2]
    return {name for part, name in _DEFAULT_NAMES.items() if part in base}


def _holder(spec: LeaseSpec, now: datetime) -> str:
    since = f" since {_instant(spec.acquire_time)}" if spec.acquire_time else ""
    return f"held by {spec.holder_identity}{since}, renewed {max(0.0, spec.age_s(now)):.0f} s ago"


def _instant(instant: datetime) -> str:
    return aware(instant).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def refusal(others: Iterable[OtherScheduler]) -> str:
    """Why `tutti up` refuses to start, with the remedies: a line per scheduler; "" if there is
    none.
    """
    lines: list[str] = []
    for other in others:
        match other.holding:
            case "name":
                lines.append(
                    f"scheduler name {other.name} is served by {other.description}: stop it, use "
                    "other names with --scheduler-name, or start beside it with --take-over"
                )
            case "suite":
                lines.append(
                    f"another tutti up runs on this cluster: {other.description}: stop it or start "
                    "beside it with --take-over"
                )
            case "podgroups":
                pass
    return "\n".join(lines)


_REACH_TIMEOUT_S: Final = 10.0

T = TypeVar("T", bound=KubeObject)


async def check_cluster(client: KubeClient, scheduler_names: Iterable[str]) -> ReferenceObjects:
    """Read the objects that `other_schedulers` needs.

    Raises:
        Refusal: The API server does not answer, or refuses our credentials.
    """
    now = await _reach(client)
    unreadable: list[str] = []
    # Every node has a Lease there, renewed every 10 s; they are many and irrelevant.
    elsewhere = "metadata.namespace!=kube-node-lease"
    async with asyncio.TaskGroup() as group:
        leases = group.create_task(
            _list(client, LEASES, Lease, elsewhere, unreadable), name="leases"
        )
        deployments = group.create_task(
            _list(client, DEPLOYMENTS, Deployment, "", unreadable), name="deployments"
        )
        locks = [
            group.create_task(
                _list(client, CONFIGMAPS, KubeObject, f"metadata.name={name}", unreadable),
                name=f"lock-{name}",
            )
            for name in scheduler_names
        ]
    return ReferenceObjects(
        now=now,
        leases=leases.result(),
        deployments=deployments.result(),
        locks=[lock for task in locks for lock in task.result()],
        unreadable=tuple(sorted(set(unreadable))),
    )


async def _reach(client: KubeClient) -> datetime:
    """Request the version; returns the API server's time, which is close to the clocks that write
    Leases; a laptop's clock may be wrong.
    """
    server = client.credentials.server
    try:
        reply = await client.send("GET", "/version", timeout_s=_REACH_TIMEOUT_S)
    except TransportError as error:
        raise Refusal(f"cannot reach the cluster at {server}: {error}") from None
    if reply.status == 401:
        raise Refusal(f"{server} does not know these credentials (401)")
    if reply.status >= 500:
        raise Refusal(f"{server} answers {reply.status}")
    return server_time(reply.headers) or datetime.now(UTC)


async def _list(
    client: KubeClient, resource: Resource, kind: type[T], fields: str, unreadable: list[str]
) -> Sequence[T]:
    try:
        return await list_typed(client, resource, kind, field_selector=fields)
    except (Forbidden, Unauthorized):
        unreadable.append(f"no right to list {resource.title}")
    except (ApiError, MalformedAnswer, TransportError) as error:
        unreadable.append(f"cannot list {resource.title}: {error}")
    return []
