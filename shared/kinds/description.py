"""The fields of a CRD other than its schema."""

from typing import Literal

import msgspec


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`; one of priority 1 appears only with `-o wide`."""

    name: str
    type: Literal["string", "integer", "date"]
    json_path: str
    priority: int = 0


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """The CRD of one kind; `struct` defines its schema and, by its docstring, its description."""

    struct: type[msgspec.Struct]
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    #: Whether `status` is written only through the `/status` subresource.
    status_subresource: bool = True
    #: Installed only on request: kubectl would resolve its plural to it instead of a current kind.
    opt_in: bool = False
    #: Annotations of the CRD in addition to Tutti's own.
    annotations: dict[str, str] = {}

    @property
    def crd_name(self) -> str:
        """`metadata.name` of the CRD."""
        return f"{self.plural}.{self.group}"
