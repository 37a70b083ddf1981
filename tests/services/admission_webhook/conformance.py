"""Plays the shared admission cases (Volcano's recorded answers) to the webhook, in process.

    python -m tests.services.admission_webhook.conformance FOLDER

FOLDER holds podgroup.yaml, queue.yaml, pod.yaml and job.yaml. There is no API server here, so no
schema, no namespaces, no stored status: what a case shows is the verdict, and the defaults where
both allow. Each file's `objects` are the queues that exist; a Command closes its queue.
"""

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import msgspec
import yaml

from services.admission_webhook.core.case import Surroundings
from services.admission_webhook.core.judge import defaults, subject, violations
from services.admission_webhook.core.queue_tree import QueueTree
from services.admission_webhook.core.review import Verdict, decode_review
from shared.dialects.protocol import ReadingContext
from shared.dialects.volcano import read_queue
from shared.kube import objects as kube
from shared.kube.decoding import KindDecoder
from shared.kube.resources import QUEUES_VOLCANO
from shared.model.objects import Queue
from tests.services.admission_webhook.reviews import NAMES, RESOURCES, Object, review

FILES = ("podgroup", "queue", "pod", "job")


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one case."""

    file: str
    name: str
    cites: str
    expected: bool
    allowed: bool
    #: What we said when we refused.
    message: str
    #: Both allow, and the defaults are the same (schema's own defaults left aside).
    same_defaults: bool | None = None

    @property
    def agrees(self) -> bool:
        """The verdict is Volcano's."""
        return self.expected == self.allowed

    @property
    def key(self) -> str:
        """Names it among all."""
        return f"{self.file}/{self.name}"


def play(folder: Path) -> list[Played]:
    """Every case of the four files."""
    return [played for file in FILES for played in _play_file(folder / f"{file}.yaml", file)]


def _play_file(path: Path, file: str) -> Iterator[Played]:
    content = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    queues = _queues(content.get("objects") or [])
    known = Surroundings(scheduler_names=NAMES, queues=QueueTree(queues.values()))
    for case in content["cases"]:
        if case.get("subresource"):
            continue  # those are the schema's
        yield _play_case(file, case, queues, known)


def _play_case(file: str, case: Object, queues: dict[str, Queue], known: Surroundings) -> Played:
    operation = case.get("operation", "CREATE")
    old, new = _objects(case, operation)
    result = case["result"]
    exists = operation != "DELETE" or known.queues is None or _is_there(case, queues)
    changed, verdict = _admit(new, old, operation, known)
    same: bool | None = None
    if result["allowed"] and verdict.allowed and operation == "CREATE" and new is not None:
        mutated = result.get("mutated") or []
        wanted = jsonpatch.apply_patch(_with_parents(new, mutated), mutated)
        same = _bare(wanted) == _bare(changed)
    return Played(
        file=file,
        name=case["name"],
        cites=str(case.get("cites", "")),
        expected=result["allowed"],
        allowed=verdict.allowed and exists,
        message="; ".join(error.text for error in verdict.errors),
        same_defaults=same,
    )


def _admit(
    new: Object | None, old: Object | None, operation: str, known: Surroundings
) -> tuple[Object | None, Verdict]:
    """As an API server does: defaults first, then the checks of what came out."""
    shown = new if new is not None else old
    assert shown is not None
    resource = RESOURCES[shown["apiVersion"], shown["kind"]]
    body = review(new, old=old, operation=operation, resource=resource)
    found = subject(decode_review(body), known)
    if found is None:
        return new, Verdict()
    if new is not None:
        patch = msgspec.to_builtins(defaults(found).patch)
        new = jsonpatch.apply_patch(copy.deepcopy(new), list(patch))
    body = review(new, old=old, operation=operation, resource=resource)
    found = subject(decode_review(body), known)
    return new, violations(found) if found is not None else Verdict()


