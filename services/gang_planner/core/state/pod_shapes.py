"""Interned pod shapes: each distinct shape is decoded once and gets a small integer id.

A pod carries its shape as bytes. Pods with equal bytes are interchangeable for all rules about
nodes, but terms of other pods may select them by labels. Therefore an entry is a shape with a
*profile*: the selectors that match the pod (`inter_pod.terms`). The profile is empty if no term
in the cluster selects the pod.
"""

from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from services.gang_planner.core.state.columns import Ints, ResourceIndex, add_amounts, requested
from services.gang_planner.core.state.devices.demand import claim_keys
from services.gang_planner.core.state.inter_pod.terms import Profile, ShapeTerms, Terms
from shared.model.objects import PodDevices, Shape

if TYPE_CHECKING:
    from services.gang_planner.core.state.claim_ledger import Key

PODS: Final = "pods"
_UNREADABLE: Final = Shape(requests=((PODS, 1),), unsupported=("its shape cannot be decoded",))


class ShapeEntry:
    """One shape, with its positive requests as rows and amounts."""

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
        #: Amounts as a column vector, to be multiplied with a row of counts.
        self.column: Ints = self.amounts.reshape(-1, 1)
        #: Whether it has claims to volumes or devices, or disks without a claim.
        self.attached: bool = bool(shape.claims or shape.device_claims or shape.disks)
        #: Bytes of the names of its claims; not of those that binders make.
        self.claim_bytes: int = sum(
            len(name) for name in (*shape.claims, *shape.device_claims) if isinstance(name, str)
        )
        #: Its ResourceClaims.
        self.device_keys: tuple[Key, ...] = tuple(claim_keys(shape))
        #: UIDs of pods whose extended resources are among these.
        self.device_pods: tuple[str, ...] = tuple(
            claim.pod_uid for claim in shape.device_claims if isinstance(claim, PodDevices)
        )
        #: Shape without claims, as the key of cached scores: members with a claim each share it.
        self.rated: bytes = encoded
        if self.attached:
            without = msgspec.structs.replace(
                shape, claims=(), own_claims=(), device_claims=(), disks=()
            )
            self.rated = msgspec.msgpack.encode(without)
        #: Key of cached counts of pods that fit on nodes.
        self.counted: Hashable = encoded
        #: Shapes of the pods that it stands for; (): it is the shape of pods. See `stand_in`.
        self.alike: tuple[ShapeEntry, ...] = ()
        #: Whether it requests nothing except a pod slot.
        self.best_effort: bool = all(name == PODS or not amount for name, amount in shape.requests)
        self.profile = profile
        #: Inter-pod terms and spread constraints; None: none.
        self.terms = terms
        #: Sort key that breaks ties between shapes. It does not depend on the order of arrival, as
        #: the numbers of a profile do.
        self.order: bytes = encoded
        #: What one pod adds to `inter_pod.counts`: (tally, amount).
        self.tallies: tuple[tuple[int, int], ...] = tuple((number, 1) for number in profile)
        if terms is not None:
            self.tallies += tuple(sorted(terms.carried.items()))
        #: Whether one pod takes more of a node than amounts.
        self.beyond_amounts = bool(shape.host_ports or self.attached or self.tallies)
        #: Whether inter-pod rules may apply to it.
        self.pairwise: bool = terms is not None or bool(profile)
        #: Whether it takes nothing of a node beside amounts and devices of ResourceClaims.
        self.devices_only: bool = bool(shape.device_claims) and not (
            shape.claims or shape.disks or shape.host_ports or self.pairwise
        )


def stand_in(shapes: Sequence[ShapeEntry], counted: Hashable) -> ShapeEntry:
    """An entry that stands for pods with these shapes, which differ only in the names of their
    claims. Counts are numbers of such pods.

    It is in no table, and has the id of the first shape. `counted`: equal for entries that fit on
    the same nodes equally often.
    """
    entry = copy(shapes[0])
    entry.alike, entry.counted = tuple(shapes), counted
    return entry


class ShapeTable:
    """All known shapes; ids are never reused."""

    def __init__(self, resources: ResourceIndex, terms: Terms | None = None) -> None:
        self.resources = resources
        self.entries: list[ShapeEntry] = []
        #: Inter-pod terms of all shapes.
        self.terms = terms if terms is not None else Terms()
        self._ids: dict[bytes, ShapeEntry] = {}
        self._profiled: dict[tuple[bytes, Profile], ShapeEntry] = {}
        self._decoder = msgspec.msgpack.Decoder(Shape)
        #: Reserved units of groups, cached by `queueing.min_resources`.
        self.units: dict[tuple[object, ...], tuple[tuple[str, int, int], ...]] = {}

    def copy(self) -> "ShapeTable":
        other = ShapeTable(self.resources, self.terms.copy())
        other.entries = list(self.entries)
        other._ids = dict(self._ids)
        other._profiled = dict(self._profiled)
        other.units = dict(self.units)
        return other

    def sums(self, counts: Iterable[tuple[int, int]]) -> dict[int, int]:
        """What pods request together, by resource row; `counts`: shape id and number of pods."""
        sums: dict[int, int] = {}
        for shape_id, count in counts:
            add_amounts(sums, self.entries[shape_id].pairs, count)
        return sums

    def intern(self, encoded: bytes, profile: Profile = ()) -> ShapeEntry:
        """The entry of an encoded shape; undecodable bytes become a shape that is never bound."""
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
        """An entry that is not stored in the table, for checks of hypothetical pods."""
        try:
            shape = self._decoder.decode(encoded)
        except (msgspec.DecodeError, msgspec.ValidationError):
            shape = _UNREADABLE
        terms = self.terms.read(shape)
        entry = ShapeEntry(shape_id, encoded, shape, self.resources, profile, terms)
        if profile:
            entry.order = encoded + self.terms.description(profile)
        return entry
