"""Our own authority and what it signs, judged by the TLS library."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.runtime.certificate_authority import (
    Issued,
    Unreadable,
    is_good,
    issue,
    new_authority,
    read,
)

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def test_what_was_made_can_be_read_again() -> None:
    made = new_authority("ca", NOW, DAY)
    assert read(made.certificate_pem, made.key_pem).certificate == made.certificate


@pytest.mark.parametrize("spoil", ["certificate", "key", "other key"])
def test_a_certificate_without_its_key_is_refused(spoil: str) -> None:
    made, other = new_authority("ca", NOW, DAY), new_authority("ca", NOW, DAY)
    certificate = b"nonsense" if spoil == "certificate" else made.certificate_pem
    key = {"key": b"nonsense", "other key": other.key_pem}.get(spoil, made.key_pem)
    with pytest.raises(Unreadable):
        read(certificate, key)


def test_a_certificate_is_good_for_its_issuer_its_addresses_and_its_time() -> None:
    ca, other = new_authority("ca", NOW, 9 * DAY), new_authority("ca", NOW, 9 * DAY)
    made = issue(ca, "server", ["here", "10.0.0.1"], NOW, 5 * DAY).certificate

    assert is_good(made, ca.certificate, ["10.0.0.1", "here"], NOW + 4 * DAY)
    assert not is_good(made, ca.certificate, ["here"], NOW + 4 * DAY)
    assert not is_good(made, ca.certificate, ["10.0.0.1", "here"], NOW + 6 * DAY)
    assert not is_good(made, other.certificate, ["10.0.0.1", "here"], NOW)
    assert not is_good(ca.certificate, ca.certificate, ["here"], NOW)


@pytest.mark.parametrize("signer", [0, 1])
def test_a_client_that_trusts_two_authorities_of_one_name_finds_the_right_one(
    tmp_path: Path, signer: int
) -> None:
    authorities = [new_authority("ca", NOW, DAY) for _ in range(2)]
    server = issue(authorities[signer], "server", ["here"], NOW, DAY)
    trusting = ssl.create_default_context(
        cadata="".join(one.certificate_pem.decode() for one in authorities)
    )

    shake_hands(trusting, server, tmp_path / "server.pem")

    stranger = issue(new_authority("ca", NOW, DAY), "server", ["here"], NOW, DAY)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(trusting, stranger, tmp_path / "stranger.pem")


def shake_hands(client_context: ssl.SSLContext, server: Issued, path: Path) -> None:
    """A TLS handshake in memory."""
    path.write_bytes(server.key_pem + server.certificate_pem)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(path)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(back, there, server_hostname="here")
    answering = server_context.wrap_bio(there, back, server_side=True)
    for side in (client, answering, client, answering, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
