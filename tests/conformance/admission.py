"""Plays recorded admission cases to the webhook's core, in process.

    python -m tests.conformance.admission        # prints what differs, and counts

There is no API server here: what Volcano's users get from the CRDs' schemas, from decoders of
typed objects and from Kubernetes itself is left out (`is_for_schema`), as are the schemas' own
defaults. What remains is the verdict, Volcano's words in it, and what both change. `live_admission`
plays all of it to a real API server.
"""

import copy
import re
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import jsonpatch
import msgspec

from shared.admission.admission import apply_defaults, subject_of, validate
from shared.admission.queue_tree import QueueTree
from shared.admission.resource_groups import read_groups
from shared.admission.review import Verdict, decode_review
from shared.admission.rules import ReferenceObjects
from shared.dialects.kubebatch_fields import read_queue
from shared.kinds.queue import Queue as StoredQueue
from shared.kube.decoding import KindDecoder
from shared.kube.resources import QUEUES_VOLCANO
from shared.model.objects import Queue
from tests.conformance.recordings import Object, changes, read, themes, without_empty
from tests.services.admission_webhook.reviews import NAMES, RESOURCES, review

#: Of Volcano's words those that tests and scripts look for (specification, section 4.2).
FRAGMENTS: Final = (
    "No task specified in job spec",
    "The specified mpi master task was not found",
    "'minAvailable' is greater than 'replicas' in task",
    "duplicated task name",
    "must not specify event and exitCode simultaneously",
    "either event and exitCode should be specified",
    "invalid policy event",
    "invalid policy action",
    "duplicate event",
    "0 is not a valid error code",
    "duplicate exitCode",
    "if there's * here, no other policy should be here",
    "the cpu request isn't an integer",
    "job 'minAvailable' should not be greater than total replicas in tasks",
    "job 'minAvailable' must not be greater than total replicas",
    "'minAvailable' must be <= 'replicas' in task",
    "job updates may not add or remove tasks",
    "job updates may not change fields other than",
    "unable to find job plugin",
    "unable to find job queue",
    "can only submit job to queue with state `Open`",
    "can only submit PodGroup to queue with state `Open`",
    "can not submit job to root queue",
    "can only submit job to leaf queue",
    "directed acyclic graph",
    "jobflow Flow is not DAG",
    "vertex is not defined",
    "schedule is not a valid cron expression",
    "schedule should not contain TZ or CRON_TZ",
    "invalid timeZone",
    "cannot use itself as parent",
    "failed to get parent queue",
    "exceeds the maximum allowed depth of",
    "exceeds its ancestor's capability",
    "sum of children's",
    "queue can not be deleted",
    "can not be deleted because it has",
    "cannot be modified",
    "must not specify 'highestTierAllowed' and 'highestTierName'",
    "either VolumeClaim or VolumeClaimName must be specified",
    "duplicated mountPath",
    "invalid VolumeClaimName",
)
_PLACE: Final = re.compile(r"spec\.task\[\d+\]\.template[^:]*")
#: What Go says of a field of the wrong type, and of texts that are no quantity or duration.
_DECODERS: Final = re.compile(
    r"json: cannot unmarshal|quantities must match|time: invalid duration"
)


class Played(NamedTuple):
    """What became of one case."""

    key: str
    """`KIND/CASE`."""

    expected: bool
    allowed: bool
    message: str
    """What we said when we refused."""

    unsaid: tuple[str, ...] = ()
    """Words of Volcano's that ours lack."""

    mutated: tuple[Object, ...] = ()
    """What would be stored otherwise than in Volcano."""


def is_for_schema(case: Object) -> bool:
    """Whether its answer came from the schema, a decoder, Kubernetes, or a fault of Volcano's."""
    result = case["result"]
    if result["allowed"]:
        return bool(case.get("subresource"))
    message = result.get("message", "")
    return result["code"] != 400 or "webhook" not in message or bool(_DECODERS.search(message))


def play(theme: str) -> Iterator[Played]:
    """Every case of one file that can be played without an API server."""
    found = read(theme)
    queues, stored = _given(found.get("objects") or [])
    known = ReferenceObjects(
        scheduler_names=NAMES,
        queues=QueueTree(queues.values()),
        resource_groups=read_groups(found.get("admissionConf")),
        namespace_queues={
            name: notes["scheduling.volcano.sh/queue-name"]
            for name, notes in (found.get("namespaces") or {}).items()
        },
    )
    kind = theme.partition("/")[2]
    for case in found["cases"]:
        if not is_for_schema(case):
            yield _play(kind, case, stored, known)


def _play(kind: str, case: Object, stored: dict[str, Object], known: ReferenceObjects) -> Played:
    operation, namespace = case.get("operation", "CREATE"), case.get("namespace", "conformance")
    old, new = _objects(case, operation, stored, namespace, known)
    result = case["result"]
    changed, verdict = _admit(new, old, operation, namespace, known)
    message = "; ".join(error.text for error in verdict.errors)
    mutated: list[Object] = []
    if result["allowed"] and verdict.allowed and operation == "CREATE" and new is not None:
        recorded = result.get("mutated") or []
        wanted = jsonpatch.apply_patch(_with_parents(new, recorded), recorded)
        mutated = list(changes(_bare(wanted), _bare(changed)))
    theirs = result.get("message", "")
    words = [one for one in FRAGMENTS if one in theirs] + _PLACE.findall(theirs)
    return Played(
        key=f"{kind}/{case['name']}",
        expected=result["allowed"],
        allowed=verdict.allowed,
        message=message,
        unsaid=tuple(one for one in words if one not in message),
        mutated=tuple(mutated),
    )


