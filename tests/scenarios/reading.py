"""Scenarios as YAML: a cluster and gangs in; the pods bound, evicted and waiting, and messages,
out.

A file holds documents (`---` between them), each one scenario; the folder is the action or policy
that it is about. Amounts are in the model's units (milli-CPU, bytes, counts); `gpu` stands for
`nvidia.com/gpu`. Fields of objects are those of `shared.model`, pairs written as mappings:

    title: a gang that fits in part is not placed at all
    configuration: |            # volcano-scheduler.conf; left out: the built-in default
      actions: allocate
    nodes:
    - {name: n, count: 2, allocatable: {cpu: 4000, pods: 110}, labels: {zone: a}}
    objects:                    # any other kind of shared.model.objects.KINDS
    - {kind: queue, name: small, capability: {cpu: 3000}}
    gangs:
    - name: a
      min_member: 3
      group: {queue: small}     # fields of PodGroup; `bare: true`: there is no PodGroup
      members:
      - {role: worker, count: 3, requests: {cpu: 1000}, shape: {node_selector: {zone: a}},
         pod: {priority: 5, labels: {app: x}}, nodes: [n-0]}   # nodes: they run there already
    expect:
      bound: {b: 2}             # exactly these gangs, with so many members each
      where: {a-worker-0: n-0}
      within: {a: [n-0, n-1]}   # no other nodes take its members
      waits: {a: NotEnoughQuota}
      says: {a: needs 1 cpu more}
      evicted: {c: 2}           # exactly these gangs lose so many members
      conditions: {a: {Unschedulable: NotEnoughResources}}    # or false: it is not True
    then:                       # what happens next, each followed by cycles and its `expect`
    - {run: [b], evict: true, remove: [c-worker-0], after_ms: 1000, gangs: [], expect: {}}

`count: 2` makes nodes n-0 and n-1. `run` shows these gangs' newest decision bound and running;
`evict: true` removes all pods that are to be evicted.
"""

import itertools
import pathlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_type_hints

import msgspec
import yaml

from services.gang_planner.core.state.queues import DEFAULT, ROOT
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.verdicts import Why
from shared.model.objects import KINDS, Node, Pod, PodGroup, Shape
from tests.services.gang_planner.core.scene import GPU, Scene, make_group, make_pods

