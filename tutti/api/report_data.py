"""Reports as data for programs: names in camelCase, times in RFC 3339, as in Kubernetes' objects.

Reports are structs of the commands and of messages, whose fields are in snake case and end in the
unit of a number. An instant (`at_ms`) becomes a time (`at`), a duration in seconds (`silent_s`) has
the unit in full (`silentSeconds`).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import msgspec

#: Numbers of milliseconds that are durations; all other ones are instants since the epoch.
_DURATIONS: Final = frozenset({"took_ms", "partial_ms"})


def report_data(found: object) -> Any:
    """Objects, lists and plain values, as JSON and YAML have them.

    Keys of mappings (labels, names of resources) stay as they are. Of structs, fields are left out
    that have their default, if the struct leaves them out; and instants that are not known (0).
    """
    match found:
        case msgspec.Struct():
            return _struct(found)
        case Mapping():
            return {key: report_data(value) for key, value in found.items()}
        case None | str() | int() | float() | bool():
            return found
        case Sequence() | set() | frozenset():
            return [report_data(one) for one in found]
        case _:
            return msgspec.to_builtins(found)


def _struct(found: msgspec.Struct) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for field in _fields(type(found)):
        value = getattr(found, field.name)
        if found.__struct_config__.omit_defaults and _is_default(field, value):
            continue
        if field.name.endswith("_ms") and field.name not in _DURATIONS:
            if value:
                data[_name(field)] = _instant(value)
        else:
            data[_name(field)] = report_data(value)
    return data


def _is_default(field: msgspec.structs.FieldInfo, value: object) -> bool:
    if field.default_factory is not msgspec.NODEFAULT:
        return bool(value == field.default_factory())
    return field.default is not msgspec.NODEFAULT and bool(value == field.default)


def _name(field: msgspec.structs.FieldInfo) -> str:
    if field.encode_name != field.name:
        return field.encode_name
    name = field.name
    if name in _DURATIONS:
        name = f"{name.removesuffix('_ms')}_milliseconds"
    elif name.endswith("_per_s"):
        name = f"{name.removesuffix('_s')}_second"
    elif name.endswith("_s"):
        name = f"{name.removesuffix('_s')}_seconds"
    first, *rest = name.removesuffix("_ms").split("_")
    return first + "".join(map(str.capitalize, rest))


def _instant(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)