def _admit(
    new: Object | None, old: Object | None, operation: str, namespace: str, known: ReferenceObjects
) -> tuple[Object | None, Verdict]:
    """As an API server does: defaults first, then the checks of what came out."""
    shown = new if new is not None else old
    assert shown is not None
    resource = RESOURCES[shown["apiVersion"], shown["kind"]]

    def body() -> bytes:
        return review(new, old=old, operation=operation, resource=resource, namespace=namespace)

    found = subject_of(decode_review(body()), known)
    if found is None:
        return new, Verdict()
    if new is not None:
        patch = msgspec.to_builtins(apply_defaults(found).patch)
        new = jsonpatch.apply_patch(copy.deepcopy(new), list(patch))
    found = subject_of(decode_review(body()), known)
    return new, validate(found) if found is not None else Verdict()


def _objects(
    case: Object, operation: str, stored: dict[str, Object], namespace: str, known: ReferenceObjects
) -> tuple[Object | None, Object | None]:
    """(old, new) of a case. What is stored already has its defaults."""
    if operation == "CREATE":
        return None, case["input"]
    if "old" in case:
        old, _ = _admit(case["old"], None, "CREATE", namespace, known)
        assert old is not None
    else:
        name = case["exists"].partition("/")[2]
        old = copy.deepcopy(stored.get(name) or _queue(name))
    if operation == "DELETE":
        return old, None
    return old, jsonpatch.apply_patch(_with_parents(old, case["update"]), case["update"])


def _queue(name: str) -> Object:
    metadata = {"name": name}
    spec = {"weight": 1}
    return {
        "apiVersion": QUEUES_VOLCANO.api_version,
        "kind": "Queue",
        "metadata": metadata,
        "spec": spec,
    }


def _given(objects: list[Object]) -> tuple[dict[str, Queue], dict[str, Object]]:
    """Return the queues that exist, as records of the cluster stream and as stored objects."""
    queues: dict[str, Queue] = {}
    stored: dict[str, Object] = {}
    decode = KindDecoder(StoredQueue).object
    for found in objects:
        if found["kind"] == "Queue":
            name = found["metadata"]["name"]
            decoded = decode(msgspec.json.encode(found))
            assert isinstance(decoded, StoredQueue), decoded
            queue = read_queue(decoded, dialect="volcano")
            queues[name] = msgspec.structs.replace(queue, uid=name, state="Open")
            stored[name] = found
        if found["kind"] == "Command" and found["action"] == "CloseQueue":
            name = found["target"]["name"]
            queues[name] = msgspec.structs.replace(queues[name], state="Closed")
    for name in ("default", "root"):
        queues[name] = Queue(
            uid=name, dialect="volcano", name=name, resource_version=1, state="Open"
        )
    return queues, stored


def _with_parents(found: Object, operations: list[Object]) -> Object:
    """The object with every member that an operation takes for given."""
    result = copy.deepcopy(found)
    for operation in operations:
        keys = operation["path"].strip("/").split("/")
        place: Any = result
        for key in keys[:-1]:
            key = key.replace("~1", "/").replace("~0", "~")
            place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
        if operation["op"] != "add" and isinstance(place, dict):
            place.setdefault(keys[-1].replace("~1", "/").replace("~0", "~"), None)
    return result


#: Members that schemas or Kubernetes itself default, wherever they stand.
_OF_SCHEMA: Final = frozenset(
    {
        *("dequeueStrategy", "mode", "subGroupSize", "concurrencyPolicy", "suspend"),
        *("failedJobsHistoryLimit", "successfulJobsHistoryLimit", "protocol"),
    }
)
#: Kinds whose other defaults are all from their schemas.
_SCHEMA_ONLY: Final = frozenset({"CronJob", "JobFlow", "JobTemplate", "HyperNode", "Command"})


def _bare(found: Object | None) -> Any:
    if found is None or found["kind"] in _SCHEMA_ONLY:
        return {}
    return without_empty(_without_defaults(found))


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_defaults(item)
            for key, item in value.items()
            if key not in _OF_SCHEMA and not (key == "status" and "spec" in value)
        }
    if isinstance(value, list):
        return [_without_defaults(item) for item in value if not _is_for_all_pods(item)]
    return value


def _is_for_all_pods(item: Any) -> bool:
    """Tolerations that an API server gives to every pod."""
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return isinstance(item, dict) and item.get("key") in keys and "tolerationSeconds" in item


def main() -> int:
    """Play, print what differs and the counts."""
    for theme in themes("admission"):
        played = list(play(theme))
        agreed = [one for one in played if one.expected == one.allowed]
        for one in played:
            if one.expected != one.allowed:
                sys.stdout.write(f"{one.key}: expected {one.expected}: {one.message}\n")
            elif one.unsaid or one.mutated:
                sys.stdout.write(f"{one.key}: unsaid {one.unsaid} mutated {one.mutated}\n")
        total = len(read(theme)["cases"])
        sys.stdout.write(f"{theme}: {len(agreed)} of {len(played)} verdicts, of {total} cases\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
