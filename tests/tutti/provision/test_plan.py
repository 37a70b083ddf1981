"""What is provisioned, over years."""

import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from shared.bus.authorization import public_key
from shared.bus.permissions import User
from tutti.provision.plan import BadSecret, plan

NOW = datetime(2026, 11, 21, tzinfo=UTC)
DAY = timedelta(days=1)
USERS = tuple(
    User(name=name, publish=(f"{name}.>",), subscribe=(), answers=False) for name in ("one", "two")
)
Everything = dict[str, dict[str, bytes]]


def planned(
    stored: Everything | None = None, now: datetime = NOW, addresses: tuple[str, ...] = ("here",)
) -> Everything:
    return plan(USERS, addresses, stored or {}, now)


def certificates(pem: bytes) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem)


def trusted(stored: Everything) -> int:
    """How many CAs every client is given; each of them is one that a TLS library takes."""
    (bundle,) = {content["ca.crt"] for name, content in stored.items() if name != "ca"}
    context = ssl.create_default_context(cadata=bundle.decode())
    assert len(context.get_ca_certs()) == len(certificates(bundle))
    return len(certificates(bundle))


def issuer_of_server(stored: Everything) -> x509.Certificate:
    (server,) = certificates(stored["server"]["tls.crt"])
    for ca in certificates(stored["server"]["ca.crt"]):
        with suppress(ValueError, InvalidSignature):  # another name, or a key that did not sign it
            server.verify_directly_issued_by(ca)
            return ca
    raise AssertionError("no trusted CA has signed it")


def test_at_first_every_user_gets_a_key_and_the_server_knows_all_of_them() -> None:
    stored = planned()

    assert list(stored) == ["ca", "one", "two", "server"]
    known = stored["server"]["authorization.conf"].decode()
    for name in ("one", "two"):
        assert public_key(stored[name]["seed"].decode()) in known
        assert "ca.key" not in stored[name]
    assert "ca.key" not in stored["server"]
    assert trusted(stored) == 1
    issuer_of_server(stored)


def test_what_is_there_and_good_stays() -> None:
    first = planned()

    assert planned(first, NOW + 200 * DAY) == first


def test_a_user_that_is_new_gets_a_key_and_the_others_keep_theirs() -> None:
    first = planned()
    before = {name: content for name, content in first.items() if name != "two"}

    after = planned(before)

    assert after["one"] == first["one"]
    assert after["two"]["seed"] != first["two"]["seed"]
    assert (
        public_key(after["two"]["seed"].decode()) in after["server"]["authorization.conf"].decode()
    )


def test_the_servers_certificate_is_renewed_by_the_same_ca_months_before_its_end() -> None:
    first = planned()

    after = planned(first, NOW + 250 * DAY)

    assert after["server"]["tls.crt"] != first["server"]["tls.crt"]
    assert after["one"] == first["one"]
    assert issuer_of_server(after) == issuer_of_server(first)


def test_other_addresses_make_another_certificate() -> None:
    first = planned()
    after = planned(first, addresses=("here", "127.0.0.1"))
    (server,) = certificates(after["server"]["tls.crt"])
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["here", "127.0.0.1"]


def test_clients_trust_every_certificate_a_day_before_it_is_used() -> None:
    """Twenty years, looked at once a month: both CAs are trusted before and after the change."""
    stored, now = planned(), NOW
    cas = {stored["ca"]["ca.crt"]}
    for _ in range(12 * 20):
        before, now = stored, now + 30 * DAY
        stored = planned(before, now)
        signer = issuer_of_server(stored)
        assert signer in certificates(before["one"]["ca.crt"])
        # And a client that is a month late still trusts the former one while it may be met.
        assert issuer_of_server(before) in certificates(stored["one"]["ca.crt"])
        for one in certificates(stored["one"]["ca.crt"]):
            assert one.not_valid_after_utc > now
        (server,) = certificates(stored["server"]["tls.crt"])
        assert server.not_valid_after_utc > now + 30 * DAY
        assert trusted(stored) <= 2
        cas.add(stored["ca"]["ca.crt"])
    assert len(cas) == 3
    assert stored["one"]["seed"] == planned(stored)["one"]["seed"]


def test_a_next_ca_does_not_sign_before_a_day_has_passed() -> None:
    late = NOW + 3650 * DAY - 300 * DAY
    both = planned(planned(), late)
    assert trusted(both) == 2
    assert "next.key" in both["ca"]

    soon = planned(both, late + 0.5 * DAY)
    later = planned(both, late + 2 * DAY)

    assert soon["ca"] == both["ca"]
    assert later["ca"]["ca.crt"] == both["ca"]["next.crt"]
    assert "next.key" not in later["ca"]
    assert later["ca"]["former.crt"] == both["ca"]["ca.crt"]


@pytest.mark.parametrize(
    ("name", "key", "said"),
    [
        ("one", "seed", "one, key seed: no nkey seed"),
        ("ca", "ca.key", "ca, keys ca.crt and ca.key"),
        ("ca", "ca.crt", "ca, keys ca.crt and ca.key"),
        ("ca", "former.crt", "ca, key former.crt"),
        ("ca", "next.crt", "ca, keys next.crt and next.key"),
    ],
)
def test_files_that_other_processes_hold_the_counterpart_of_are_not_made_again(
    name: str, key: str, said: str
) -> None:
    stored = planned()
    stored[name] = stored[name] | {key: b"nonsense"}

    with pytest.raises(BadSecret, match=said):
        planned(stored)


def test_a_server_certificate_that_is_none_is_made_again() -> None:
    stored = planned()
    stored["server"] = stored["server"] | {"tls.crt": b"nonsense"}
    issuer_of_server(planned(stored))
