"""The NATS server's side of `permissions`: keys of users, and the file that distinguishes them.

A user proves itself by an nkey (Ed25519): the server knows public keys only, so its configuration
holds no secret.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import nkeys

from shared.bus.permissions import User, at_services

_SEED_BYTES: Final = 32
#: For how long a request may be answered: longer than any client waits.
_ANSWER_WITHIN: Final = "1m"
#: Account of the services, and of the streams.
SERVICES: Final = "TUTTI"
_OPERATORS: Final = "TUTTI_PEOPLE"


class BadSeed(Exception):
    """The text is no seed of a user's nkey."""


def new_seed() -> str:
    """The secret of a new user, as a credentials file holds it."""
    seed: bytes = nkeys.encode_seed(secrets.token_bytes(_SEED_BYTES), nkeys.PREFIX_BYTE_USER)
    return seed.decode()


def public_key(seed: str) -> str:
    """A user's entry in the server's configuration. Raises BadSeed."""
    try:
        key = nkeys.from_seed(bytearray(seed.strip().encode()))
        public = bytes(key.public_key)
    except (nkeys.NkeysError, ValueError) as error:
        raise BadSeed(f"no nkey seed: {error}") from error
    return public.decode()


def authorization(users: Sequence[User], public_keys: Mapping[str, str]) -> str:
    """A file for `include` in the server's configuration: the users (of `permissions.users`), by
    their public keys, and their permissions.

    Streams are in the account of the services. Users that are apart send requests there through
    imports, so that a subject which they name for the answer has no meaning in that account.
    """

    def entries(apart: bool) -> list[dict[str, Any]]:
        return [
            {"nkey": public_keys[user.name], "permissions": _permissions(user)}
            for user in users
            if user.apart is apart
        ]

    imported = sorted({subject for user in users if user.apart for subject in user.publish})
    accounts = {
        SERVICES: {
            "jetstream": "enabled",
            "users": entries(apart=False),
            # Several services may answer one request.
            "exports": [
                {"service": at_services(subject), "response_type": "stream"} for subject in imported
            ],
        },
        _OPERATORS: {
            "users": entries(apart=True),
            "imports": [
                {"service": {"account": SERVICES, "subject": at_services(subject)}, "to": subject}
                for subject in imported
            ],
        },
    }
    # JSON is this configuration language, too.
    return f"accounts: {json.dumps(accounts, indent=1)}\n"


def _permissions(user: User) -> dict[str, Any]:
    granted: dict[str, Any] = {"publish": list(user.publish), "subscribe": list(user.subscribe)}
    if user.answers:
        granted["allow_responses"] = {"max": 1, "expires": _ANSWER_WITHIN}
    return granted
