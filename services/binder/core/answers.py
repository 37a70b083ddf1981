"""What an answer of the API server means for one member: the binder's table of meanings.

In: the status of a Binding's POST (or of its dry run), or the pod as a read returned it. Out: one
word that selects the next step. The text of a message is read only where no status says the same
(webhooks that forbid a dry run, disruption budgets). Whether a 409 is due to our own earlier
binding is decided by reading the pod.
"""

from typing import Final, Literal

import msgspec

from shared.contracts.decisions import Binding

#: Reason of an answer that did not come in time.
TIMEOUT: Final = "Timeout"

PostMeaning = Literal["bound", "gone", "refused", "untested", "read", "again"]
"""bound: written, or (dry run) would be. gone: no such pod. refused: never with this node.
untested: a webhook cannot be dry-run, so the result is unknown. read: 409, the pod must be read.
again: the API server did not decide, retry."""

ReadMeaning = Literal["bound", "gone", "conflict", "free"]
"""bound: on the node decided. gone: no such pod. conflict: it can never be bound as decided. free:
it still can be."""

RemovalMeaning = Literal["done", "gone", "refused", "read", "again"]
"""done: written. gone: no such pod, or one that stays because it has succeeded. refused: never.
read: the pod must be read, it may be another one. again: the API server did not decide, retry."""

#: The API server's words for a webhook whose sideEffects forbid a dry run.
_NO_DRY_RUN: Final = "does not support dry run"

#: Its words for an eviction that a PodDisruptionBudget forbids, and for pods with several budgets.
_BUDGET: Final = "disruption budget"
_BUDGETS: Final = "more than one poddisruptionbudget"
#: Its words before the answer of a webhook, whatever the status.
_WEBHOOK: Final = "admission webhook"

_MEANINGS: Final[dict[int, Literal["gone", "read", "again"]]] = {
    0: "again",
    404: "gone",
    409: "read",
    # Credentials have just expired: the client fetches new ones, and the request may then pass.
    401: "again",
    408: "again",
    429: "again",
}


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The answer to one request; status 0: there was none, and it may have been carried out."""

    status: int
    reason: str = ""
    message: str = ""
    #: The server's Retry-After, 0 when it gave none.
    retry_after_ms: int = 0
    #: The body showed the pod, and the pod has succeeded.
    succeeded: bool = False


class PodView(msgspec.Struct, frozen=True, gc=False):
    """A pod as a read returned it; only the fields that decide about its binding."""

    uid: str
    node: str = ""
    deleting: bool = False
    gated: bool = False
    succeeded: bool = False


def is_shed(answer: Answer) -> bool:
    """Whether the API server shed the request: it was not processed and is not in flight. A 429 of
    a disruption budget or a webhook is about one pod, and is no shedding.
    """
    if answer.status != 429:
        return False
    words = answer.message.lower()
    return _BUDGET not in words and _WEBHOOK not in words


def meaning_of_post(answer: Answer, *, dry_run: bool) -> PostMeaning:
    """The meaning of the answer to a Binding's POST; unknown statuses count as their class."""
    status = answer.status
    if 200 <= status < 300:
        return "bound"
    if dry_run and status == 400 and _NO_DRY_RUN in answer.message.lower():
        return "untested"
    return _meaning(status)


def meaning_of_removal(answer: Answer, *, patch: bool) -> RemovalMeaning:
    """The meaning of the answer to a victim's PATCH or DELETE; as `meaning_of_post`."""
    status = answer.status
    if 200 <= status < 300:
        return "gone" if patch and answer.succeeded else "done"
    if patch and status == 422:
        # "metadata.uid: field is immutable": to a PATCH, another pod is an invalid one.
        return "read"
    return _meaning(status)


def meaning_of_eviction(answer: Answer) -> RemovalMeaning:
    """The meaning of the answer to an eviction or its dry run: a DELETE's, but for budgets. A busy
    server answers 429, too; then it is retried.
    """
    words = answer.message.lower()
    if answer.status == 429 and _BUDGET in words:
        return "refused"
    if answer.status == 500 and _BUDGETS in words:
        return "refused"
    return meaning_of_removal(answer, patch=False)


def _meaning(status: int) -> Literal["gone", "read", "again", "refused"]:
    """The meaning of a status that is no success, for any request."""
    known = _MEANINGS.get(status)
    if known is not None:
        return known
    return "again" if status >= 500 else "refused"


def is_leaving(view: PodView | None, uid: str) -> bool:
    """Whether the pod need not be removed any more: it is gone, being deleted, replaced by another
    one of its name, or has succeeded.
    """
    return view is None or view.uid != uid or view.deleting or view.succeeded


def meaning_of_read(view: PodView | None, binding: Binding) -> ReadMeaning:
    """The meaning of a read; `None`: the API server answered 404."""
    if view is None:
        return "gone"
    if view.uid != binding.uid:
        return "conflict"
    if view.node:
        # Deletion does not unbind it: it is on its node until CLUSTER shows that it is gone.
        return "bound" if view.node == binding.node else "conflict"
    return "conflict" if view.deleting or view.gated else "free"


def conflict_text(view: PodView, binding: Binding) -> str:
    """Why the pod can never be bound as decided."""
    if view.uid != binding.uid:
        return f"pod was re-created: UID is {view.uid}, decided for {binding.uid}"
    if view.node:
        return f'pod is already assigned to node "{view.node}"'
    return "pod is being deleted" if view.deleting else "pod has scheduling gates"
