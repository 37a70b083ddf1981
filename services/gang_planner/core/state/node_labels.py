"""Node labels as columns of interned values, one column per key that any selector has named.

Value id 0 means that the node lacks the label. A column is computed from all nodes once and then
updated per changed node. Keys that no selector names cost nothing. Users choose the keys that
selectors name, so all columns are dropped when there are too many.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints, Slots, grown
from shared.model.objects import Node, Requirement

#: Key of the node's name, for `matchFields`; not a valid label key.
NAME_FIELD: Final = "\0metadata.name"
_ABSENT: Final = 0
#: Columns that are kept: 20 MB with 5,000 nodes. Clusters select nodes by some dozen keys.
KEYS_MAX: Final = 512
#: Instead of the id of a value: no node has the value.
_UNKNOWN: Final = -1


class LabelColumns:
    """Label values of all nodes, by key."""

    def __init__(self) -> None:
        self._value_ids: dict[str, int] = {}
        #: Value as a number for Gt and Lt, by value id; None if it is not a number.
        self._numbers: list[int | None] = [None]
        self._columns: dict[str, Ints] = {}
        #: Label keys of the nodes, by slot, and the number of nodes with each.
        self._keys_of: dict[int, tuple[str, ...]] = {}
        self._keys = Counter[str]()
        #: The column of every key that no node has.
        self._nowhere: Ints = np.zeros(1, dtype=np.int64)

    def known(self, key: str) -> bool:
        """Whether a node has the label, or the key is that of the nodes' names."""
        return key in self._keys or key == NAME_FIELD

    def put(self, slot: int, node: Node | None) -> None:
        """Update a slot after its node appeared, changed or left."""
        labels = dict(node.labels) if node is not None else {}
        self._count_keys(slot, tuple(labels))
        for key, column in self._columns.items():
            column = self._columns[key] = grown(column, slot + 1)
            column[slot] = self._id(self._value(key, node, labels))

    def column(self, key: str, nodes: Sequence[Node | None]) -> Ints:
        """Value ids of `key`, at least one per node in `nodes`; 0 where the label is absent."""
        column = self._columns.get(key)
        if column is None and not self.known(key):
            # Users make up keys: these cost neither time nor a column.
            self._nowhere = grown(self._nowhere, len(nodes))
            return self._nowhere
        if column is None:
            column = np.zeros(max(len(nodes), 1), dtype=np.int64)
            for slot, node in enumerate(nodes):
                labels = dict(node.labels) if node is not None else {}
                column[slot] = self._id(self._value(key, node, labels))
            if len(self._columns) >= KEYS_MAX:
                self._columns.clear()
            self._columns[key] = column
        return grown(column, len(nodes))

    def matches(
        self, requirement: Requirement, key: str, nodes: Sequence[Node | None], slots: Slots
    ) -> Bools:
        """One flag per node: whether it holds; never with an invalid operator or number."""
        values = self.column(key, nodes)[slots]
        match requirement.operator:
            case "In" | "NotIn":
                among: Bools = np.isin(values, self.ids(requirement.values))
                return among if requirement.operator == "In" else ~among
            case "Exists" | "DoesNotExist":
                absent: Bools = values == _ABSENT
                return absent if requirement.operator == "DoesNotExist" else ~absent
            case "Gt" | "Lt":
                return self._compares(requirement, values)
            case _:
                return np.zeros(len(values), dtype=np.bool_)

    def _compares(self, requirement: Requirement, values: Ints) -> Bools:
        bound = as_number(requirement.values[0]) if len(requirement.values) == 1 else None
        if bound is None:
            return np.zeros(len(values), dtype=np.bool_)
        above = requirement.operator == "Gt"
        holds = np.array(
            [
                number is not None and (number > bound if above else number < bound)
                for number in self._numbers
            ],
            dtype=np.bool_,
        )
        return holds[values]

    def _count_keys(self, slot: int, keys: tuple[str, ...]) -> None:
        before = self._keys_of.pop(slot, ())
        if keys:
            self._keys_of[slot] = keys
        if keys == before:
            return
        self._keys.update(keys)
        for key in before:
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]

    @staticmethod
    def _value(key: str, node: Node | None, labels: dict[str, str]) -> str | None:
        if key == NAME_FIELD:
            return node.name if node is not None else None
        return labels.get(key)

    def _id(self, value: str | None) -> int:
        if value is None:
            return _ABSENT
        value_id = self._value_ids.get(value)
        if value_id is None:
            value_id = self._value_ids[value] = len(self._numbers)
            self._numbers.append(as_number(value))
        return value_id

    def ids(self, values: Sequence[str]) -> Ints:
        """Value ids of the texts; `_UNKNOWN` for a value that no node has."""
        return np.array([self._value_ids.get(value, _UNKNOWN) for value in values], dtype=np.int64)


def as_number(text: str) -> int | None:
    """A label value as an integer for Gt and Lt; None if it is not one, or exceeds 64 bits."""
    digits = text[1:] if text[:1] in "+-" and len(text) > 1 else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
