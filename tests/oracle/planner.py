"""The same question to our own reader and planner: JSON objects in, nodes out."""

import json
from typing import Any, Final

import msgspec

from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.gangs import Gang
from shared.contracts.decisions import GangDecision
from shared.dialects.discovery import kinds
from shared.dialects.protocol import Kind, ReadingContext
from shared.kube.decoding import KindDecoder
from shared.model.objects import Pod
from tests.oracle.scheduler import Cluster
from tests.services.gang_planner.core.inside import session_of, state_of
from tests.services.gang_planner.core.scene import Scene, make_group

#: Our name among schedulers here; pods on nodes have another one's.
SCHEDULER: Final = "tutti"
_GROUP: Final = "scheduling.k8s.io/group-name"
_CONTEXT: Final = ReadingContext(scheduler_names=frozenset({SCHEDULER}))
_KINDS: Final[dict[str, Kind]] = {
    kind.resource.plural: kind for kind in kinds() if "volcano" not in kind.resource.group
}
_DECODERS: Final = {plural: KindDecoder(kind.decoded) for plural, kind in _KINDS.items()}


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What our planner makes of a pod."""

    #: How many such pods each node holds, by name; nodes with none are left out.
    holds: dict[str, int]
    #: Fields that it cannot judge: it never binds such a pod.
    unsupported: tuple[str, ...]
    #: The node that it decides for; "": none.
    decided: str
    #: The verdict's sentence while it waits.
    sentence: str
    #: Driver, pool and name of the devices that it decides for.
    devices: tuple[tuple[str, str, str], ...] = ()


def reads(plural: str) -> bool:
    """Whether any dialect reads this kind."""
    return plural.lower() in _KINDS


def judge(cluster: Cluster, pod: dict[str, Any]) -> Judged:
    """Ask the planner, with Volcano's default policies, where this pod may run, then to decide."""
    scene = Scene()
    for plural, objects in cluster.items():
        for one in objects:
            found = _read(plural, one)
            if found is not None:
                scene.put(found)
    metadata = {**pod["metadata"], "annotations": {_GROUP: "asked"}}
    spec = {**pod["spec"], "schedulerName": SCHEDULER}
    pending = _read("pods", {**pod, "metadata": metadata, "spec": spec})
    assert isinstance(pending, Pod)
    scene.put(make_group("asked", 1, namespace=pending.namespace), pending)
    planner: Planner = scene.planner
    state_of(planner).extended_resources.count_devices()
    gang = _gang(planner)
    entry = gang.members[pending.uid].shape
    fits, names = session_of(planner).fits, state_of(planner).nodes.names
    # Counts alone are of what might be placed together with the rest of a gang.
    holds = {
        names[slot]: int(count)
        for slot, count in enumerate(fits.counts(entry))
        if count and fits.takes(entry, slot)
    }
    scene.settle()
    decided = [one for _, one in scene.decisions if isinstance(one, GangDecision)]
    reasons = [one.why for one in scene.published if one.name == "asked" and one.why is not None]
    return Judged(
        holds={} if entry.shape.unsupported else holds,
        unsupported=entry.shape.unsupported,
        decided=decided[0].bindings[0].node if decided else "",
        sentence=reasons[-1].sentence if reasons and not decided else "",
        devices=tuple(
            (driver, pool, device)
            for one in (decided[0].devices if decided else ())
            for _, driver, pool, device in one.devices
        ),
    )


def _gang(planner: Planner) -> Gang:
    return next(one for one in state_of(planner).gangs.gangs.values() if one.name == "asked")


def _read(plural: str, one: dict[str, Any]) -> Any:
    kind = _KINDS.get(plural.lower())
    if kind is None:
        return None
    found = _DECODERS[plural.lower()].object(json.dumps(one).encode())
    return kind.neutral_object(found, _CONTEXT)
