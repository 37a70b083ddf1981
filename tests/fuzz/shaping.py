"""Random values of the shape that a type decodes from: what a valid sender could have sent."""

from collections.abc import Callable
from random import Random
from typing import Any, Final, cast

from msgspec import inspect

#: Texts that mean something to one parser or another, or nothing to any.
WORDS: Final = (
    *("", "a", "default", "root", "tutti", "volcano", "main", "worker", "node-1", "Ä", "\x00", "é"),
    *("true", "always", "all", "hard", "soft", "preempt", "best-effort", "none", "*", "-", "/"),
    *("0", "1", "-1", "007", "4294967296", "9" * 30, "1e9", "0x10", "٣", "NaN"),
    *("100m", "1Gi", "1.5", "2e3", "-3", "1e99999", ".", "+", "1Ei", "1" * 200, "0." + "0" * 90),
    *("10s", "1h30m", "-5m", "1d", "1" * 70 + "s", "30", "0"),
    *("* * * * *", "@every 1s", "0 0 31 2 *", "*/5 1-2,3 ? jan sun", "@yearly", "61 * * * *"),
    *("^n-[0-9]+$", "(a+)+$", "(", "[", "a{1,999}", r"\1", "(?=x)"),
    *(
        "cpu",
        "memory",
        "nvidia.com/gpu",
        "a/b/c",
        "launcher,driver=2",
        "1/2",
        "a" * 300,
        "{}",
        "[[",
    ),
    *("Exists", "In", "Gt", "NoSchedule", "Running", "CREATE", "UPDATE", "2026-11-21T00:00:00Z"),
)
_NUMBERS: Final = (0, 1, -1, 2, 8, 63, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, -(2**63))
_DEPTH_MAX: Final = 12
#: Parts that a value may have; what is beyond gets only what it must have.
_PARTS: Final = (10, 50, 200)


class Shaper:
    """Makes values of types; one per target, because looking at types takes time."""

    def __init__(self, notes: tuple[str, ...] = ()) -> None:
        """Keys of free objects (annotations, labels) are drawn from `notes` half of the time."""
        self._notes = notes
        self._known: dict[type, inspect.StructType] = {}
        self._kinds: dict[Any, inspect.Type] = {}
        self._left = 0

    def of(self, kind: Any, random: Random) -> Any:
        """A value of the kind, as plain data that encodes to what the kind decodes from."""
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = inspect.type_info(kind)
        self._left = random.choice(_PARTS)
        return self._value(found, random, 0)

    def maker(self, kind: Any) -> Callable[[Random], Any]:
        """Makes values of the kind."""
        return lambda random: self.of(kind, random)

    def _value(self, kind: inspect.Type, random: Random, depth: int) -> Any:
        self._left -= 1
        make = _SIMPLE.get(type(kind))
        if make is not None:
            return make(random)
        match kind:
            case inspect.StructType():
                return self._struct(kind, random, depth)
            case inspect.UnionType():
                return self._value(random.choice(kind.types), random, depth)
            case inspect.LiteralType():
                return random.choice(kind.values)
            case inspect.DictType():
                many = self._many(random, depth)
                value = kind.value_type
                return {
                    self._key(random): self._value(value, random, depth + 1) for _ in range(many)
                }
            case inspect.TupleType():
                return [self._value(one, random, depth + 1) for one in kind.item_types]
            case inspect.ListType() | inspect.VarTupleType() | inspect.FrozenSetType():
                many = self._many(random, depth)
                return [self._value(kind.item_type, random, depth + 1) for _ in range(many)]
            case _:
                return self._anything(random, depth)

    def _struct(self, kind: inspect.StructType, random: Random, depth: int) -> dict[str, Any]:
        # A type that refers to itself shows its fields only once they were looked at.
        found = self._known.get(kind.cls)
        if found is None:
            found = cast("inspect.StructType", inspect.type_info(kind.cls))
            self._known[kind.cls] = found
        made: dict[str, Any] = {}
        if found.tag_field is not None:
            made[found.tag_field] = found.tag
        given = random.choice((0.2, 0.5, 0.9)) if self._many(random, depth) else 0.1
        for field in found.fields:
            if field.required or (self._left > 0 and random.random() < given):
                made[field.encode_name] = self._value(field.type, random, depth + 1)
        return made

    def _many(self, random: Random, depth: int) -> int:
        return random.choice((0, 1, 1, 2, 3)) if self._left > 0 and depth < _DEPTH_MAX else 0

    def _key(self, random: Random) -> str:
        if self._notes and random.random() < 0.5:
            return random.choice(self._notes)
        return random.choice(WORDS)

    def _anything(self, random: Random, depth: int) -> Any:
        if depth > _DEPTH_MAX or random.random() < 0.6:
            return random.choice((None, True, 1.5, *_NUMBERS, *WORDS[:12]))
        many = random.randrange(3)
        if random.random() < 0.5:
            return [self._anything(random, depth + 1) for _ in range(many)]
        return {self._key(random): self._anything(random, depth + 1) for _ in range(many)}


_SIMPLE: Final[dict[type, Callable[[Random], Any]]] = {
    inspect.StrType: lambda random: random.choice(WORDS),
    inspect.IntType: lambda random: random.choice(_NUMBERS),
    inspect.FloatType: lambda random: random.choice((0.0, 1.5, -1e300)),
    inspect.BoolType: lambda random: random.random() < 0.5,
    inspect.NoneType: lambda _: None,
    inspect.BytesType: lambda random: random.randbytes(random.randrange(9)),
}
