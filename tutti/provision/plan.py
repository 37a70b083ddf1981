"""The wanted Secrets, as a function of the stored ones and the time. Pure.

Keys of users are created once and never changed. Certificates are renewed long before they expire,
the CA in two steps, so that every client trusts a certificate before it is used:

1. a year before the CA expires, the next CA is created, and all clients trust both;
2. a day later, when all clients have it, the next CA becomes the CA, and signs for the server; the
   former CA is trusted until it expires.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from shared.bus.authorization import BadSeed, authorization, new_seed, public_key
from shared.bus.permissions import User
from shared.runtime.certificate_authority import (
    BACKDATED,
    Issued,
    Unreadable,
    is_good,
    issue,
    new_authority,
    read,
)
from tutti.api.failures import Refusal
from tutti.provision import CA, SERVER

CA_LIFETIME: Final = timedelta(days=3650)
CA_RENEWED_BEFORE: Final = timedelta(days=365)
#: Kubelets refresh mounted Secrets within two minutes; if this runs less often, it takes longer.
CA_OVERLAP: Final = timedelta(days=1)
SERVER_LIFETIME: Final = timedelta(days=365)
SERVER_RENEWED_BEFORE: Final = timedelta(days=120)

SEED_KEY: Final = "seed"
CA_KEY: Final = "ca.crt"

Kept = Mapping[str, bytes]
"""The content of one Secret, by key."""

Stored = Mapping[str, Kept]
"""All Secrets, by user, and as `CA` and `SERVER`."""


class BadSecret(Refusal):
    """A stored value is not valid. It is not replaced, since clients have its counterpart; the
    message has its place.
    """


class _Trust(msgspec.Struct, frozen=True):
    """The CA, the next one, and the former ones."""

    current: Issued
    coming: Issued | None
    former: tuple[x509.Certificate, ...]

    def bundle(self) -> bytes:
        """The CAs to trust, as PEM."""
        coming = (self.coming.certificate,) if self.coming is not None else ()
        return _pem((self.current.certificate, *coming, *self.former))

    def kept(self) -> dict[str, bytes]:
        """The content of its Secret."""
        kept = {CA_KEY: self.current.certificate_pem, "ca.key": self.current.key_pem}
        if self.coming is not None:
            kept |= {"next.crt": self.coming.certificate_pem, "next.key": self.coming.key_pem}
        if self.former:
            kept["former.crt"] = _pem(self.former)
        return kept


def plan(
    users: Iterable[User], addresses: tuple[str, ...], stored: Stored, now: datetime
) -> dict[str, dict[str, bytes]]:
    """The wanted Secrets, of users and of servers at these DNS names and IP addresses; `now` is the
    instant at which validity is checked.

    Raises:
        BadSecret: A stored value is not valid.
    """
    trust = _trust(stored.get(CA, {}), now)
    bundle = trust.bundle()
    users = tuple(users)
    seeds = {user.name: _seed(user.name, stored.get(user.name, {})) for user in users}
    publics = {name: public for name, (_, public) in seeds.items()}
    certificate, key = _server(trust.current, addresses, stored.get(SERVER, {}), now)
    return {
        CA: trust.kept(),
        **{name: {SEED_KEY: seed, CA_KEY: bundle} for name, (seed, _) in seeds.items()},
        SERVER: {
            CA_KEY: bundle,
            "tls.crt": certificate,
            "tls.key": key,
            "authorization.conf": authorization(users, publics).encode(),
        },
    }


def _trust(kept: Kept, now: datetime) -> _Trust:
    if not kept:
        return _Trust(_new_ca(now), None, ())
    current = _read(CA, kept, "ca")
    coming = _read(CA, kept, "next") if "next.crt" in kept else None
    former = _certificates(kept.get("former.crt", b""))
    if coming is not None and now >= coming.certificate.not_valid_before_utc + (
        BACKDATED + CA_OVERLAP
    ):
        former = (current.certificate, *former)
        current, coming = coming, None
    if coming is None and now > current.certificate.not_valid_after_utc - CA_RENEWED_BEFORE:
        coming = _new_ca(now)
    living = tuple(certificate for certificate in former if certificate.not_valid_after_utc > now)
    return _Trust(current, coming, living)


def _new_ca(now: datetime) -> Issued:
    return new_authority("tutti-nats-ca", now, CA_LIFETIME)


def _seed(user: str, kept: Kept) -> tuple[bytes, str]:
    seed = kept.get(SEED_KEY) or new_seed().encode()
    try:
        return seed, public_key(seed.decode())
    except (BadSeed, UnicodeDecodeError) as error:
        raise BadSecret(f"{user}, key {SEED_KEY}: {error}") from error


def _server(
    authority: Issued, addresses: tuple[str, ...], kept: Kept, now: datetime
) -> tuple[bytes, bytes]:
    """The server's certificate and key: the stored ones while they are valid."""
    try:
        issued = read(kept.get("tls.crt", b""), kept.get("tls.key", b""))
    except Unreadable:
        issued = None
    until = now + SERVER_RENEWED_BEFORE
    if issued is None or not is_good(issued.certificate, authority.certificate, addresses, until):
        issued = issue(authority, "tutti-nats", addresses, now, SERVER_LIFETIME, for_peers=True)
    return issued.certificate_pem, issued.key_pem


def _read(name: str, kept: Kept, part: str) -> Issued:
    try:
        return read(kept.get(f"{part}.crt", b""), kept.get(f"{part}.key", b""))
    except Unreadable as error:
        raise BadSecret(f"{name}, keys {part}.crt and {part}.key: {error}") from error


def _certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    if not pem:
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError as error:
        raise BadSecret(f"{CA}, key former.crt: {error}") from error


def _pem(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(
        certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates
    )
