"""Random questions, for Hypothesis: any values that the decoder of `FitRequest` accepts, or those
that satisfy the rules. Most names and amounts are those of a test's cluster, so that they meet.
"""

from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from shared.contracts.questions import FitRequest
from shared.model.objects import Labels, Pod, PodGroup, Shape, SubGroup, SubGroupSet

Values = st.SearchStrategy[Any]

#: Names of the cluster, forms of names that code splits or compares, and others.
_TEXTS: Final = st.sampled_from(
    [
        *("", "q", "w", "team", "worker", "default", "name", "host", "zone", "rack", "app", "x"),
        *("n0", "cpu", "memory", "pods", "nvidia.com/gpu", "count/pods", "limits.cpu", "low"),
        *("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "NoSchedule", "NoExecute"),
        *("kubernetes.io/hostname", "metadata.name", "local", "c0", "?t", "d0", "true", "false"),
        *("deviceclass.resource.kubernetes.io/gpu", "device:x", "gang:x", "high", "0", "-1"),
        *("/", ",", ":", "a/b/c", "\x00", "é", "1e400", "nan", "9" * 40, "TCP", "requests.cpu"),
    ]
)
_QUEUES: Final = st.sampled_from(["", "", "q", "default", "none"])
#: msgpack has integers from -2^63 to 2^64-1.
_ANY_NUMBERS: Final = st.sampled_from(
    [0, 1, 1, 2, 3, 5, 100, 1000, -1, 10**6, 2**31, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63)]
)
_SOUND_NUMBERS: Final = st.sampled_from([1, 1, 1, 2, 2, 3, 100])
_SOUND_AMOUNTS: Final = st.sampled_from([0, 1, 1, 2, 3, 1000, 4000, 2**53 + 1, 2**63 - 1])
_encode: Final = msgspec.msgpack.encode


class _Maker:
    """Values of types of the model; each struct has any of its optional fields."""

    def __init__(self, *, sound: bool) -> None:
        self._sound = sound
        self._made: dict[type, Values] = {}

    def struct(self, kind: Any) -> Values:
        if kind not in self._made:
            self._made[kind] = st.deferred(lambda: made)
            required: dict[str, Values] = {}
            optional: dict[str, Values] = {}
            for field in inspect.type_info(kind).fields:  # type: ignore[attr-defined]
                values = self._field(kind, field.name, field.type)
                (required if field.required else optional)[field.name] = values
            made = st.fixed_dictionaries(required, optional=optional).map(
                lambda fields: kind(**fields)
            )
        return self._made[kind]

    def _field(self, kind: type, name: str, of: inspect.Type) -> Values:
        # An unsupported pod, or one of an unknown queue, is not tried on any node.
        if name == "unsupported":
            return st.just(())
        if name == "queue":
            return _QUEUES
        if (kind, name) == (Pod, "shape"):
            return self._encoded(self.struct(Shape))
        if (kind, name) == (Pod, "labels"):
            return self._encoded(self._of(inspect.type_info(Labels)))
        if self._sound and (kind, name) == (FitRequest, "pods"):
            return st.lists(self.struct(Pod), min_size=1, max_size=4).map(tuple)
        return self._of(of)

    def _encoded(self, values: Values) -> Values:
        encoded = values.map(_encode)
        return encoded if self._sound else encoded | st.binary(max_size=8)

    def _of(self, kind: inspect.Type) -> Values:  # noqa: C901 - one case for each type
        match kind:
            case inspect.StrType():
                return _TEXTS
            case inspect.IntType():
                return _SOUND_NUMBERS if self._sound else _ANY_NUMBERS
            case inspect.BoolType():
                return st.booleans()
            case inspect.NoneType():
                return st.none()
            case inspect.LiteralType():
                return st.sampled_from(sorted(kind.values, key=str))
            case inspect.VarTupleType(
                item_type=inspect.TupleType(item_types=(inspect.StrType(), inspect.IntType()))
            ) if self._sound:
                amounts = st.dictionaries(_TEXTS, _SOUND_AMOUNTS, max_size=3)
                return amounts.map(lambda found: tuple(sorted(found.items())))
            case inspect.VarTupleType():
                return st.lists(self._of(kind.item_type), max_size=3).map(tuple)
            case inspect.TupleType():
                return st.tuples(*map(self._of, kind.item_types))
            case inspect.UnionType():
                return st.one_of(*map(self._of, kind.types))
            case inspect.StructType():
                return self.struct(kind.cls)
            case _:
                raise NotImplementedError(kind)


def _with_unique_names(question: FitRequest) -> FitRequest:
    """The question with pods and sub-groups of unique names, in a tree if its group has sets."""
    group: PodGroup = question.group
    replace: Any = msgspec.structs.replace
    sets: list[SubGroupSet] = []
    for number, one in enumerate(group.sets if group.sub_groups else ()):
        parent = sets[one.least % number].name if number else ""
        sets.append(replace(one, name=f"set-{number}", set_name=parent))
    sub_groups: list[SubGroup] = []
    for number, each in enumerate(group.sub_groups):
        home = sets[each.size % len(sets)].name if sets else ""
        sub_groups.append(replace(each, name=f"part-{number}", set_name=home))
    found: FitRequest = replace(
        question,
        group=replace(group, sets=tuple(sets), sub_groups=tuple(sub_groups)),
        pods=tuple(replace(pod, uid=f"{at}{pod.uid}") for at, pod in enumerate(question.pods)),
    )
    return found


#: Anything that the decoder accepts.
ANY_QUESTIONS: Final[st.SearchStrategy[FitRequest]] = _Maker(sound=False).struct(FitRequest)
#: Questions that satisfy the rules.
SOUND_QUESTIONS: Final[st.SearchStrategy[FitRequest]] = (
    _Maker(sound=True).struct(FitRequest).map(_with_unique_names)
)
