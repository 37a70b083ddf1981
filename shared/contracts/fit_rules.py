"""The rules for a `FitRequest`. Pure.

The planner relies on them for the gangs of the cluster, where the API server, the dialects and the
watcher ensure them. A question has a user's content, and may come from any client of NATS. The
bounds also limit the time of an answer, because until then the standby neither follows its logs nor
answers another question. The requester checks the rules first, and the planner checks them again.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec

from shared.contracts import codec
from shared.contracts.questions import (
    FIT_EARLIER_PODS_MAX,
    FIT_PODS_MAX,
    AskedQueue,
    FitRequest,
)
from shared.model.objects import (
    Labels,
    NetworkTopology,
    Pod,
    PodGroup,
    Resources,
    Shape,
)
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector, SelectorTerm

#: As of Kubernetes' quantities; numpy's integers are not longer.
_AMOUNT_MAX: Final = 2**63 - 1
#: As of the API's int32 fields.
_NUMBER_MAX: Final = 2**31 - 1
_WEIGHT_MAX: Final = 100
_PORT_MAX: Final = 2**16 - 1
#: Different shapes of a question's pods, claims aside: each is rated on all nodes.
FIT_SHAPES_MAX: Final = 100
#: Different selectors, terms, constraints, tolerations and ports of all its pods: each is compared
#: with all nodes, or with many pods. More than any workload that we know has.
_RULES_MAX: Final = 200
#: Different claims and disks of all its pods; pods may have some each.
_CLAIMS_MAX: Final = 500
#: Gangs before the one that is asked about: each is placed again.
_EARLIER_MAX: Final = 49
#: Queues, or namespaces, that would be created with them: the name of one for each gang, and their
#: parents.
_QUEUES_MAX: Final = 200
#: Values of one requirement.
_VALUES_MAX: Final = 1_000
_SUB_GROUPS_MAX: Final = 2_000
_DEPTH_MAX: Final = 16
#: Kubernetes' names have 253, and UIDs of hypothetical objects have several names.
_NAME_CHARACTERS_MAX: Final = 1_024

_decode_labels: Final = msgspec.msgpack.Decoder(Labels).decode

_Problems = Iterator[str]


def broken_rule(question: FitRequest) -> str:
    """The first broken rule: the field and the rule; "": the question can be answered."""
    return next(
        chain(
            _of_earlier(question),
            _of_pods((*question.pods, *_earlier_pods(question))),
            _of_group(question.group),
            _amounts("limits", question.limits),
            *(_of_group(gang.group) for gang in question.earlier),
            _of_queues(question.queues),
            _of_namespaces(question.namespaces),
        ),
        "",
    )


def _of_namespaces(namespaces: tuple[str, ...]) -> _Problems:
    if len(namespaces) > _QUEUES_MAX:
        yield f"namespaces: must be at most {_QUEUES_MAX}, there are {len(namespaces)}"
        return
    for name in namespaces:
        yield from _name("namespaces", name)


def _earlier_pods(question: FitRequest) -> Iterator[Pod]:
    """One of each kind of pods of the gangs before it."""
    return (pods.pod for gang in question.earlier for pods in gang.pods)


def _of_earlier(question: FitRequest) -> _Problems:
    if len(question.pods) > FIT_PODS_MAX:
        yield f"pods: must be at most {FIT_PODS_MAX}, there are {len(question.pods)}"
    total = 0
    for gang in question.earlier:
        for pods in gang.pods:
            yield from _number("earlier.pods.count", pods.count, 1, FIT_EARLIER_PODS_MAX)
            total += pods.count
    if total > FIT_EARLIER_PODS_MAX:
        yield f"earlier: must have at most {FIT_EARLIER_PODS_MAX} pods, there are {total}"
    if len(question.earlier) > _EARLIER_MAX:
        yield f"earlier: must be at most {_EARLIER_MAX}, there are {len(question.earlier)}"


def _of_queues(queues: tuple[AskedQueue, ...]) -> _Problems:
    if len(queues) > _QUEUES_MAX:
        yield f"queues: must be at most {_QUEUES_MAX}, there are {len(queues)}"
        return
    for queue in queues:
        yield from _name("queues: name", queue.name)
        yield from _name("queues: parent", queue.parent)
        yield from _amounts(f"queues[{queue.name[:20]}].capability", queue.capability)
    if len({queue.name for queue in queues}) < len(queues):
        yield "queues: names must be unique"


# ------------------------------------------------------------------------------ the group


def _of_group(group: PodGroup) -> _Problems:
    for field, name in (
        ("namespace", group.namespace),
        ("name", group.name),
        ("queue", group.queue),
        ("uid", group.uid),
        ("priorityClass", group.priority_class),
    ):
        yield from _name(f"group.{field}", name)
    yield from _number("group.minMember", group.min_member)
    if group.priority is not None:
        yield from _number("group.priority", group.priority, least=-_NUMBER_MAX - 1)
    for role, count in group.min_task_member:
        yield from _name("group.minTaskMember", role)
        yield from _number(f"group.minTaskMember[{role}]", count)
    yield from _amounts("group.minResources", group.min_resources or ())
    yield from _topology("group.networkTopology", group.topology)
    yield from _requirements("group.nodes", group.nodes)
    yield from _of_sub_groups(group)
    yield from _of_sets(group)


def _of_sub_groups(group: PodGroup) -> _Problems:
    if len(group.sub_groups) > _SUB_GROUPS_MAX:
        yield f"group.subGroups: must be at most {_SUB_GROUPS_MAX}, there are more"
        return
    for sub_group in group.sub_groups:
        yield from _name("group.subGroups: name", sub_group.name)
        field = f"group.subGroups[{sub_group.name}]"
        yield from _number(f"{field}.size", sub_group.size)
        yield from _number(f"{field}.minSubGroups", sub_group.min_sub_groups)
        yield from _topology(f"{field}.networkTopology", sub_group.topology)
        if sub_group.selector is not None:
            yield from _requirements(f"{field}.selector", sub_group.selector.requirements)
    names = [sub_group.name for sub_group in group.sub_groups]
    if len(set(names)) < len(names):
        yield "group.subGroups: names must be unique"


def _of_sets(group: PodGroup) -> _Problems:
    """Sets with sub-groups in them, as a tree."""
    if not group.sets:
        return
    if not group.sub_groups:
        yield "group.sets: must have sub-groups in them"
    if len(group.sets) > _SUB_GROUPS_MAX:
        yield f"group.sets: must be at most {_SUB_GROUPS_MAX}, there are more"
        return
    names = [sub_group.name for sub_group in group.sub_groups]
    if names != sorted(names):
        yield "group.subGroups: with sets, must be sorted by name"
    yield from _of_tree(group)


def _of_tree(group: PodGroup) -> _Problems:
    """Each set after the one that it is in, and each sub-group in a set."""
    depths = {"": 0}
    for number, subset in enumerate(group.sets):
        yield from _name("group.sets: name", subset.name)
        field = f"group.sets[{subset.name}]"
        yield from _number(f"{field}.least", subset.least, least=1)
        yield from _topology(f"{field}.networkTopology", subset.topology)
        if subset.name in depths:
            yield f"{field}: names must be unique, and not empty"
            return
        if subset.set_name not in depths or bool(subset.set_name) != bool(number):
            yield f"{field}.setName: must be a set before it; only the first set is in none"
            return
        depths[subset.name] = depths[subset.set_name] + 1
        if depths[subset.name] > _DEPTH_MAX:
            yield f"{field}: sets must be at most {_DEPTH_MAX} deep"
    for sub_group in group.sub_groups:
        if not sub_group.set_name or sub_group.set_name not in depths:
            yield f"group.subGroups[{sub_group.name}].setName: must be one of the sets"


def _topology(field: str, topology: NetworkTopology | None) -> _Problems:
    if topology is not None:
        yield from _number(f"{field}.highestTierAllowed", topology.highest_tier)


# ------------------------------------------------------------------------------- the pods


def _of_pods(pods: tuple[Pod, ...]) -> _Problems:
    uids: set[str] = set()
    shapes: dict[bytes, None] = {}
    for number, pod in enumerate(pods):
        yield from _of_pod(f"pods[{number}]", pod)
        if pod.uid in uids:
            yield f"pods[{number}].uid: must be unique"
        uids.add(pod.uid)
        shapes[pod.shape] = None
    rules: set[object] = set()
    claims: set[object] = set()
    without_claims: set[bytes] = set()
    for number, encoded in enumerate(shapes):
        field = f"pods of shape {number}"
        try:
            shape = codec.decode_shape(encoded)
        except msgspec.DecodeError as error:
            yield f"{field}: the shape cannot be decoded: {error}"
            continue
        yield from _of_shape(field, shape)
        rules.update(_rules(shape))
        claims.update((*shape.claims, *shape.device_claims, *shape.disks))
        without_claims.add(
            codec.encode(
                msgspec.structs.replace(shape, claims=(), own_claims=(), device_claims=(), disks=())
            )
        )
    if len(without_claims) > FIT_SHAPES_MAX:
        yield too_many_shapes(len(without_claims))
    if len(claims) > _CLAIMS_MAX:
        yield f"pods: their claims must be at most {_CLAIMS_MAX}, there are {len(claims)}"
    if len(rules) > _RULES_MAX:
        yield (
            "pods: their different selectors, affinity terms, spread constraints, tolerations and "
            f"ports must be at most {_RULES_MAX}, there are {len(rules)}"
        )


def too_many_shapes(count: int) -> str:
    """The broken rule of a gang whose pods have `count` different shapes."""
    return (
        "pods: their requests, selectors, affinities and the like must be of at most "
        f"{FIT_SHAPES_MAX} different kinds, there are {count}"
    )


def _of_pod(field: str, pod: Pod) -> _Problems:
    for name in (pod.uid, pod.name, pod.namespace, pod.role, pod.group_name):
        yield from _name(f"{field}: names", name)
    for what, count in (("priority", pod.priority), ("taskPriority", pod.task_priority or 0)):
        yield from _number(f"{field}.{what}", count, least=-_NUMBER_MAX - 1)
    yield from _of_labels(f"{field}.labels", pod.labels)
    for container in pod.extended:
        for resource, _, count in container.requests:
            yield from _number(f"{field}: requests of {resource}", count, 1, _AMOUNT_MAX)


def _of_labels(field: str, labels: bytes) -> _Problems:
    if not labels:
        return
    try:
        _decode_labels(labels)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        yield f"{field}: cannot be decoded: {error}"


def _of_shape(field: str, shape: Shape) -> _Problems:
    yield from _amounts(f"{field}.requests", shape.requests)
    for port in shape.host_ports:
        yield from _number(f"{field}.hostPort", port.port, least=1, most=_PORT_MAX)
    for preferred in shape.preferred_node_affinity:
        yield from _number(f"{field}.nodeAffinity.weight", preferred.weight, 1, _WEIGHT_MAX)
    for term in _node_terms(shape):
        yield from _requirements(f"{field}.nodeAffinity", (*term.expressions, *term.fields))
    if shape.pod_affinity is not None:
        yield from _of_affinity(f"{field}.podAffinity", shape.pod_affinity)
    for spread in shape.spread:
        of_spread = f"{field}.topologySpreadConstraints"
        yield from _number(f"{of_spread}.maxSkew", spread.max_skew, least=1)
        yield from _number(f"{of_spread}.minDomains", spread.min_domains, least=1)
        yield from _selector(of_spread, spread.selector)


def _of_affinity(field: str, terms: PodAffinity) -> _Problems:
    for term in (*terms.preferred, *terms.preferred_anti):
        yield from _number(f"{field}.weight", term.weight, 1, _WEIGHT_MAX)
    for term in _pod_terms(terms):
        yield from _selector(field, term.selector)
        yield from _selector(field, term.namespace_selector)


def _rules(shape: Shape) -> Iterator[object]:
    """What is compared with nodes or pods for the shape; a selector by its requirements."""
    yield from shape.node_selector
    yield from shape.tolerations
    yield from shape.host_ports
    yield from shape.spread
    for term in _node_terms(shape):
        yield from (*term.expressions, *term.fields)
    selectors = [constraint.selector for constraint in shape.spread]
    for pod_term in _pod_terms(shape.pod_affinity) if shape.pod_affinity is not None else ():
        yield pod_term
        yield from pod_term.namespaces
        selectors += [pod_term.selector, pod_term.namespace_selector]
    for selector in selectors:
        yield from selector.requirements if selector is not None else ()


def _node_terms(shape: Shape) -> Iterator[SelectorTerm]:
    yield from shape.node_affinity or ()
    for preferred in shape.preferred_node_affinity:
        yield preferred.term


def _pod_terms(terms: PodAffinity) -> Iterable[PodTerm]:
    return chain(terms.affinity, terms.anti_affinity, terms.preferred, terms.preferred_anti)


# ------------------------------------------------------------------------------- values


def _selector(field: str, selector: Selector | None) -> _Problems:
    if selector is not None:
        yield from _requirements(f"{field}.labelSelector", selector.requirements)


def _requirements(field: str, requirements: tuple[Requirement, ...]) -> _Problems:
    for requirement in requirements:
        if len(requirement.values) > _VALUES_MAX:
            yield f"{field}: a requirement must have at most {_VALUES_MAX} values"


def _amounts(field: str, amounts: Resources) -> _Problems:
    for name, amount in amounts:
        yield from _name(field, name)
        yield from _number(f"{field}[{name}]", amount, most=_AMOUNT_MAX)
    if len({name for name, _ in amounts}) < len(amounts):
        yield f"{field}: a resource must be named once"


def _name(field: str, name: str) -> _Problems:
    if len(name) > _NAME_CHARACTERS_MAX:
        yield (
            f"{field}: must have at most {_NAME_CHARACTERS_MAX} characters, and "
            f"{name[:20]!r}… has {len(name)}"
        )


def _number(field: str, number: int, least: int = 0, most: int = _NUMBER_MAX) -> _Problems:
    if not least <= number <= most:
        yield f"{field}: must be {least} to {most}, and is {number}"
