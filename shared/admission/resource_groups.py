"""Resource groups of the admission configuration file: scheduler, tolerations, labels and affinity
for the pods of a namespace, or for pods with an annotation.

The file has Volcano's format (`--admission-conf`): YAML with the list `resourceGroups`. A pod gets
the values of the first group that it belongs to.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from shared.admission.parts import as_object

#: The pod annotation that names a group without an `object`.
GROUP_ANNOTATION: Final = "volcano.sh/resource-group"


class BadConfiguration(Exception):
    """The admission configuration file is invalid; the message names the place and the reason. The
    previous configuration stays in force.
    """


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A group's pods: those of these namespaces, or with one of these `key: value`."""

    key: Literal["namespace", "annotation"]
    value: tuple[str, ...] = ()


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_group: str
    object: Membership | None = None
    scheduler_name: str = ""
    tolerations: tuple[dict[str, Any], ...] = ()
    labels: dict[str, str] = {}
    affinity: str = ""

    def holds(self, namespace: str, annotations: Mapping[str, Any]) -> bool:
        if self.object is None:
            return annotations.get(GROUP_ANNOTATION) == self.resource_group
        if self.object.key == "namespace":
            return namespace in self.object.value
        return any(annotations.get(key) == value for key, value in self.annotations())

    def annotations(self) -> list[tuple[str, str]]:
        """The annotations that make a pod a member; [] for a group of namespaces."""
        if self.object is None or self.object.key != "annotation":
            return []
        pairs = (text.partition(":") for text in self.object.value)
        return [(key.strip(), value.strip()) for key, _, value in pairs]

    def node_affinity(self) -> dict[str, Any]:
        """The affinity, which the file has as JSON; {} for none."""
        affinity: object = msgspec.json.decode(self.affinity.encode()) if self.affinity else {}
        return as_object(affinity) or {}


ResourceGroups = tuple[ResourceGroup, ...]


def membership_expression(groups: ResourceGroups) -> str:
    """CEL that is true of a pod that belongs to any of the groups, and of no other."""
    namespaces: list[str] = []
    annotations: list[tuple[str, str]] = []
    for group in groups:
        if group.object is None:
            annotations.append((GROUP_ANNOTATION, group.resource_group))
        elif group.object.key == "namespace":
            namespaces += group.object.value
        annotations += group.annotations()
    given = "object.metadata.annotations"
    matches = [
        f"({_literal(key)} in {given} && {given}[{_literal(key)}] == {_literal(value)})"
        for key, value in annotations
    ]
    terms = [f"request.namespace in [{', '.join(map(_literal, namespaces))}]"] if namespaces else []
    terms += [f"(has({given}) && ({' || '.join(matches)}))"] if matches else []
    return " || ".join(terms) or "false"


def _literal(text: str) -> str:
    """A CEL string literal; CEL accepts JSON's."""
    return msgspec.json.encode(text).decode()


class _File(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_groups: tuple[ResourceGroup, ...] | None = None


def read_groups(content: object) -> ResourceGroups:
    """The groups in the decoded YAML of a file.

    Raises:
        BadConfiguration: The content is invalid; the message names the place.
    """
    if content is None:
        return ()
    try:
        groups = msgspec.convert(content, _File).resource_groups or ()
    except msgspec.ValidationError as error:
        raise BadConfiguration(str(error)) from None
    for index, group in enumerate(groups):
        try:
            group.node_affinity()
        except msgspec.DecodeError as error:
            where = f"resourceGroups[{index}].affinity"
            raise BadConfiguration(f"{where}: must be a JSON object: {error}") from None
    return groups
