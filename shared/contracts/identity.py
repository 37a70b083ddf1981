"""Names that every service derives the same way from the same facts."""

import functools
import hashlib
import re
from typing import Final

from shared.model.gang_keys import GangKey
from shared.model.objects import GROUP_NAME_SCOPE

#: Texts that are safe as a token of a subject, and as a part of an object's name, a file's or a
#: label's: UUIDs as the API server writes them, and our hashes.
_SAFE_TOKEN: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@functools.lru_cache(maxsize=16_384)  # asked for each record and verdict of an attempt
def gang_trace_id(root: str, attempt: int) -> str:
    """Trace id of one attempt (1 or more) of one gang, 32 hexadecimal digits. `root` is the group's
    `trace_root`, or the gang's id when it has none.

    Derived, not carried: any service that knows gang and attempt can add spans to the same trace,
    also after a restart.
    """
    return hashlib.sha256(f"gang:{root}:{attempt}".encode()).hexdigest()[:32]


def job_trace_root(namespace: str, uid: str) -> str:
    """The root of the trace that begins with a Job's admission. With the namespace, because a group
    of another one may name the Job's UID as its owner.
    """
    return f"{namespace}/{uid}"


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
    """Id of a gang that has no object: a hash, safe as a token of a subject."""
    # Ids in the logs of older versions, which knew one scope, stay.
    known = "" if scope == GROUP_NAME_SCOPE else scope
    return _hash(f"{known}\n{namespace}\n{name}")


def safe_token(text: str) -> str:
    """A user's text itself if it is safe as a token of a subject and as a part of an object's name,
    else its hash, which is.
    """
    return text if _SAFE_TOKEN.fullmatch(text) else _hash(text)


def id_of_key(key: GangKey) -> str:
    """Id of a gang without an object of its own: safe as a token of a subject, and different for
    gangs of different namespaces. An object's own UID is the API server's; every other part of a
    key may be a user's text.
    """
    scope, namespace, name = key
    return safe_token(name) if scope == "pod" else nameless_gang_id(scope, namespace, name)


def _hash(text: str) -> str:
    # An API server's answer may have half of a surrogate pair, which is no UTF-8.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
