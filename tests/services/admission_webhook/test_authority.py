"""Our own CA and certificate: made once, kept while good, made again when not."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from shared.runtime.serving_certificate import (
    CA_FILE,
    CA_KEY_FILE,
    CA_LIFETIME,
    SERVING_FILE,
    SERVING_LIFETIME,
    ensure_certificate,
)

NAMES = ("127.0.0.1", "localhost")
NOW = datetime(2026, 5, 1, tzinfo=UTC)
FILES = (CA_FILE, CA_KEY_FILE, SERVING_FILE)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def certificate(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / SERVING_FILE).read_bytes())


def test_what_is_made_is_signed_by_the_ca_for_the_names_and_loads(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "certs"
    assert ensure_certificate(folder, "tutti-admission", NAMES, NOW)
    names = certificate(folder).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert [str(name.value) for name in names.value] == list(NAMES)
    ca = x509.load_pem_x509_certificate((folder / CA_FILE).read_bytes())
    certificate(folder).verify_directly_issued_by(ca)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(folder / SERVING_FILE)


def test_only_the_owner_can_read_the_keys(tmp_path: Path) -> None:
    ensure_certificate(tmp_path / "certs", "tutti-admission", NAMES, NOW)
    modes = {(tmp_path / "certs" / name).stat().st_mode & 0o777 for name in FILES}
    assert modes == {0o600}
    assert (tmp_path / "certs").stat().st_mode & 0o777 == 0o700


def test_a_restart_finds_everything_as_it_was(tmp_path: Path) -> None:
    ensure_certificate(tmp_path, "tutti-admission", NAMES, NOW)
    before = contents(tmp_path)
    assert not ensure_certificate(tmp_path, "tutti-admission", NAMES, NOW + timedelta(days=1))
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("later", "names"),
    [
        pytest.param(SERVING_LIFETIME - timedelta(days=20), NAMES, id="it ends in three weeks"),
        pytest.param(timedelta(0), ("webhook.tutti.svc",), id="it is for another name"),
    ],
)
def test_a_certificate_is_renewed_under_the_same_ca_when(
    tmp_path: Path, later: timedelta, names: tuple[str, ...]
) -> None:
    ensure_certificate(tmp_path, "tutti-admission", NAMES, NOW)
    before = contents(tmp_path)
    assert ensure_certificate(tmp_path, "tutti-admission", names, NOW + later)
    after = contents(tmp_path)
    assert after[CA_FILE] == before[CA_FILE]
    assert after[SERVING_FILE] != before[SERVING_FILE]


def test_a_ca_that_would_not_outlive_what_it_signs_is_made_again(tmp_path: Path) -> None:
    ensure_certificate(tmp_path, "tutti-admission", NAMES, NOW)
    before = contents(tmp_path)
    assert ensure_certificate(
        tmp_path, "tutti-admission", NAMES, NOW + CA_LIFETIME - timedelta(days=100)
    )
    assert contents(tmp_path)[CA_FILE] != before[CA_FILE]


@pytest.mark.parametrize("name", FILES)
def test_a_broken_file_is_mended(tmp_path: Path, name: str) -> None:
    ensure_certificate(tmp_path, "tutti-admission", NAMES, NOW)
    (tmp_path / name).write_bytes(b"no PEM")
    assert ensure_certificate(tmp_path, "tutti-admission", NAMES, NOW)
    assert not ensure_certificate(tmp_path, "tutti-admission", NAMES, NOW)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "certs").write_text("a file in the way")
    with pytest.raises(OSError, match="certs"):
        ensure_certificate(tmp_path / "certs", "tutti-admission", NAMES, NOW)
