"""Objects whose every field changes while the planner has them, and what is left when they go.

The kinds are those of CLUSTER's records, so a new one is changed here as well. Each object is made
from its type: names, UIDs, owners and texts come from a few, so that objects clash, refer to each
other and take each other's place in two namespaces.
"""

import contextlib
import types
import typing
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final, Literal, Union

import msgspec
import pytest

from services.gang_planner.core.state.columns import AMOUNT_MAX
from shared.model.objects import GROUP_NAME_SCOPE, Node, Pod
from tests.services.gang_planner.core.scene import Scene, make_group, make_node, make_shape
from tests.support.snapshots import CHANGES

_UIDS: Final = tuple(f"uid-{number}" for number in range(6))
_WORDS: Final = ("", "a", "b", "default", "cpu", "example.com/x", *_UIDS)
_NAMESPACES: Final = ("prod", "evil")
_NUMBERS: Final = (0, 1, 2, 5, 1000, AMOUNT_MAX)
_SHAPES: Final = (b"", make_shape({"cpu": 100}), make_shape({"cpu": 9000, "example.com/x": 1}))
_KINDS: Final = tuple(CHANGES)
_SCOPES: Final = (GROUP_NAME_SCOPE, "sigs")


def value_of(kind: Any, random: Random, depth: int = 0) -> Any:
    """A value of a type of the model, small."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return struct_of(kind, random, depth)
    if origin in {Union, types.UnionType}:
        return value_of(random.choice(arguments), random, depth)
    if origin is Literal:
        return random.choice(arguments)
    if origin is tuple:
        if arguments[-1] is not Ellipsis:
            return tuple(value_of(one, random, depth + 1) for one in arguments)
        count = random.choice((0, 1, 1, 2)) if depth < 4 else 0
        return tuple(value_of(arguments[0], random, depth + 1) for _ in range(count))
    if origin is frozenset:
        return frozenset({value_of(arguments[0], random, depth + 1)})
    simple: dict[Any, Callable[[], Any]] = {
        str: lambda: random.choice(_WORDS),
        int: lambda: random.choice(_NUMBERS),
        bool: lambda: random.random() < 0.5,
        bytes: lambda: random.choice(_SHAPES),
        float: lambda: 0.5,
        types.NoneType: lambda: None,
    }
    return simple[kind]()


def struct_of(kind: type[msgspec.Struct], random: Random, depth: int = 0) -> Any:
    hints = typing.get_type_hints(kind)
    required = {one.name for one in msgspec.structs.fields(kind) if one.required}
    fields = {
        name: value_of(hints[name], random, depth)
        for name in kind.__struct_fields__
        if name in required or random.random() < 0.5
    }
    if "namespace" in fields or "namespace" in kind.__struct_fields__:
        fields["namespace"] = random.choice(_NAMESPACES)
    return kind(**fields)


def an_object(kind: type, random: Random, version: int) -> Any:
    """An object of the kind as the watcher could read it: the API server chose its UID, and of one
    UID neither name nor namespace ever changes. Scopes are the dialects' own.
    """
    made = struct_of(kind, random)
    number = random.randrange(len(_UIDS))
    fixed: dict[str, Any] = {"uid": f"{kind.__name__}-{number}", "resource_version": version}
    fixed["name"] = f"name-{number % 2}"
    if hasattr(made, "namespace"):
        fixed["namespace"] = _NAMESPACES[number // 3]
    for scope in ("scope", "parent_scope", "group_scope"):
        if hasattr(made, scope):
            fixed[scope] = random.choice(_SCOPES)
    if kind is Pod:
        # The planner trusts the watcher in what it derives.
        fixed |= {"ours": random.random() < 0.9, "declared_group": None}
        fixed["node"] = random.choice(("", "", "node-0", "name-1"))
    return msgspec.structs.replace(made, **fixed)


def lived(seed: int, rounds: int) -> tuple[Scene, dict[str, Any]]:
    """A planner after so many changes, and the objects that are left."""
    random = Random(seed)
    scene = Scene([make_node("node-0")])
    left: dict[str, Any] = {}
    for number in range(rounds):
        kind = random.choice(_KINDS)
        if random.random() < 0.3 and left:
            one = left.pop(random.choice(sorted(left)))
            scene.remove(one)
        else:
            one = as_it_can_be(an_object(kind, random, number + 2), left, number)
            # Another object of this name was deleted before this one was made.
            for other in [each for each in left.values() if is_same(each, one)]:
                scene.remove(left.pop(other.uid))
            scene.put(one)
            left[one.uid] = one
        if random.random() < 0.3:
            scene.step(after_ms=random.choice((0, 10, 1500)))
    return scene, left


def as_it_can_be(one: Any, left: dict[str, Any], number: int) -> Any:
    """The object under the UID that one of its name has, or under a UID that none has had; a pod
    stays on its node.
    """
    known = next((each for each in left.values() if each.uid.startswith(f"{one.uid}/")), None)
    uid = known.uid if known is not None else f"{one.uid}/{number}"
    one = msgspec.structs.replace(one, uid=uid)
    if isinstance(one, Pod) and known is not None and known.node:
        one = msgspec.structs.replace(one, node=known.node)
    return one


def is_same(one: Any, other: Any) -> bool:
    names = [(type(each), getattr(each, "namespace", ""), each.name) for each in (one, other)]
    dialects = {getattr(each, "dialect", "") for each in (one, other)}
    return one.uid != other.uid and names[0] == names[1] and len(dialects) == 1


def sizes(value: Any, path: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, int]]:
    """(path, number of entries) of every container that is reachable from a state."""
    seen = set() if seen is None else seen
    if id(value) in seen or len(path) > 400:
        return
    seen.add(id(value))
    if isinstance(value, dict | list | set):
        yield path, len(value)
        values = value.values() if isinstance(value, dict) else value
        for one in values:
            yield from sizes(one, f"{path}[]", seen)
    names = [name for each in type(value).__mro__ for name in getattr(each, "__slots__", ())]
    fields = {name: getattr(value, name) for name in names if hasattr(value, name)}
    with contextlib.suppress(TypeError):
        fields |= vars(value)
    if type(value).__module__.startswith("services."):
        for name, one in fields.items():
            yield from sizes(one, f"{path}.{name}", seen)


@pytest.mark.parametrize("seed", range(25))
def test_no_change_of_any_field_of_any_kind_breaks_the_planner(seed: int) -> None:
    scene, left = lived(seed, 120)
    for one in list(left.values()):
        scene.remove(one)
    scene.step(after_ms=1000)
    assert not scene.state.members


@pytest.mark.parametrize(
    "kind", [one for one in _KINDS if one is not Node], ids=lambda k: k.__name__
)
def test_an_object_that_changed_and_went_leaves_no_entry_in_any_index(kind: type) -> None:
    random = Random(kind.__name__)
    scene = Scene([make_node("node-0")])
    tables = scene.state.reference_objects

    def entries() -> int:
        return sum(count for path, count in sizes(tables) if "_log" not in path)

    before = entries()
    for number in range(60):
        one = an_object(kind, random, number + 2)
        scene.put(one)
        scene.remove(one)
        changed = an_object(kind, random, number + 3)
        same = {"uid": one.uid, "name": one.name, "resource_version": number + 4}
        if hasattr(one, "namespace"):
            same["namespace"] = one.namespace
        scene.put(one, msgspec.structs.replace(changed, **same))
        scene.remove(one)
    scene.step()
    assert entries() == before


def test_a_tree_and_a_plain_group_of_one_name_come_and_go_in_any_order() -> None:
    """A CompositePodGroup and a PodGroup of Kubernetes' API may have one name: neither object's end
    takes the other's from the planner.
    """
    root = make_group("g", 1, uid="root", scope="kubernetes", dialect="composite", min_groups=1)
    plain = make_group("g", 1, uid="plain", scope="kubernetes", dialect="kubernetes")
    for objects in ((root, plain), (plain, root)):
        for gone in (objects, objects[::-1]):
            scene = Scene([make_node("node-0")])
            scene.put(*objects)
            scene.step()
            scene.remove(gone[0])
            scene.step()
            (gang,) = scene.state.gangs.gangs.values()
            assert gang.group is not None
            assert gang.group.uid == gone[1].uid
            scene.remove(gone[1])
            scene.step()
            assert not scene.state.gangs.gangs
