"""Judges a cluster's objects by the rules of admission, and configurations by the planner's own
reader, in a process of its own: commands never import services.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from shared.admission.judgement import admit, declared_queues
from shared.admission.queue_tree import QueueTree
from shared.admission.rules import ReferenceObjects
from shared.kube.decoding import without_nulls
from shared.kube.resources import Resource
from tutti.api.failures import Refusal
from tutti.api.objects import Object, name_of, namespace_of
from tutti.migrate.cluster_facts import PolicyText, Refused

_PLANNER: Final = "services.gang_planner.checking"


class _CheckedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    error: str
    warnings: tuple[str, ...]


def find_refused(
    objects: Sequence[tuple[Resource, Object]], scheduler_names: tuple[str, ...]
) -> tuple[Refused, ...]:
    """The objects that the webhook's rules would refuse if they were created now; the queues among
    them exist for all of them.
    """
    # Items of a list have no kind.
    stored = [
        {**without_nulls(one), "apiVersion": resource.api_version, "kind": resource.kind}
        for resource, one in objects
    ]
    known = ReferenceObjects(
        scheduler_names=scheduler_names, queues=QueueTree(declared_queues(stored))
    )
    judged = [(one, admit(one, known, with_fields=False)[1]) for one in stored]
    return tuple(
        Refused(kind=one["kind"], name=_name(one), errors=tuple(errors))
        for one, errors in judged
        if errors
    )


async def check_policy(policy: PolicyText) -> PolicyText:
    """The configuration with the planner's error and warnings."""
    answer = await _ask(_PLANNER, policy.text.encode())
    found = msgspec.json.decode(answer, type=_CheckedPolicy)
    return msgspec.structs.replace(policy, error=found.error, warnings=found.warnings)


async def _ask(module: str, question: bytes) -> bytes:
    """Raises Refusal when the process ends with an error, which is a bug."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate(question)
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        last = err.decode(errors="replace").strip().splitlines()[-1:]
        raise Refusal(f"{module} ended with status {process.returncode}: {' '.join(last)}")
    return out


def _name(one: Object) -> str:
    namespace = namespace_of(one)
    return f"{namespace}/{name_of(one)}" if namespace else name_of(one)
