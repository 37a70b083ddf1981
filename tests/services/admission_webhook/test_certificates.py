"""Certificates are replaced while connections live, and a bad one never is."""

import asyncio
import shutil
import ssl
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import aiohttp
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from shared.runtime.serving_certificate import (
    CertificateFiles,
    CertificateProblem,
    ServingCertificate,
)
from tests.services.admission_webhook.reviews import a_pod, review
from tests.services.admission_webhook.serving import HOST, Webhook, own_certificate
from tests.support.waiting import eventually

PARTS = ("cert.pem", "key.pem", "ca.pem")


def write(folder: Path, authority: trustme.CA, ends: datetime | None = None) -> CertificateFiles:
    """A pair in separate files, as Kubernetes mounts them."""
    leaf = authority.issue_cert(HOST, not_after=ends)
    leaf.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    leaf.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return files(folder)


def files(folder: Path) -> CertificateFiles:
    certificate, key, ca = (folder / part for part in PARTS)
    return CertificateFiles(certificate=certificate, key=key, ca=ca)


def test_nothing_is_loaded_while_nothing_changed(tmp_path: Path) -> None:
    serving = ServingCertificate(write(tmp_path, trustme.CA()))
    assert not serving.reload()


def test_a_changed_file_is_loaded_and_its_ca_registered(tmp_path: Path) -> None:
    serving = ServingCertificate(write(tmp_path, trustme.CA()))
    other = trustme.CA()
    write(tmp_path, other)
    assert serving.reload()
    assert serving.ca == other.cert_pem.bytes().decode()
    assert not serving.reload()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda folder: (folder / "key.pem").unlink(), id="a file is missing"),
        pytest.param(lambda folder: (folder / "cert.pem").write_text("no"), id="no PEM"),
        pytest.param(lambda folder: (folder / "ca.pem").write_text("no"), id="no CA"),
        pytest.param(
            lambda folder: (
                trustme.CA().issue_cert(HOST).private_key_pem.write_to_path(folder / "key.pem")
            ),
            id="half of the pair is replaced",
        ),
    ],
)
def test_what_cannot_be_used_is_said_and_the_next_look_mends_it(
    tmp_path: Path, spoil: object
) -> None:
    authority = trustme.CA()
    serving = ServingCertificate(write(tmp_path, authority))
    before = serving.ca
    assert callable(spoil)
    spoil(tmp_path)
    for _ in range(2):
        with pytest.raises(CertificateProblem, match="pem"):
            serving.reload()
    assert serving.ca == before
    write(tmp_path, authority)
    assert serving.reload()


def test_the_expiry_of_the_served_certificate_is_reported_and_follows_a_new_one(
    tmp_path: Path,
) -> None:
    authority = trustme.CA()
    ends = [datetime(2031, 5, 4, tzinfo=UTC), datetime(2030, 5, 4, tzinfo=UTC)]
    serving = ServingCertificate(write(tmp_path, authority, ends[0]))
    assert serving.ends_s == ends[0].timestamp()
    write(tmp_path, authority, ends[1])
    assert serving.reload()
    assert serving.ends_s == ends[1].timestamp()


def test_a_start_with_a_bad_pair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CertificateProblem, match=r"cert\.pem"):
        ServingCertificate(files(tmp_path))


@pytest.mark.slow
async def test_a_rotation_under_load_drops_no_connection(tmp_path: Path) -> None:
    """Kept connections continue, new ones get the new certificate, no request fails; also while
    half of the pair is replaced already.
    """
    webhook = Webhook(tmp_path / "own")
    authority = trustme.CA()
    webhook.certificate = ServingCertificate(write(tmp_path, authority))
    body = review(a_pod())
    answered = {"kept": 0, "fresh": 0}
    serials: list[int] = []

    async def kept(session: aiohttp.ClientSession, stop: asyncio.Event) -> None:
        trust = webhook.trust()
        while not stop.is_set():
            async with session.post(f"{webhook.url}/validate", data=body, ssl=trust) as answer:
                assert (await answer.json())["response"]["allowed"]
            answered["kept"] += 1

    async def fresh(stop: asyncio.Event) -> None:
        trust = webhook.trust()
        port = int(webhook.url.rpartition(":")[2])
        while not stop.is_set():
            reader, writer = await asyncio.open_connection(HOST, port, ssl=trust)
            head = f"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            shown = writer.get_extra_info("peercert")
            serials.append(int(shown["serialNumber"], 16))
            writer.close()
            answered["fresh"] += 1

    async with webhook.running():
        stop = asyncio.Event()
        connector = aiohttp.TCPConnector(limit=8)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as on:
            for _ in range(8):
                on.create_task(kept(session, stop))
            on.create_task(fresh(stop))
            on.create_task(fresh(stop))
            watch = on.create_task(webhook.certificate.watch(lambda: None, every_s=0.01))
            for _ in range(5):
                shown = answered["fresh"]
                leaf = authority.issue_cert(HOST)
                leaf.private_key_pem.write_to_path(tmp_path / "key.pem")
                await asyncio.sleep(0.03)  # half replaced, and looked at
                leaf.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
                await eventually(partial(_more_than, answered, shown + 10))
            stop.set()
            watch.cancel()
    assert len(set(serials)) >= 5, "new connections saw the new certificates"
    assert answered["kept"] > 50


def _more_than(answered: dict[str, int], count: int) -> bool:
    return answered["fresh"] > count


async def test_a_new_ca_is_what_new_clients_must_trust(tmp_path: Path) -> None:
    webhook = Webhook(tmp_path)
    async with webhook.running():
        old = webhook.trust()
        shutil.rmtree(tmp_path)
        own_certificate(tmp_path)
        assert webhook.certificate.reload()
        assert (await webhook.validate(review(a_pod())))["allowed"]
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            async with aiohttp.ClientSession() as session:
                await session.post(f"{webhook.url}/validate", data=b"", ssl=old)


def test_an_encrypted_key_is_an_error_and_no_question_on_the_terminal(tmp_path: Path) -> None:
    found = write(tmp_path, trustme.CA())
    found.key.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(CertificateProblem):
        ServingCertificate(found)


def test_the_context_speaks_nothing_older_than_tls_1_2(tmp_path: Path) -> None:
    serving = ServingCertificate(write(tmp_path, trustme.CA()))
    assert serving.context.minimum_version == ssl.TLSVersion.TLSv1_2
