"""The gang that an operator's object, or its namespace, asks for by `tutti.dev/gang: all`, as the
controllers make it. Pure.
"""

from typing import NamedTuple

import msgspec

from shared.contracts import annotations
from shared.dialects.owned_gangs import Owned, group_name, group_sizes, is_wanted, queue_for
from shared.dialects.owner_kinds import Part, owner_kind
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.protocol import VOLCANO, JsonObject
from shared.dialects.workload_sizes import ALL
from shared.kube.decoding import without_nulls
from shared.kube.objects import ObjectMeta, Pod
from shared.model.objects import PodGroup


class OwnerGang(NamedTuple):
    """The group of an object, or of the first of its replicas, and one pod of each part."""

    group: PodGroup
    pods: tuple[tuple[Part, Pod], ...]
    #: The number of such groups, and whether the object wants pods at present.
    gangs: int
    wanted: bool


def is_known_owner(api_version: str, kind: str) -> bool:
    """Whether objects of this kind may ask for a gang of their pods."""
    known = owner_kind(api_version, kind)
    return known is not None and known.parts is not None


def owner_gang(
    manifest: JsonObject, namespace: str, name: str, *, asked_by_default: bool
) -> OwnerGang | None:
    """The gang that an object asks for; None: it asks for none, or is of another kind.

    Args:
        manifest: The object.
        namespace: Its namespace.
        name: Its name.
        asked_by_default: Whether its namespace asks for gangs of such objects.

    Raises:
        ValueError: The object cannot be read; the message has the reason.
    """
    kind = owner_kind(str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))
    if kind is None or kind.parts is None:
        return None
    owner = msgspec.convert(without_nulls(manifest), kind.decoded, strict=False)
    default = ALL if asked_by_default else ""
    if owner.metadata.annotations.get(annotations.GANG, default) != ALL:
        return None
    uid = f"{kind.resource.kind.lower()}-{name}"
    owner = msgspec.structs.replace(
        owner, metadata=msgspec.structs.replace(owner.metadata, uid=uid, namespace=namespace)
    )
    owned = Owned(kind, owner)
    labels = {kind.part_label: "0"} if kind.part_label else {}
    group = group_name(owned, ObjectMeta(labels=labels))
    pods = tuple(
        (part, _pod(part, namespace, name, group))
        for part in kind.parts(owner)
        if part.least or part.expected
    )
    sizes = group_sizes(owned)
    return OwnerGang(
        group=PodGroup(
            uid=group,
            dialect=VOLCANO,
            namespace=namespace,
            name=group,
            resource_version=0,
            min_member=sizes.get("minMember", 0),
            min_task_member=tuple(sorted(sizes.get("minTaskMember", {}).items())),
            queue=queue_for(pods[0][1].metadata if pods else ObjectMeta(), (owned,)),
            priority_class=pods[0][1].spec.priority_class_name if pods else "",
        ),
        pods=pods,
        gangs=kind.gangs(owner),
        wanted=is_wanted(owned, group),
    )


def _pod(part: Part, namespace: str, name: str, group: str) -> Pod:
    """A pod of the part, which names the group unless its template declares a gang."""
    template = part.template
    title = f"{name}-{part.role}" if part.role else name
    given = template.metadata.annotations
    joined, _ = pod_vocabulary().references.read(template.metadata, template.spec, None)
    metadata = msgspec.structs.replace(
        template.metadata,
        name=title,
        namespace=namespace,
        uid=title,
        annotations=given if joined is not None else {**given, annotations.GROUP_NAME: group},
    )
    return Pod(metadata=metadata, spec=template.spec)
