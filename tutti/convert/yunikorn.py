"""YuniKorn's queues.yaml, by itself or in its ConfigMap. Pure.

Guaranteed amounts become deserved ones, since YuniKorn reserves nothing for them; max becomes the
capability. The root queue is Volcano's.
"""

from collections.abc import Mapping
from typing import Final

from tutti.convert.queue_tree import Amounts, Conversion, Json, Queue, read_amount

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


def convert(config: Json, conversion: Conversion) -> None:
    """Add the queues of a configuration. Raises ValueError."""
    for partition in _items(config, "partitions"):
        name = str(partition.get("name", _DEFAULT_PARTITION))
        prefix = "" if name == _DEFAULT_PARTITION else f"{name}."
        where = f"partition {name}"
        if prefix:
            conversion.losses.append(f"{where}: its queues may use all nodes of the cluster")
        for field, value in partition.items():
            if field not in {"name", "queues"} and value:
                conversion.losses.append(f"{where}: {field} has no equivalent")
        for root in _items(partition, "queues"):
            top = root.get("name") == _ROOT
            if top:
                for field in sorted({*root} - {"name", "parent", "queues"}):
                    conversion.losses.append(
                        f"{where}: {field} of the root queue has no equivalent"
                    )
            for one in _items(root, "queues") if top else [root]:
                _add(one, None, prefix, conversion)


def _add(one: Json, parent: str | None, prefix: str, conversion: Conversion) -> None:
    name = f"{prefix}{one['name']}"
    queue = Queue(name=name, source=f"queue root.{name}", parent=parent)
    resources = one.get("resources") or {}
    queue.deserved = _amounts(resources.get("guaranteed") or {})
    queue.capability = _amounts(resources.get("max") or {})
    for field, value in one.items():
        if field not in _CONVERTED and value:
            queue.losses.append(f"{field} has no equivalent{_HINTS.get(field, '')}")
    conversion.queues.append(queue)
    for child in _items(one, "queues"):
        _add(child, queue.source, f"{name}.", conversion)


def _amounts(found: Mapping[str, object]) -> Amounts:
    names = {name: _RESOURCES.get(name, name) for name in found}
    return {names[name]: read_amount(names[name], value) for name, value in found.items()}


def _items(holder: Json, key: str) -> list[Json]:
    found = holder.get(key) or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{key}: must be a list of objects")
    return found
