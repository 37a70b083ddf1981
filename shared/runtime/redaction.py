"""Removes secrets from text for operators: log lines, and files of a bundle.

Nothing here writes a secret on purpose; but an address may hold a password, and an error may quote
what it was about. So this is the last check, not the only one. Pure.
"""

import re
from typing import Final

#: Stands where a secret was.
HIDDEN: Final = "***"

_SECRET: Final = re.compile(
    # Name and password in an address.
    r"(?<=://)[^/\s@\"']+(?=@)"
    # Tokens: as a header has them, and JWTs wherever they are.
    r"|(?<=bearer )[A-Za-z0-9._~+/=-]{8,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    # NATS seeds: of accounts, clusters, operators, servers, users, curves.
    r"|\bS[ACNOUX][A-Z2-7]{56}\b"
    # Keys, up to where the line ends or the key does.
    r"|(?<=PRIVATE KEY-----).+?(?=-----END|$)"
    # A kubeconfig's.
    r"|(?<=client-key-data: )\S+",
    re.IGNORECASE | re.DOTALL,
)


def without_secrets(text: str) -> str:
    """The same text, with HIDDEN in place of what looks like a secret."""
    return _SECRET.sub(HIDDEN, text)