_PAIRS = {tuple[tuple[str, str], ...], tuple[tuple[str, int], ...]}
_SHORT = {"gpu": GPU}
#: Up to this many queues, their names are tried in every order.
_PERMUTED_MAX = 4


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Members(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Equal members of a gang."""

    role: str = "worker"
    count: int = 1
    requests: dict[str, int] = {}
    shape: dict[str, Any] = {}
    pod: dict[str, Any] = {}
    #: Where they run already, by turns; empty: they wait.
    nodes: tuple[str, ...] = ()


class GangGiven(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A gang: its group, and its members."""

    name: str
    min_member: int = 0
    group: dict[str, Any] = {}
    bare: bool = False
    members: tuple[Members, ...] = ()


class Expected(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must be true after the cycles."""

    bound: dict[str, int] = {}
    where: dict[str, str] = {}
    within: dict[str, list[str]] = {}
    waits: dict[str, str] = {}
    says: dict[str, str] = {}
    evicted: dict[str, int] = {}
    conditions: dict[str, dict[str, str | bool]] = {}


class Stage(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens, and what must be true then."""

    run: tuple[str, ...] = ()
    evict: bool = False
    remove: tuple[str, ...] = ()
    after_ms: int = 0
    nodes: tuple[dict[str, Any], ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    gangs: tuple[GangGiven, ...] = ()
    expect: Expected = Expected()


class Scenario(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One document."""

    title: str
    configuration: str = ""
    nodes: tuple[dict[str, Any], ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    gangs: tuple[GangGiven, ...] = ()
    expect: Expected
    then: tuple[Stage, ...] = ()


def scenarios(folder: pathlib.Path) -> Iterator[tuple[str, Scenario]]:
    """Every scenario in the folders below, with a name for the test: folder, file, title."""
    for path in sorted(folder.glob("*/*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            scenario = msgspec.convert(document, Scenario)
            yield f"{path.parent.name}/{path.stem}: {scenario.title}", scenario


def with_queues_renamed(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario with other names of its queues, which appear in the order of their names: of few
    queues in every order, of more so that each queue has each name once. What messages say is left
    out: they name queues.
    """
    stages: tuple[Scenario | Stage, ...] = (scenario, *scenario.then)
    queues = [one for stage in stages for one in stage.objects if one["kind"] == "queue"]
    names = sorted({one["name"] for one in queues} - {DEFAULT, ROOT})
    if len(names) < 2:
        return
    count = len(names)
    orders = [[(at + by) % count for at in range(count)] for by in range(count)]
    if count <= _PERMUTED_MAX:
        orders = [list(order) for order in itertools.permutations(range(count))]
    for order in orders:
        renamed = {name: f"renamed-{at}" for name, at in zip(names, order, strict=True)}
        yield msgspec.structs.replace(
            _stage_renamed(scenario, renamed),
            then=tuple(_stage_renamed(stage, renamed) for stage in scenario.then),
        )


_Given = TypeVar("_Given", Scenario, Stage)


def _stage_renamed(stage: _Given, names: Mapping[str, str]) -> _Given:
    objects = [
        _fields_renamed(one, names, "name", "parent") if one["kind"] == "queue" else one
        for one in stage.objects
    ]
    return msgspec.structs.replace(
        stage,
        objects=tuple(sorted(objects, key=lambda one: one["name"])),
        gangs=tuple(
            msgspec.structs.replace(one, group=_fields_renamed(one.group, names, "queue"))
            for one in stage.gangs
        ),
        expect=msgspec.structs.replace(stage.expect, says={}),
    )


def _fields_renamed(
    given: Mapping[str, Any], names: Mapping[str, str], *fields: str
) -> dict[str, Any]:
    changed = {field: names.get(given[field], given[field]) for field in fields if field in given}
    return {**given, **changed}


def play(scenario: Scenario) -> None:
    """Run a scenario; an assertion fails where it does not come out as expected."""
    scene = Scene(conf=scenario.configuration)
    first = Stage(
        nodes=scenario.nodes,
        objects=scenario.objects,
        gangs=scenario.gangs,
        expect=scenario.expect,
    )
    for stage in (first, *scenario.then):
        _play_stage(scene, stage)


def _play_stage(scene: Scene, stage: Stage) -> None:
    for name in stage.run:
        of_gang = (one for _, one in reversed(scene.decisions) if one.gang.endswith(f"/{name}"))
        scene.run(next(of_gang))
    if stage.evict:
        doomed = {
            victim.uid
            for _, record in scene.records
            if isinstance(record, EvictionDecision)
            for victim in record.victims
        }
        scene.remove(*(pod for pod in list(scene.pods.values()) if pod.uid in doomed))
    scene.remove(*(pod for pod in list(scene.pods.values()) if pod.name in stage.remove))
    for node in stage.nodes:
        scene.put(*_nodes(node))
    for one in stage.objects:
        scene.put(_surrounding(one))
    for gang in stage.gangs:
        scene.put(*_gang(gang))
    before = len(scene.records)
    scene.now_ms += stage.after_ms
    scene.settle()
    _compare(scene, stage.expect, [record for _, record in scene.records[before:]])


def _compare(scene: Scene, expect: Expected, records: list[Any]) -> None:
    bound: Counter[str] = Counter()
    evicted: Counter[str] = Counter()
    where: dict[str, str] = {}
    groups = {pod.uid: pod.group_name for pod in scene.pods.values()}
    for record in records:
        if isinstance(record, GangDecision):
            bound[record.gang.partition("/")[2]] += len(record.bindings)
            where.update(scene.where(record))
        elif isinstance(record, EvictionDecision):
            evicted.update(groups[victim.uid] for victim in record.victims)
    assert (dict(bound), dict(evicted)) == (expect.bound, expect.evicted), "bound, evicted"
    assert {pod: where.get(pod) for pod in expect.where} == expect.where
    for name, nodes in expect.within.items():
        taken = {node for pod, node in where.items() if pod.startswith(f"{name}-")}
        assert taken <= set(nodes), f"{name} is on {sorted(taken)}"
    for name, reason in expect.waits.items():
        why = _why(scene, name)
        assert why.reason == reason, why.sentence
    for name, words in expect.says.items():
        assert words in _why(scene, name).sentence
    for name, wanted in expect.conditions.items():
        verdicts = [one for one in scene.published if one.name == name]
        conditions = {one.type: one for one in verdicts[-1].conditions} if verdicts else {}
        for kind, reason_or_false in wanted.items():
            found = conditions.get(kind)
            true = found.reason if found is not None and found.status == "True" else False
            assert true == reason_or_false, f"{name}: condition {kind}"


def _why(scene: Scene, name: str) -> Why:
    reasons = [one.why for one in scene.published if one.name == name]
    assert reasons, f"there is no verdict about {name}"
    why = reasons[-1]
    assert why is not None, f"{name} waits for nothing"
    return why


def _nodes(given: Mapping[str, Any]) -> Iterator[Node]:
    fields = dict(given)
    count, name = fields.pop("count", None), fields.pop("name")
    fields["allocatable"] = _named(fields.get("allocatable", {"cpu": 4000, "pods": 110}))
    for one in [name] if count is None else [f"{name}-{index}" for index in range(count)]:
        yield model(Node, {"uid": f"uid-{one}", "name": one, "resource_version": 1, **fields})


def _surrounding(given: Mapping[str, Any]) -> Any:
    fields = dict(given)
    kind = fields.pop("kind")
    fields.setdefault("uid", f"{kind}-{fields.get('namespace', '')}-{fields['name']}")
    fields.setdefault("resource_version", 1)
    found = KINDS[kind]
    if "dialect" in get_type_hints(found):
        fields.setdefault("dialect", "volcano")
    return model(found, fields)


def _gang(given: GangGiven) -> Iterator[Pod | PodGroup]:
    if not given.bare:
        yield make_group(given.name, given.min_member, **_fields(PodGroup, given.group))
    starts: Counter[str] = Counter()
    for members in given.members:
        shape = {"requests": {"pods": 1, **_named(members.requests)}, **members.shape}
        encoded = msgspec.msgpack.encode(model(Shape, shape))
        pod = dict(members.pod)
        if "labels" in pod:
            pod["labels"] = msgspec.msgpack.encode(tuple(sorted(pod["labels"].items())))
        start = starts[members.role]
        starts[members.role] += members.count
        made = make_pods(
            given.name,
            start + members.count,
            encoded,
            role=members.role,
            **_fields(Pod, pod),
        )
        for index, one in enumerate(made[start:]):
            if members.nodes:
                node = members.nodes[index % len(members.nodes)]
                one = msgspec.structs.replace(one, node=node, phase="Running")
            yield one


def _named(amounts: Mapping[str, int]) -> dict[str, int]:
    return {_SHORT.get(name, name): amount for name, amount in amounts.items()}


def _fields(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a model as Python values: mappings as sorted pairs, the rest converted by type."""
    hints = get_type_hints(kind)
    found: dict[str, Any] = {}
    for name, value in given.items():
        assert name in hints, f"{kind.__name__} has no field {name!r}"
        pairs = isinstance(value, dict) and _is_pairs(hints[name])
        found[name] = msgspec.convert(sorted(value.items()) if pairs else value, hints[name])
    return found


def _is_pairs(hint: Any) -> bool:
    return hint in _PAIRS or any(one in _PAIRS for one in getattr(hint, "__args__", ()))


def model(kind: type, given: Mapping[str, Any]) -> Any:
    """A model struct of these fields."""
    return kind(**_fields(kind, given))
