"""The product's own state machines as values: their states become numbers, their steps a table.

A search needs states that can be compared and hashed, and takes every step many times over. So a
machine is never changed here: a step copies it, lets the real code run, and looks up whether its
new state is known. Each step of the real code therefore runs once, however often the search takes
it.
"""

import copy
from collections.abc import Hashable
from typing import Any

import msgspec


class Interned:
    """A table of machines of one or several kinds."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._machines: list[Any] = []
        self._steps: dict[tuple[Hashable, ...], tuple[int, Any]] = {}

    def number(self, machine: object) -> int:
        """The number of a machine's state; the machine must not be changed from now on."""
        key = frozen(machine)
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._machines)
            self._machines.append(machine)
        return known

    def at(self, number: int) -> Any:
        """The machine, to be looked at only."""
        return self._machines[number]

    def step(self, number: int, method: str, *arguments: Any, **named: Any) -> tuple[int, Any]:
        """Call a method of the machine in that state: the state it is in then, and what it gave."""
        key = (number, method, *arguments, *named.items())
        known = self._steps.get(key)
        if known is None:
            machine = copy.deepcopy(self._machines[number])
            given = getattr(machine, method)(*arguments, **named)
            known = self._steps[key] = (self.number(machine), given)
        return known

    @property
    def steps_taken(self) -> int:
        """Different steps of real code that were run."""
        return len(self._steps)


def frozen(value: Any) -> Hashable:
    """A value that is equal exactly when the state is: of structs, containers, plain objects."""
    if value is None or isinstance(value, str | int | bytes):
        return value
    if isinstance(value, msgspec.Struct):
        names = type(value).__struct_fields__
        return type(value).__name__, *(frozen(getattr(value, name)) for name in names)
    if isinstance(value, dict):
        return tuple(sorted((key, frozen(each)) for key, each in value.items()))
    if isinstance(value, set | frozenset):
        return frozenset(frozen(each) for each in value)
    if isinstance(value, list | tuple):
        return tuple(frozen(each) for each in value)
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    fields = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    fields |= getattr(value, "__dict__", {})
    assert fields, f"{type(value).__name__} has no state that could be compared"
    return type(value).__name__, frozen(fields)
