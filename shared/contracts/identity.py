"""Names that every service derives the same way from the same facts."""

import hashlib


def gang_trace_id(gang_id: str, attempt: int) -> str:
    """Trace id of one attempt of one gang, 32 hexadecimal digits.

    Derived, not carried: any service that knows gang and attempt can add spans to the same trace,
    also after a restart.
    """
    return hashlib.sha256(f"gang:{gang_id}:{attempt}".encode()).hexdigest()[:32]


def nameless_gang_id(dialect: str, namespace: str, name: str) -> str:
    """Id of a gang that has neither an object nor an owner with a UID: a hash, safe as a token of a
    subject.
    """
    return hashlib.sha256(f"{dialect}\n{namespace}\n{name}".encode()).hexdigest()[:32]