def _objects(case: Object, operation: str) -> tuple[Object | None, Object | None]:
    """(old, new) of a case."""
    if operation == "CREATE":
        return None, case["input"]
    old = case.get("old")
    if old is None:
        kind, _, name = case["exists"].partition("/")
        old = _existing(kind, name)
    if operation == "DELETE":
        return old, None
    return old, jsonpatch.apply_patch(_with_parents(old, case["update"]), case["update"])


_EXISTING: dict[str, Object] = {}


def _existing(kind: str, name: str) -> Object:
    assert kind == "Queue", kind
    bare = {
        "apiVersion": QUEUES_VOLCANO.api_version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"weight": 1},
    }
    return copy.deepcopy(_EXISTING.get(name, bare))


def _with_parents(old: Object, update: list[Object]) -> Object:
    """The object with every member that a `replace` or `remove` takes for given: a stored one has
    its defaults.
    """
    found = copy.deepcopy(old)
    for change in update:
        keys = change["path"].strip("/").split("/")
        place: Any = found
        for key in keys[:-1]:
            place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
        if change["op"] != "add" and isinstance(place, dict):
            place.setdefault(keys[-1], None)
    return found


def _queues(objects: list[Object]) -> dict[str, Queue]:
    queues: dict[str, Queue] = {}
    decode = KindDecoder(kube.Queue).object
    context = ReadingContext(scheduler_names=frozenset(NAMES))
    for found in objects:
        if found["kind"] == "Queue":
            _EXISTING[found["metadata"]["name"]] = found
            decoded = decode(msgspec.json.encode(found))
            assert isinstance(decoded, kube.Queue), decoded
            queue = read_queue(decoded, context)
            queues[queue.name] = msgspec.structs.replace(queue, uid=queue.name, state="Open")
        if found["kind"] == "Command" and found["action"] == "CloseQueue":
            name = found["target"]["name"]
            queues[name] = msgspec.structs.replace(queues[name], state="Closed")
    for name in ("default", "root"):
        queues[name] = Queue(
            uid=name, dialect="volcano", name=name, resource_version=1, state="Open"
        )
    return queues


def _is_there(case: Object, queues: dict[str, Queue]) -> bool:
    return str(case.get("exists", "")).partition("/")[2] in queues


#: Defaults that the schemas give, not the webhooks.
_OF_SCHEMA = (
    ("spec", "dequeueStrategy"),
    ("spec", "networkTopology", "mode"),
    ("spec", "subGroupPolicy", 0, "subGroupSize"),
)


def _bare(found: Object | None) -> Any:
    found = copy.deepcopy(found) or {}
    for *way, last in _OF_SCHEMA:
        place: Any = found
        for key in way:
            try:
                place = place[key]
            except (KeyError, IndexError, TypeError):
                place = None
                break
        if isinstance(place, dict):
            place.pop(last, None)
    return _without_empty(found)


def _without_empty(value: Any) -> Any:
    """Empty maps, nulls and zeros count as absent, as in the recordings."""
    if isinstance(value, dict):
        shown = ((key, _without_empty(item)) for key, item in value.items())
        return {k: v for k, v in shown if v is not None and v != {} and (v != 0 or v is False)}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def main() -> int:
    """Play, print what differs and the counts."""
    played = play(Path(sys.argv[1]))
    for one in played:
        if not one.agrees or one.same_defaults is False:
            what = "verdict" if not one.agrees else "defaults"
            line = f"{one.key} [{one.cites}] {what}: expected {one.expected} {one.message}"
            sys.stdout.write(line + "\n")
    for file in FILES:
        cases = [one for one in played if one.file == file]
        verdicts = sum(one.agrees for one in cases)
        compared = [one for one in cases if one.same_defaults is not None]
        same = sum(one.same_defaults is True for one in compared)
        sys.stdout.write(
            f"{file}: {verdicts} of {len(cases)} verdicts, {same} of {len(compared)} defaults\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
