"""Plays recorded admission cases to a real API server with our CRDs and our webhook, by dry-run.

    python -m tests.conformance.live_admission --only job/plugin

Schemas, decoders and Kubernetes' own checks take part here: every recorded case is played. What is
compared is the verdict, and what would be stored.
"""

import argparse
import asyncio
import copy
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.conformance.cluster_view import CLUSTER_WIDE, kind_of, path
from tests.conformance.lifecycle import control_plane, suite
from tests.conformance.recordings import Object, changes, patched, read, themes, without_empty
from tests.conformance.scenario import create
from tests.controlplane.client import JSON_PATCH, ApiError, RawClient
from tests.controlplane.fixtures import CRDS_DIR
from tests.support.queue_commands import commands_are_reviewed
from tests.support.waiting import eventually

NAMESPACE: Final = "conformance"
_DRY: Final = {"dryRun": "All"}
_SERVER_SET: Final = frozenset(
    {
        *("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields"),
        *("namespace", "selfLink"),
    }
)


class Answer(NamedTuple):
    """What the API server said to one request."""

    allowed: bool
    message: str = ""
    mutated: tuple[Object, ...] = ()
    """JSON patch from what was sent to what would be stored."""


class Played(NamedTuple):
    """What became of one case."""

    key: str
    """`KIND/CASE`."""

    expected: Answer
    given: Answer

    @property
    def differs(self) -> bool:
        """Whether the verdict or what would be stored is another one than Volcano's."""
        return (
            self.expected.allowed != self.given.allowed
            or self.expected.mutated != self.given.mutated
        )


async def play(api: RawClient, theme: str, only: str = "") -> AsyncIterator[Played]:
    """Play the cases of one file whose `KIND/CASE` matches; its objects are gone afterwards."""
    found = read(f"admission/{theme}")
    cases = [case for case in found["cases"] if re.search(only, f"{theme}/{case['name']}")]
    if not cases:
        return
    notes = found.get("namespaces") or {}
    for name in sorted({case.get("namespace", NAMESPACE) for case in cases} | {NAMESPACE}):
        metadata = {"name": name, "annotations": notes.get(name, {})}
        await _ignoring(409, api.create(path("Namespace"), {"metadata": metadata}))
    await _given(api, found.get("objects") or [])
    try:
        await _settled(api, theme)
        for case in cases:
            yield await _played(api, theme, case)
    finally:
        for one in reversed(found.get("objects") or []):
            if one["kind"] != "Command":
                await _removed(api, one, NAMESPACE)


async def _given(api: RawClient, objects: Sequence[Object]) -> None:
    for one in objects:
        if one["kind"] == "Command":
            await commands_are_reviewed(api)
        await create(api, one, NAMESPACE)
        if one["kind"] == "Command" and one["action"] == "CloseQueue":
            await _closed(api, one["target"]["name"])


async def _closed(api: RawClient, name: str) -> None:
    where = path("Queue", None, name)

    async def closed() -> bool:
        return bool((await api.get(where)).get("status", {}).get("state") == "Closed")

    await eventually(closed, because=f"queue {name} is closed by its command")


async def _settled(api: RawClient, theme: str) -> None:
    """Wait until the webhook answers, and has seen the queues."""
    probe: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "probe"},
        "spec": {"minMember": 1, "queue": "no-such-queue"},
    }

    async def refused() -> bool:
        try:
            await api.request("POST", path("PodGroup", NAMESPACE), probe, params=_DRY)
        except ApiError as error:
            return "unable to find queue" in str(error)
        return False

    await eventually(refused, because=f"the webhook answers, for {theme}")


async def _played(api: RawClient, theme: str, case: Object) -> Played:
    namespace, operation = case.get("namespace", NAMESPACE), case.get("operation", "CREATE")
    recorded = case["result"]
    expected = Answer(
        recorded["allowed"], recorded.get("message", ""), tuple(recorded.get("mutated") or ())
    )
    if operation == "UPDATE" and "old" in case:
        await create(api, case["old"], namespace)
    try:
        given = await _ask(api, case, operation, namespace)
    finally:
        if operation == "UPDATE" and "old" in case:
            await _removed(api, case["old"], namespace)
    return Played(f"{theme}/{case['name']}", expected, given)


