"""The table of RBAC rights that dialects bring, generated from their kinds."""

from typing import Final, Literal, TypeAlias

import msgspec

from shared.dialects.discovery import group_resources, kinds
from shared.kube.resources import Resource

Service: TypeAlias = Literal["admission-webhook", "controller", "watcher"]

_READ: Final = ("list", "watch")
#: A group that a pod names; and if there is none, the names that its author may have meant.
_LOOK_UP: Final = ("get", "list")


class Right(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Verbs that a service needs on a resource or its subresource."""

    service: Service
    group: str
    #: As in a rule of RBAC: "podgroups" or "podgroups/status".
    resource: str
    verbs: tuple[str, ...]


def rights() -> tuple[Right, ...]:
    """The rights of the watcher to read, of the status controller to patch, and of the webhook to
    look up groups; sorted, without duplicates.
    """
    table: set[Right] = {
        _right("admission-webhook", resource, "", _LOOK_UP) for resource in group_resources()
    }
    for kind in kinds():
        table.add(_right("watcher", kind.resource, "", _READ))
        if kind.status is None:
            continue
        # The verdict's annotation is always written to the main resource.
        table.add(_right("controller", kind.resource, "", ("get", "patch")))
        if kind.status.at:
            table.add(_right("controller", kind.resource, kind.status.at, ("patch",)))
    return tuple(sorted(table))


def _right(
    service: Service,
    resource: Resource,
    subresource: str,
    verbs: tuple[str, ...],
) -> Right:
    name = f"{resource.plural}/{subresource}" if subresource else resource.plural
    return Right(service=service, group=resource.group, resource=name, verbs=verbs)
