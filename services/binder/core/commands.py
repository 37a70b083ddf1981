"""The commands of the state machines to the shell, and their limits."""

from typing import TypeAlias

import msgspec

from shared.contracts.outcomes import Outcome


class Limits(msgspec.Struct, frozen=True):
    """How long and how often a member and a decision are tried."""

    #: Requests that write, of one member in one phase. With the delays below they last about seven
    #: seconds: an API server restarts in less.
    posts_max: int = 8
    #: Reads of one pod until its state counts as unknown.
    reads_max: int = 3
    #: No request of a member is sent later than this after its first answer.
    patience_ms: int = 8_000
    backoff_ms_min: int = 100
    backoff_ms_max: int = 2_000
    #: How long controllers may take to complete a decision's claims.
    claims_ms: int = 120_000
    #: How long devices may take to be attached: until their binding conditions are true.
    attaching_ms: int = 600_000
    #: Deliveries that are carried out; later ones only read the pods.
    deliveries_max: int = 5


class _Request(msgspec.Struct, frozen=True, gc=False):
    """Is sent after `delay_ms`."""

    index: int
    delay_ms: int = 0


class Post(_Request, frozen=True, gc=False):
    """Send the Binding of member `index`."""

    dry_run: bool = False


class Mark(_Request, frozen=True, gc=False):
    """Write the condition into the pod of victim `index`."""


class Delete(_Request, frozen=True, gc=False):
    """Delete the pod of victim `index`."""


class Evict(_Request, frozen=True, gc=False):
    """Evict the pod of victim `index`, or dry-run that."""

    dry_run: bool = False


class Read(_Request, frozen=True, gc=False):
    """Read the pod of member or victim `index`."""


class Prepare(_Request, frozen=True, gc=False):
    """Continue preparation `index`; `again`: it was written before."""

    again: bool = False


class Undo(_Request, frozen=True, gc=False):
    """Undo preparation `index` unless a controller has completed it."""


class LookUp(msgspec.Struct, frozen=True, gc=False):
    """Read whether this decision already has an outcome, and if not, claim it: from then on no
    earlier delivery may store one.
    """


class Finish(msgspec.Struct, frozen=True):
    """Publish this outcome, then acknowledge."""

    outcome: Outcome


class Forget(msgspec.Struct, frozen=True, gc=False):
    """Acknowledge only: another delivery has finished the decision."""


Request: TypeAlias = Post | Mark | Delete | Evict | Read | Prepare | Undo
"""A request to the API server."""

Command: TypeAlias = Request | LookUp | Finish | Forget
