"""Objects as large as etcd stores them, one for each list, map and text of a struct.

They are derived from the structs into which the watcher decodes, so a new kind or field has its own
without an edit.
"""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from shared.kube.objects import ObjectMeta
from tests.shared.dialects.reading import metadata

#: What the API server sends to etcd for one object at most; etcd's limit is 1.5 MiB.
BYTES_MAX: Final = 1_400_000
#: Levels of objects in an element of a list.
_LEVELS: Final = 4
#: The place in a manifest that is filled.
_HERE: Final = b'"@here"'
#: Fields of metadata that users fill, and that are read.
_OF_USERS: Final = ("labels", "annotations", "owner_references")
Path = tuple[str, ...]


def largest_objects(kind: type[msgspec.Struct]) -> Iterator[tuple[str, bytes]]:
    """The field that is filled, and the manifest, for each field of a kind."""
    for path, filled, content in _filled(kind, ()):
        manifest: dict[str, Any] = {"metadata": metadata()}
        _merge(manifest, filled)
        yield ".".join(path), msgspec.json.encode(manifest).replace(_HERE, content)


def _filled(kind: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any], bytes]]:
    """The field, an object with the place to fill, and the JSON to fill it with."""
    for field in msgspec.structs.fields(kind):
        at = (*path, field.encode_name)
        if issubclass(kind, ObjectMeta) and field.name not in _OF_USERS:
            continue
        for inner in _choices(field.type):
            if _is_struct(inner) and len(at) < _LEVELS:
                for below, value, content in _filled(inner, at):
                    yield below, {field.encode_name: value}, content
            for value, content in _large(inner, at):
                yield at, {field.encode_name: value}, content


def _large(kind: Any, at: Path) -> Iterator[tuple[Any, bytes]]:
    """Values of BYTES_MAX: many small elements, and fewer full ones."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {tuple, list}:
        for element in _choices(arguments[0]):
            for full in (False, True):
                one = msgspec.json.encode(_value(element, full=full))
                yield "@here", b"[%s]" % _repeated(one)
            if _is_struct(element) and len(at) < _LEVELS:
                for _, value, content in _filled(element, at):
                    yield [{**_value(element, full=False), **value}], content
    elif origin is dict:
        encoded = msgspec.json.encode(_value(arguments[1], full=True))
        yield "@here", b"{%s}" % _repeated(b'"e.x/@number":%s' % encoded)
    elif kind is str:
        yield "@here", b'"%s"' % (b"t" * BYTES_MAX)


def _repeated(one: bytes) -> bytes:
    """As many as fit, each with a number of its own."""
    count = BYTES_MAX // max(len(one), 8)
    return b",".join(one.replace(b"@number", b"%d" % number) for number in range(count))


def _value(kind: Any, *, full: bool, level: int = 0) -> Any:
    """A small value of a type; `full`: with all of its fields."""
    kind = _choices(kind)[0]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return arguments[0]
    if origin in {tuple, list}:
        return [_value(arguments[0], full=full, level=level + 1)] if level < 3 else []
    if origin is dict:
        return {"k@number": _value(arguments[1], full=full, level=level + 1)}
    if _is_struct(kind):
        return {
            field.encode_name: _value(field.type, full=full, level=level + 1)
            for field in msgspec.structs.fields(kind)
            if field.required or (full and level < 3)
        }
    return {str: "@number", int: 1, bool: True, float: 1.0}.get(kind, {})


def _choices(kind: Any) -> tuple[Any, ...]:
    """The types of a union without None; texts first, because all quantities may be texts."""
    if get_origin(kind) is Annotated:
        return _choices(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        found = [one for one in get_args(kind) if one is not type(None)]
        return tuple(sorted(found, key=lambda one: one is not str))
    return (kind,)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _merge(manifest: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        known = manifest.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        else:
            manifest[key] = value
