"""Macros: functions that evaluate an expression for the elements of a list or the keys of a map."""

from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key, partial
from typing import Final, TypeAlias

from shared.cel import functions
from shared.cel.values import Budget, CelError, Value


class Scope:
    """Variables of one evaluation, and its budget."""

    __slots__ = ("budget", "variables")

    def __init__(self, variables: Mapping[str, Value], budget: Budget) -> None:
        self.variables = dict(variables)
        self.budget = budget

    def bound(self, name: str, value: Value) -> "Scope":
        """The scope within, where a name has this value."""
        return Scope({**self.variables, name: value}, self.budget)


Node: TypeAlias = Callable[[Scope], Value]
Macro: TypeAlias = Callable[[Scope, str, tuple[Value, ...], list[Node]], Value]


def _of(scope: Scope, name: str, body: Node, item: Value) -> Value:
    scope.budget.spend(1)
    scope.variables[name] = item
    return body(scope)


def _truth(value: Value, name: str) -> bool:
    if not isinstance(value, bool):
        raise functions.overload(name, value)
    return value


def _all(scope: Scope, name: str, items: tuple[Value, ...], bodies: list[Node]) -> Value:
    (body,) = bodies
    return decide(scope, False, (partial(_of, scope, name, body, item) for item in items), "all")


def _exists(scope: Scope, name: str, items: tuple[Value, ...], bodies: list[Node]) -> Value:
    (body,) = bodies
    return decide(scope, True, (partial(_of, scope, name, body, item) for item in items), "exists")


def _exists_one(scope: Scope, name: str, items: tuple[Value, ...], bodies: list[Node]) -> Value:
    (body,) = bodies
    return sum(_truth(_of(scope, name, body, item), "exists_one") for item in items) == 1


def _filter(scope: Scope, name: str, items: tuple[Value, ...], bodies: list[Node]) -> Value:
    (body,) = bodies
    return tuple(item for item in items if _truth(_of(scope, name, body, item), "filter"))


def _map(scope: Scope, name: str, items: tuple[Value, ...], bodies: list[Node]) -> Value:
    if len(bodies) == 2:
        items = tuple(item for item in items if _truth(_of(scope, name, bodies[0], item), "map"))
    return tuple(_of(scope, name, bodies[-1], item) for item in items)


def _sort_by(scope: Scope, name: str, items: tuple[Value, ...], bodies: list[Node]) -> Value:
    (body,) = bodies
    keys = [_of(scope, name, body, item) for item in items]
    functions.charge_sort(scope.budget, len(keys))

    def order(at: int, other: int) -> int:
        return functions.compare(keys[at], keys[other])

    return tuple(items[at] for at in sorted(range(len(items)), key=cmp_to_key(order)))


def decide(
    scope: Scope, deciding: bool, operands: Iterable[Callable[[], Value]], name: str
) -> bool:
    """The deciding value if an operand has it, else the other one, else the first error."""
    failure: CelError | None = None
    for operand in operands:
        scope.budget.spend(1)
        try:
            if _truth(operand(), name) is deciding:
                return deciding
        except CelError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return not deciding


MACROS: Final[Mapping[tuple[str, int], Macro]] = {
    ("all", 2): _all,
    ("exists", 2): _exists,
    ("exists_one", 2): _exists_one,
    ("existsOne", 2): _exists_one,
    ("filter", 2): _filter,
    ("map", 2): _map,
    ("map", 3): _map,
    ("sortBy", 2): _sort_by,
}
