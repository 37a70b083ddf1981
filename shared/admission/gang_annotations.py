"""Warnings about gang annotations on workloads and bare pods: what has no effect there is named.

The group that Tutti makes inherits those of its pods and of the objects above them
(`shared.dialects.settings.of_gang`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from shared.admission.gang_declarations import read_declaration
from shared.admission.parts import as_object, member, text_at
from shared.admission.rules import Case
from shared.admission.run_limits import above_maximum
from shared.admission.suggestions import Hints
from shared.admission.warnings import has_controller
from shared.contracts import annotations
from shared.dialects.field_checks import natural
from shared.dialects.owner_kinds import owner_kind
from shared.dialects.protocol import JsonObject
from shared.dialects.settings import OF_GANGS, OF_QUEUES, objection
from shared.dialects.workload_sizes import ALL
from shared.kinds.queue import DEFAULT_QUEUE

PREFIX: Final = "tutti.dev/"
#: What begins a warning about a workload whose pods would never run.
NO_GROUP: Final = "tutti: no PodGroup will be made: "
#: What a workload, or one of its pods, says of the size of its gang.
_SIZES: Final = (annotations.OWNER_MIN_MEMBER, annotations.GROUP_MIN_MEMBER)
_SIZE: Final = "group-min-member"
#: Annotations that a user may write on a workload.
_KNOWN: Final = frozenset({*OF_GANGS, annotations.GANG})
#: Annotations that Tutti writes. A copied manifest may contain them, without any intention.
_OWN: Final = frozenset(
    {
        annotations.DECISION,
        annotations.INHERITED,
        annotations.OWNER_RUN_LIMIT,
        annotations.SUPERSEDED_MINIMUM,
        annotations.TRACE_ID,
        annotations.TRACE_ROOT,
        annotations.VERDICT,
        annotations.WORKLOAD_ENDED,
    }
)
#: Warnings about one object: its templates mostly have the same.
_WARNINGS_MAX: Final = 5
#: Values of `annotations.GANG` on an object; each but `ALL` means that it is no gang.
_MODES: Final = ("", ALL, "none")
_NAME_CHARACTERS_MAX: Final = 63


def has_any(pod: str) -> str:
    """CEL that is true of an object, or of a template at this path, with such an annotation. The
    path's last member may be absent.
    """
    notes = f"{pod}.metadata.annotations"
    has = f"has({pod}.metadata) && has({notes})"
    return f"({has} && {notes}.exists(key, key.startsWith('{PREFIX}') || key.endsWith('/{_SIZE}')))"


def warnings_of(case: Case, templates: Iterable[JsonObject] = ()) -> tuple[str, ...]:
    """Warnings about a workload or pod that a user creates, and about the templates of its pods."""
    if case.operation != "CREATE" or has_controller(case.candidate):
        return ()
    return tuple(dict.fromkeys(_of_workload(case, list(templates))))[:_WARNINGS_MAX]


def is_relevant(candidate: JsonObject, templates: Iterable[JsonObject]) -> bool:
    """Whether the object, or one of these templates, has such an annotation."""
    return any(
        _is_ours(key) for annotated in (candidate, *templates) for key in _annotations(annotated)
    )


def _is_ours(key: str) -> bool:
    return key.startswith(PREFIX) or key in _SIZES


def _of_workload(case: Case, templates: list[JsonObject]) -> Iterator[str]:
    kind, api_version = (
        text_at(case.candidate, "kind") or "Pod",
        text_at(case.candidate, "apiVersion"),
    )
    title = f"{kind} {case.name[:_NAME_CHARACTERS_MAX]}"
    group = _named_group(templates or [case.candidate])
    places = [(f"of {title}", case.candidate, owner_kind(api_version, kind) is not None)]
    job = as_object(member(case.candidate, "spec", "jobTemplate"))
    if job is not None:
        places.append((f"of the Jobs of {title}", job, True))
    places += [(f"of the pods of {title}", template, False) for template in templates]
    hints = Hints()
    for place, annotated, may_be_whole in places:
        for key, value in _annotations(annotated).items():
            if not _is_ours(key) or key in _OWN:
                continue
            if annotated is case.candidate and job is not None and key in _KNOWN:
                words = "a CronJob does not pass it on: write it in spec.jobTemplate.metadata"
            elif key in OF_GANGS and group and not objection(key, value):
                words = f"the pods name the group {group}: write it there"
            else:
                words = _objection(key, value, hints, may_be_whole=may_be_whole)
                if not words and key == annotations.RUN_LIMIT:
                    yield from _long_limit(case, annotated, templates)
            if words:
                named = f"annotation {key[:_NAME_CHARACTERS_MAX]} {place}"
                yield f"tutti: {named} has no effect: {words}"


def _long_limit(case: Case, annotated: JsonObject, templates: list[JsonObject]) -> Iterator[str]:
    """A warning about a run limit for which the group, which inherits it, will be refused."""
    key = annotations.QUEUE_NAME
    named = [
        text_at(case.candidate, "spec", "runPolicy", "schedulingPolicy", "queue"),
        *(text_at(each, "metadata", "annotations", key) for each in (*templates, case.candidate)),
    ]
    of_namespace = case.known.namespace_queues.get(case.namespace, DEFAULT_QUEUE)
    queue = next(filter(None, named), of_namespace)
    for error in above_maximum(annotated, queue, case.known.queues):
        yield f"{NO_GROUP}{error.text}"


def _objection(key: str, value: str, hints: Hints, *, may_be_whole: bool) -> str:
    """Why an annotation has no effect; "": it has one."""
    if key in OF_GANGS:
        return objection(key, value)
    if key in _SIZES:
        shown = f'"{value[:50]}" is not a number of pods'
        return "" if natural(value) is not None or not value else shown
    if key == annotations.GANG:
        if may_be_whole:
            known = value in _MODES
            return "" if known else f'"{value[:50]}" is neither "{ALL}" nor "none"'
        return (
            f"it counts on a Job, or on an operator's object; on the pods' controller, "
            f"{annotations.OWNER_MIN_MEMBER} makes a gang"
        )
    if key in OF_QUEUES:
        return "it counts on a Queue only"
    if key == annotations.SCHEDULE:
        return "it counts as a label of a namespace"
    return f"there is none of this name{hints.near(key, _KNOWN)}"


def _named_group(pods: Iterable[JsonObject]) -> str:
    """The group object that the pods name; "": Tutti makes their group, or they declare it."""
    for pod in pods:
        joined, _ = read_declaration(pod)
        if joined is not None and not joined.self_declared and joined.group is None:
            return joined.group_name[:_NAME_CHARACTERS_MAX]
    return ""


def _annotations(annotated: JsonObject) -> Mapping[str, str]:
    notes = as_object(member(annotated, "metadata", "annotations")) or {}
    return {key: value for key, value in notes.items() if isinstance(value, str)}
