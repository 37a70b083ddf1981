"""The table of RBAC rights that dialects bring, generated from their kinds."""

from typing import Final, Literal

import msgspec

from shared.dialects.discovery import kinds
from shared.kube.resources import Resource

_READ: Final = ("list", "watch")


class Right(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Verbs that a service needs on a resource or its subresource."""

    service: Literal["controller", "watcher"]
    group: str
    #: As in a rule of RBAC: "podgroups" or "podgroups/status".
    resource: str
    verbs: tuple[str, ...]


def rights() -> tuple[Right, ...]:
    """The rights of the watcher to read, and of the status controller to patch; sorted, without
    duplicates.
    """
    found: set[Right] = set()
    for kind in kinds():
        found.add(_right("watcher", kind.resource, "", _READ))
        if kind.status_at is None:
            continue
        # The verdict's annotation is always written to the main resource.
        found.add(_right("controller", kind.resource, "", ("get", "patch")))
        if kind.status_at:
            found.add(_right("controller", kind.resource, kind.status_at, ("patch",)))
    return tuple(sorted(found))


def _right(
    service: Literal["controller", "watcher"],
    resource: Resource,
    subresource: str,
    verbs: tuple[str, ...],
) -> Right:
    name = f"{resource.plural}/{subresource}" if subresource else resource.plural
    return Right(service=service, group=resource.group, resource=name, verbs=verbs)
