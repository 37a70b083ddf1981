"""Shared parts of all kinds: field types, rules for a field, and the other fields of a CRD."""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from shared.kube.objects import Int32, KubeStruct, LabelSelector
from shared.kube.resources import Resource

#: Keys in a field's schema that the CRD generator removes. REQUIRED adds the field to the parent's
#: required fields. BUILT_IN makes Kubernetes' own schema that of the field. SHALLOW replaces all
#: such schemas below the field by ones that preserve unknown fields.
REQUIRED: Final = "x-tutti-required"
BUILT_IN: Final = "x-tutti-built-in"
SHALLOW: Final = "x-tutti-shallow"

_DNS_LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
SUBDOMAIN_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_QUANTITY: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"


def always(text: str) -> str:
    """Default of a field that is encoded even with its default: an object's apiVersion and kind."""
    return msgspec.field(default_factory=lambda: text)


def rules(description: str = "", /, **schema: Any) -> Meta:
    """Describe a field and its schema rules, for the CRD only: decoding ignores them.

    Keyword arguments are the schema's keys in snake case (`max_length`, `min_items`, `list_type`,
    `map_type`), and: `cel`, x-kubernetes-validations as (rule, message) pairs; `required`,
    `built_in` and `shallow`, as `REQUIRED`, `BUILT_IN` and `SHALLOW` above; `required_fields`, the
    required fields of an object.
    """
    keys = {
        "max_length": "maxLength",
        "min_length": "minLength",
        "min_items": "minItems",
        "list_type": "x-kubernetes-list-type",
        "map_type": "x-kubernetes-map-type",
        "preserve": "x-kubernetes-preserve-unknown-fields",
        "required": REQUIRED,
        "built_in": BUILT_IN,
        "required_fields": "required",
        "shallow": SHALLOW,
    }
    extra = {keys.get(key, key): value for key, value in schema.items() if key != "cel"}
    if "cel" in schema:
        extra["x-kubernetes-validations"] = [
            {"rule": rule, "message": message} for rule, message in schema["cel"]
        ]
    return Meta(description=description or None, extra_json_schema=extra or None)


Count: TypeAlias = Annotated[Int32, rules(minimum=0)]
"""An int32 that is not negative."""

Quantity: TypeAlias = Annotated[
    str | int | float,
    rules(
        anyOf=[{"type": "integer"}, {"type": "string"}],
        pattern=_QUANTITY,
        **{"x-kubernetes-int-or-string": True},
    ),
]
"""A resource amount as JSON may hold it; `shared.kube.quantities` reads it."""

ResourceList: TypeAlias = dict[str, Quantity]

Tier: TypeAlias = Annotated[Int32, rules(format=None)]
"""An int32 whose CRD does not say so."""

Name: TypeAlias = Annotated[str, rules(max_length=63, pattern=_DNS_LABEL)]
"""A DNS label, or ""."""

PodTemplate: TypeAlias = Annotated[dict[str, Any], rules(built_in="PodTemplateSpec")]
"""A pod template as the user wrote it."""

ClaimTemplate: TypeAlias = Annotated[dict[str, Any], rules(built_in="PersistentVolumeClaimSpec")]
"""The spec of a claim as the user wrote it."""

Selector: TypeAlias = Annotated[LabelSelector, rules(built_in="LabelSelector")]


class NetworkTopology(KubeStruct, frozen=True, kw_only=True):
    """How close to each other the nodes of the gang must be in the network."""

    mode: Annotated[
        str,
        rules(
            "Whether the limit is required (hard) or preferred (soft).",
            enum=["hard", "soft"],
            default="hard",
        ),
    ] = ""
    highest_tier_allowed: Annotated[
        Tier | None,
        rules("The highest tier of a HyperNode that may contain all nodes of the gang.", minimum=0),
    ] = None
    highest_tier_name: Annotated[
        str, rules("The highest tier by name; mutually exclusive with highestTierAllowed.")
    ] = ""


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`; one of priority 1 appears only with `-o wide`."""

    name: str
    type: Literal["string", "integer", "date"]
    json_path: str
    priority: int = 0


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """The CRD of one kind; `struct` defines its schema and, by its docstring, its description."""

    struct: type[msgspec.Struct]
    resource: Resource
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    #: Whether `status` is written only through the `/status` subresource.
    status_subresource: bool = True
    #: Installed only on request: kubectl would resolve its plural to it instead of a current kind.
    opt_in: bool = False
    #: Annotations of the CRD in addition to Tutti's own.
    annotations: dict[str, str] = {}
