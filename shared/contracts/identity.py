"""Names that every service derives the same way from the same facts."""

import functools
import hashlib

from shared.model.objects import GROUP_NAME_SCOPE


@functools.lru_cache(maxsize=16_384)  # asked for each record and verdict of an attempt
def gang_trace_id(root: str, attempt: int) -> str:
    """Trace id of one attempt (1 or more) of one gang, 32 hexadecimal digits. `root` is the group's
    `trace_root`, or the gang's id when it has none.

    Derived, not carried: any service that knows gang and attempt can add spans to the same trace,
    also after a restart.
    """
    return hashlib.sha256(f"gang:{root}:{attempt}".encode()).hexdigest()[:32]


def root_span_id(trace_id: str) -> str:
    """Id of the root span of a gang's trace, 16 hexadecimal digits."""
    return span_id(trace_id, "gang")


def span_id(trace_id: str, name: str, key: str = "") -> str:
    """16 hexadecimal digits; the same arguments give the same id everywhere."""
    text = f"{trace_id}:{name}:{key}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def traceparent_of(trace_id: str) -> str:
    """The W3C traceparent that names a gang's trace by its root span."""
    return f"00-{trace_id}-{root_span_id(trace_id)}-01"


def nameless_gang_id(scope: str, namespace: str, name: str) -> str:
    """Id of a gang that has neither an object nor an owner with a UID: a hash, safe as a token of a
    subject.
    """
    # Ids in the logs of older versions, which knew one scope, stay.
    known = "" if scope == GROUP_NAME_SCOPE else scope
    return hashlib.sha256(f"{known}\n{namespace}\n{name}".encode()).hexdigest()[:32]
