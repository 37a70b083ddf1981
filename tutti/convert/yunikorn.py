"""YuniKorn's queues.yaml, by itself or in its ConfigMap. Pure.

Guaranteed amounts become deserved ones, since YuniKorn reserves nothing for them; max becomes the
capability. The root queue is Volcano's.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from shared.kube.quantities import amount
from tutti.convert.queue_tree import Amounts, Conversion, Json, Queue, read_form

#: Key of the file in YuniKorn's ConfigMap.
CONFIG_KEY: Final = "queues.yaml"
_ROOT: Final = "root"
_DEFAULT_PARTITION: Final = "default"
_RESOURCES: Final = {"vcore": "cpu"}
_CONVERTED: Final = frozenset({"name", "parent", "queues", "resources"})
_HINTS: Final[Mapping[str, str]] = {
    "submitacl": ": use RBAC or an admission policy",
    "adminacl": ": use RBAC",
    "maxapplications": ": gangs are not counted",
}


class _Resources(msgspec.Struct, frozen=True):
    guaranteed: dict[str, str | float] = {}
    max: dict[str, str | float] = {}


class _Queue(msgspec.Struct, frozen=True):
    name: str
    resources: _Resources = _Resources()
    queues: tuple["_Queue", ...] = ()


class _Partition(msgspec.Struct, frozen=True):
    name: str = _DEFAULT_PARTITION
    queues: tuple[_Queue, ...] = ()


class _Configuration(msgspec.Struct, frozen=True):
    partitions: tuple[_Partition, ...] = ()


def convert(config: Json, conversion: Conversion) -> None:
    """Add the queues of a configuration. Raises ValueError."""
    read_form(config, _Configuration, CONFIG_KEY)
    for partition in config.get("partitions", ()):
        name = str(partition.get("name", _DEFAULT_PARTITION))
        prefix = "" if name == _DEFAULT_PARTITION else f"{name}."
        where = f"partition {name}"
        if prefix:
            conversion.losses.append(f"{where}: its queues may use all nodes of the cluster")
        for field, value in partition.items():
            if field not in {"name", "queues"} and value:
                conversion.losses.append(f"{where}: {field} has no equivalent")
        for root in partition.get("queues", ()):
            top = root.get("name") == _ROOT
            if top:
                for field in sorted({*root} - {"name", "parent", "queues"}):
                    conversion.losses.append(
                        f"{where}: {field} of the root queue has no equivalent"
                    )
            for queue in root.get("queues", ()) if top else [root]:
                _add(queue, None, prefix, conversion)


def _add(given: Json, parent: str | None, prefix: str, conversion: Conversion) -> None:
    name = f"{prefix}{given['name']}"
    queue = Queue(name=name, source=f"queue root.{name}", parent=parent)
    resources = given.get("resources") or {}
    queue.deserved = _amounts(resources.get("guaranteed") or {})
    queue.capability = _amounts(resources.get("max") or {})
    for field, value in given.items():
        if field not in _CONVERTED and value:
            queue.losses.append(f"{field} has no equivalent{_HINTS.get(field, '')}")
    conversion.queues.append(queue)
    for child in given.get("queues", ()):
        _add(child, queue.source, f"{name}.", conversion)


def _amounts(amounts: Mapping[str, str | float]) -> Amounts:
    names = {name: _RESOURCES.get(name, name) for name in amounts}
    return {names[name]: amount(names[name], value) for name, value in amounts.items()}
