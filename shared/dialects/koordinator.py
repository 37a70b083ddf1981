"""Gangs of Koordinator that pods declare in annotations, with a name and a minimum.

Gangs with the label of coscheduling have an object, and belong to the dialect `coscheduling`.
`waiting-time` is the time for which pods may wait on nodes for the rest of their gang: here the
time after which a gang that was bound in part is released. The mode has no counterpart, because a
gang is never bound in part by intention: `NonStrict` is treated as `Strict`. Gangs in `groups` are
to be admitted together, which is not supported: such a gang is not planned.
"""

from typing import Final

import msgspec

from shared.contracts.annotations import REPAIR_DEADLINE_SECONDS
from shared.dialects.pod_declared import declared_by, number_of_pods
from shared.dialects.protocol import Dialect, GroupReference, Membership
from shared.kinds.durations import duration_ms
from shared.kube.objects import ObjectMeta, PodSpec

NAME: Final = "koordinator"
_PREFIX: Final = "gang.scheduling.koordinator.sh/"
_GROUP: Final = f"{_PREFIX}name"
_MINIMUM: Final = f"{_PREFIX}min-available"
_GROUPS: Final = f"{_PREFIX}groups"
_WAITING: Final = f"{_PREFIX}waiting-time"

_decode: Final = msgspec.json.Decoder(list[str]).decode


def membership(metadata: ObjectMeta, spec: PodSpec) -> Membership | None:
    """The pod's gang; None when its name is empty."""
    del spec
    given = metadata.annotations
    name = given.get(_GROUP)
    if not name:
        return None
    minimum, errors = number_of_pods(metadata, _MINIMUM, least=0)
    objection = _groups_objection(given.get(_GROUPS, ""), f"{metadata.namespace}/{name}")
    if objection:
        errors += (f"metadata.annotations[{_GROUPS}]: {objection}",)
    waiting_s = (duration_ms(given.get(_WAITING, "")) or 0) // 1000
    return declared_by(
        metadata,
        name,
        dialect=NAME,
        min_member=minimum,
        settings=((REPAIR_DEADLINE_SECONDS, str(waiting_s)),) if waiting_s else (),
        errors=errors,
    )


def _groups_objection(text: str, own: str) -> str:
    """Why the list of gangs that are admitted together keeps this one from being planned; "": it
    does not.
    """
    if not text:
        return ""
    try:
        others = set(_decode(text)) - {own}
    except msgspec.MsgspecError as error:
        return str(error)
    return "gangs that are admitted together are not supported" if others else ""


DIALECT: Final = Dialect(
    name=NAME,
    precedence=36,
    references=(GroupReference(place="annotation", key=_GROUP, declared_by="Koordinator"),),
    membership=membership,
    self_declared=True,
    scope=NAME,
)
