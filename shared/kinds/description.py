"""What a CRD says beside its schema."""

from typing import Literal

import msgspec


class Column(msgspec.Struct, frozen=True):
    """A column that `kubectl get` prints; priority 1 only with `-o wide`."""

    name: str
    type: Literal["string", "integer", "date"]
    json_path: str
    priority: int = 0


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """One kind as its CRD describes it; `struct` gives the schema and, by its docstring, the
    description.
    """

    struct: type[msgspec.Struct]
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    #: Whether `/status` is written apart from the rest.
    status_subresource: bool = True
    #: Installed only when asked for: kubectl would find its plural before a kind of today's.
    opt_in: bool = False
    #: What the CRD must carry beside our own annotations.
    annotations: dict[str, str] = {}

    @property
    def crd_name(self) -> str:
        """The name of its CRD, which is the stem of its file too."""
        return f"{self.plural}.{self.group}"