async def _ask(api: RawClient, case: Object, operation: str, namespace: str) -> Answer:
    found = case.get("input") or case.get("old")
    if "exists" in case:
        kind, name = case["exists"].split("/")
    else:
        assert found is not None, case["name"]
        kind, name = kind_of(found), str(found["metadata"].get("name", ""))
    where = path(kind, namespace, name) + ("/status" if case.get("subresource") else "")
    try:
        if operation == "DELETE":
            await api.request("DELETE", where, params=_DRY)
            return Answer(True)
        if operation == "UPDATE":
            before, after = await _updated(api, path(kind, namespace, name), where, case["update"])
        else:
            assert found is not None, case["name"]
            before, where = found, path(kind, namespace)
            after = await api.request("POST", where, found, params=_DRY)
            if kind == "Pod":  # what the API server alone makes of it
                plain = path(kind, "kube-system")
                before = await api.request("POST", plain, found, params=_DRY)
    except ApiError as error:
        return Answer(False, str(error))
    return Answer(True, mutated=tuple(changes(*_comparable(case, kind, before, after))))


async def _updated(
    api: RawClient, object_path: str, where: str, update: list[Object]
) -> tuple[Object, Object]:
    """What a patch says, and what becomes of it, of one and the same stored object: controllers
    write on it, too.
    """
    while True:
        before = await api.get(object_path)
        after = await api.request("PATCH", where, update, content_type=JSON_PATCH, params=_DRY)
        again = await api.get(object_path)
        if again["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]:
            return patched(before, update), after


def _comparable(case: Object, kind: str, before: Object, after: Object) -> tuple[Object, Object]:
    """Both without fields that the server or controllers set."""
    pair = (_bare(before), _bare(after))
    operations = case.get("update") or ()
    states = any(one["path"].startswith("/status") for one in operations)
    for one in pair:
        if kind == "Pod" or (operations and not states):
            one.pop("status", None)
        if "generateName" in one.get("metadata", {}):
            one["metadata"].pop("name", None)
        if kind == "Queue":
            one.get("status", {}).pop("allocated", None)
    return without_empty(pair[0]), without_empty(pair[1])


def _bare(found: Object) -> Object:
    result = copy.deepcopy(found)
    metadata = result.get("metadata", {})
    for key in _SERVER_SET & metadata.keys():
        del metadata[key]
    return result


async def _removed(api: RawClient, found: Object, namespace: str) -> None:
    kind = kind_of(found)
    inside = None if kind in CLUSTER_WIDE else namespace
    where = path(kind, inside, found["metadata"]["name"])
    body: Object = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}

    async def gone() -> bool:
        """A queue with children is refused until they are gone."""
        try:
            await api.delete(where, body)
            await api.get(where)
        except ApiError as error:
            return error.status == 404
        return False

    await eventually(gone, because=f"{where} is gone")


async def _ignoring(status: int, request: Awaitable[object]) -> None:
    try:
        await request
    except ApiError as error:
        if error.status != status:
            raise


async def _main(only: str, kubeconfig: Path) -> int:
    count = bad = 0
    async with RawClient(kubeconfig) as api:
        for name in themes("admission"):
            async for one in play(api, name.partition("/")[2], only):
                count += 1
                bad += one.differs
                if one.differs:
                    sys.stdout.write(f"{one.key}: expected {one.expected}\n    given {one.given}\n")
                    sys.stdout.flush()
    sys.stdout.write(f"{count} cases, {bad} differ\n")
    return 1 if bad else 0


def write_groups(folder: Path) -> Path:
    """The admission configuration file of the recordings."""
    import yaml

    conf = folder / "admission.yaml"
    conf.write_text(yaml.safe_dump(read("admission/pod")["admissionConf"]))
    return conf


def main() -> int:
    """Play what the command line chooses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose KIND/CASE matches")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, control_plane() as plane:
        plane.install_crds(CRDS_DIR)
        folder = Path(name)
        with suite(plane, folder, f"--admission-conf={write_groups(folder)}"):
            return asyncio.run(_main(arguments.only, plane.admin_kubeconfig))


if __name__ == "__main__":
    sys.exit(main())
