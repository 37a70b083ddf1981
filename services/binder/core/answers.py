"""What an answer of the API server means for one member: the binder's table of meanings.

In: the status of a Binding's POST (or of its dry run), or what a read of the pod showed. Out: one
word that says what to do next. Nothing here reads a message's text, with one exception (a webhook
that cannot be dry-run says so only in words): whether a 409 was our own earlier binding is decided
by reading the pod.
"""

from typing import Final, Literal

import msgspec

from shared.contracts.decisions import Binding

#: Reason of an answer that did not come in time.
TIMEOUT: Final = "Timeout"

PostMeaning = Literal["bound", "gone", "refused", "untested", "read", "again"]
"""bound: written, or (dry run) would be. gone: no such pod. refused: never with this node.
untested: a webhook cannot be dry-run, so nothing is known. read: 409, only the pod itself shows it.
again: no verdict of the API server."""

SightMeaning = Literal["bound", "gone", "conflict", "free"]
"""bound: on the node decided. gone: no such pod. conflict: it can never be bound as decided. free:
it still could be."""

RemovalMeaning = Literal["done", "gone", "refused", "read", "again"]
"""done: written. gone: no such pod, or one that is left because it has succeeded. refused: never.
read: only the pod itself shows whether it is another one. again: no verdict of the API
server."""

#: The API server's words for a webhook whose sideEffects forbid a dry run.
_NO_DRY_RUN: Final = "does not support dry run"

#: Its words for an eviction that a PodDisruptionBudget forbids, and for pods with several of them.
_BUDGET: Final = "disruption budget"
_BUDGETS: Final = "more than one poddisruptionbudget"
#: Its words for what a webhook says, with whatever status.
_WEBHOOK: Final = "admission webhook"

_MEANINGS: Final[dict[int, PostMeaning]] = {
    404: "gone",
    409: "read",
    # Credentials that have just expired: the client fetches new ones, the same request may then
    # pass.
    401: "again",
    408: "again",
    429: "again",
}


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What came back for one request; status 0: nothing did, it may have been carried out."""

    status: int
    reason: str = ""
    message: str = ""
    #: The server's Retry-After, 0 when it gave none.
    retry_after_ms: int = 0
    #: It showed the pod, and the pod has succeeded.
    succeeded: bool = False


class Sight(msgspec.Struct, frozen=True, gc=False):
    """A pod as a read showed it; only what decides about its binding."""

    uid: str
    node: str = ""
    deleting: bool = False
    gated: bool = False
    succeeded: bool = False


def is_shed(answer: Answer) -> bool:
    """Say whether the API server had no time for the request: nothing was looked at, nothing is
    in flight. A budget and a webhook answer 429, too, of one pod.
    """
    if answer.status != 429:
        return False
    words = answer.message.lower()
    return _BUDGET not in words and _WEBHOOK not in words


def meaning_of_post(answer: Answer, *, dry_run: bool) -> PostMeaning:
    """Judge the answer to a Binding's POST; never raises, unknown statuses are the nearest
    class's.
    """
    status = answer.status
    if 200 <= status < 300:
        return "bound"
    if dry_run and status == 400 and _NO_DRY_RUN in answer.message.lower():
        return "untested"
    known = _MEANINGS.get(status)
    if known is not None:
        return known
    return "again" if status == 0 or status >= 500 else "refused"


def meaning_of_removal(answer: Answer, *, patch: bool) -> RemovalMeaning:
    """Judge the answer to a victim's PATCH or DELETE; as `meaning_of_post`."""
    status = answer.status
    if 200 <= status < 300:
        return "gone" if patch and answer.succeeded else "done"
    if patch and status == 422:
        # "metadata.uid: field is immutable": to a PATCH, another pod is an invalid one.
        return "read"
    match _MEANINGS.get(status):
        case "gone" | "read" | "again" as known:
            return known
        case _:
            return "again" if status == 0 or status >= 500 else "refused"


def meaning_of_eviction(answer: Answer) -> RemovalMeaning:
    """Judge the answer to an eviction or its dry run: as a DELETE's, but for budgets. A server that
    is busy answers 429, too, and is asked again.
    """
    words = answer.message.lower()
    if answer.status == 429 and _BUDGET in words:
        return "refused"
    if answer.status == 500 and _BUDGETS in words:
        return "refused"
    return meaning_of_removal(answer, patch=False)


def is_leaving(sight: Sight | None, uid: str) -> bool:
    """Say whether a read showed that there is nothing left to do: gone, going, another pod, or one
    that has succeeded.
    """
    return sight is None or sight.uid != uid or sight.deleting or sight.succeeded


def meaning_of_sight(sight: Sight | None, binding: Binding) -> SightMeaning:
    """Judge what a read showed; `None`: the API server answered 404."""
    if sight is None:
        return "gone"
    if sight.uid != binding.uid:
        return "conflict"
    if sight.node:
        # Being deleted does not unbind it: it is on its node until it is gone, which CLUSTER will
        # show.
        return "bound" if sight.node == binding.node else "conflict"
    return "conflict" if sight.deleting or sight.gated else "free"


def conflict_text(sight: Sight, binding: Binding) -> str:
    """Say in words why `sight` can never be bound as decided."""
    if sight.uid != binding.uid:
        return f"pod was re-created: UID is {sight.uid}, decided for {binding.uid}"
    if sight.node:
        return f'pod is already assigned to node "{sight.node}"'
    return "pod is being deleted" if sight.deleting else "pod has scheduling gates"
