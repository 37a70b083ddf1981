"""Whatever an annotation holds, it is a number or none; numbers of objects have a bound."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from msgspec import inspect

import shared.kinds
from shared.dialects.discovery import kinds
from shared.dialects.field_checks import INT32_MAX, natural
from shared.dialects.owner_kinds import OWNER_KINDS
from shared.kinds.metadata import KindObject


@pytest.mark.parametrize("number", [0, 7, INT32_MAX])
def test_digits_are_the_number(number: int) -> None:
    assert natural(str(number)) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "²", "٣", "2147483648", "9" * 5000])
def test_any_other_text_is_none(text: str) -> None:
    assert natural(text) is None


def _structs() -> dict[type, str]:
    """Every struct into which an object of a user is decoded: those of watches, and our kinds."""
    structs: dict[type, str] = {}
    for found in pkgutil.iter_modules(shared.kinds.__path__):
        module = importlib.import_module(f"{shared.kinds.__name__}.{found.name}")
        ours = (value for value in vars(module).values() if isinstance(value, type))
        structs |= {each: each.__name__ for each in ours if issubclass(each, KindObject)}
    structs |= {kind.decoded: kind.resource.title for kind in kinds()}
    return structs | {kind.decoded: kind.resource.title for kind in OWNER_KINDS}


def _inside(kind: inspect.Type, path: str) -> Iterator[tuple[inspect.Type, str]]:
    """The types of which a type is made, with their paths."""
    match kind:
        case inspect.Metadata(type=inner):
            yield inner, path
        case inspect.StructType(fields=fields):
            yield from ((field.type, f"{path}.{field.encode_name}") for field in fields)
        case inspect.VarTupleType(item_type=item):
            yield item, f"{path}[]"
        case inspect.DictType(value_type=value):
            yield value, f"{path}{{}}"
        case inspect.UnionType(types=types):
            # A quantity may be written as a number; it is read as a text, with bounds of its own.
            if not any(isinstance(each, inspect.StrType) for each in types):
                yield from ((each, path) for each in types)
        case _:
            pass


def _unbounded(struct: type) -> list[str]:
    """Paths of whole numbers that may be larger than any message holds."""
    paths: list[str] = []
    left, seen = [(inspect.type_info(struct), "")], set[type]()
    while left:
        kind, path = left.pop()
        if isinstance(kind, inspect.IntType) and (kind.ge is None or kind.le is None):
            paths.append(path)
        if isinstance(kind, inspect.StructType):
            if kind.cls in seen:
                continue
            seen.add(kind.cls)
        left += _inside(kind, path)
    return paths


@pytest.mark.parametrize("struct", _structs(), ids=_structs().get)
def test_no_number_of_an_object_is_too_large_for_a_message(struct: type) -> None:
    """One of 2**70 would end the watcher, or an answer of the API, when it is encoded."""
    assert _unbounded(struct) == []
