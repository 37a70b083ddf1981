"""Interned pod shapes: each distinct shape is decoded once and becomes a small integer.

A pod carries its shape as bytes. Pods with equal bytes are interchangeable for every rule that
looks at nodes. Where terms of other pods select them by their labels they are not: an entry is a
shape and a *profile*, which of these selectors match (`pairwise.terms`). It is empty in a cluster
in which no term selects pods by labels.
"""

from typing import Final

import msgspec
import numpy as np

from services.gang_planner.core.state.columns import Ints, ResourceIndex, requested
from services.gang_planner.core.state.inter_pod.terms import Profile, ShapeTerms, Terms
from shared.model.objects import Shape

PODS: Final = "pods"
_UNREADABLE: Final = Shape(requests=((PODS, 1),), unsupported=("its shape cannot be decoded",))


class ShapeEntry:
    """One shape, with its requests as rows and amounts. Only positive requests are kept: nothing
    asks for zero.
    """

    __slots__ = (
        "amounts",
        "attached",
        "best_effort",
        "by_row",
        "column",
        "encoded",
        "id",
        "order",
        "pairs",
        "pairwise",
        "profile",
        "rated",
        "rows",
        "shape",
        "tallies",
        "terms",
    )

    def __init__(
        self,
        shape_id: int,
        encoded: bytes,
        shape: Shape,
        resources: ResourceIndex,
        profile: Profile = (),
        terms: ShapeTerms | None = None,
    ) -> None:
        self.id = shape_id
        self.encoded = encoded
        self.shape = shape
        self.pairs: tuple[tuple[int, int], ...] = tuple(
            (resources.row(name), requested(amount))
            for name, amount in shape.requests
            if amount > 0
        )
        self.by_row: dict[int, int] = dict(self.pairs)
        self.rows: Ints = np.array([row for row, _ in self.pairs], dtype=np.int64)
        self.amounts: Ints = np.array([amount for _, amount in self.pairs], dtype=np.int64)
        #: Amounts standing, to be multiplied with a row of counts.
        self.column: Ints = self.amounts.reshape(-1, 1)
        #: Has claims, to volumes or devices, or disks without a claim.
        self.attached: bool = bool(shape.claims or shape.device_claims or shape.disks)
        #: What scores look at: members with a claim each are rated as one shape.
        self.rated: bytes = encoded
        if self.attached:
            without = msgspec.structs.replace(
                shape, claims=(), own_claims=(), device_claims=(), disks=()
            )
            self.rated = msgspec.msgpack.encode(without)
        #: Asks for nothing but its place in the node's count of pods.
        self.best_effort: bool = all(name == PODS or not amount for name, amount in shape.requests)
        self.profile = profile
        #: Terms about other pods; None: it has none.
        self.terms = terms
        #: Decides between shapes that are equally good, whatever the order of arrival: numbers in
        #: a profile follow it, and are not compared.
        self.order: bytes = encoded
        #: What one pod adds to the counts of `pairwise.counts`: (tally, amount).
        self.tallies: tuple[tuple[int, int], ...] = tuple((number, 1) for number in profile)
        if terms is not None:
            self.tallies += tuple(sorted(terms.carried.items()))
        #: Rules between pods may concern it.
        self.pairwise: bool = terms is not None or bool(profile)


class ShapeTable:
    """All shapes seen; ids are never reused."""

    def __init__(self, resources: ResourceIndex, terms: Terms | None = None) -> None:
        self.resources = resources
        self.entries: list[ShapeEntry] = []
        #: What terms of shapes ask for.
        self.terms = terms if terms is not None else Terms()
        self._ids: dict[bytes, ShapeEntry] = {}
        self._profiled: dict[tuple[bytes, Profile], ShapeEntry] = {}
        self._decoder = msgspec.msgpack.Decoder(Shape)
        #: Reserved units of groups, remembered by `queueing.min_resources`.
        self.units: dict[tuple[object, ...], tuple[tuple[str, int, int], ...]] = {}

    def copy(self) -> "ShapeTable":
        """A table that knows all of these, and grows on its own."""
        other = ShapeTable(self.resources, self.terms.copy())
        other.entries = list(self.entries)
        other._ids = dict(self._ids)
        other._profiled = dict(self._profiled)
        other.units = dict(self.units)
        return other

    def intern(self, encoded: bytes, profile: Profile = ()) -> ShapeEntry:
        """The entry of a shape; bytes that are none become a shape that is never bound."""
        if profile:
            entry = self._profiled.get((encoded, profile))
            if entry is None:
                entry = self.make(len(self.entries), encoded, profile)
                self._profiled[encoded, profile] = entry
                self.entries.append(entry)
            return entry
        entry = self._ids.get(encoded)
        if entry is None:
            entry = self.make(len(self.entries), encoded)
            self._ids[encoded] = entry
            self.entries.append(entry)
        return entry

    def make(self, shape_id: int, encoded: bytes, profile: Profile = ()) -> ShapeEntry:
        """An entry that is not kept: for questions, which must not make the table grow."""
        try:
            shape = self._decoder.decode(encoded)
        except (msgspec.DecodeError, msgspec.ValidationError):
            shape = _UNREADABLE
        terms = self.terms.read(shape)
        entry = ShapeEntry(shape_id, encoded, shape, self.resources, profile, terms)
        if profile:
            entry.order = encoded + self.terms.description(profile)
        return entry
