"""Creates the credentials with which services connect to NATS: keys of users, the server's file of
users, a CA and the server's certificate.

`plan` is a pure function from the stored Secrets to the wanted ones. `stores` keeps them in
Secrets, or in files, for an installation without Kubernetes' Secrets; `nats_process` makes a
running server reload its files. Provisioning is idempotent: valid keys and certificates are kept.
"""

from collections.abc import Iterable
from typing import Final

from shared.bus.permissions import User

CA: Final = "ca"
SERVER: Final = "server"


def names(users: Iterable[User]) -> tuple[str, ...]:
    """The names of all Secrets in the order of writing: the server's is last, it refers to all."""
    return (CA, *(user.name for user in users), SERVER)
