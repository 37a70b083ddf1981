"""Our own CA and serving certificate, kept as files in one folder.

`ca.crt` and `ca.key` live for ten years, `serving.pem` (key and certificate in one file, so that it
is replaced in one step) for one and is renewed a month before its end. Everything here blocks: call
it in a thread.
"""

import contextlib
import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME: Final = timedelta(days=3650)
SERVING_LIFETIME: Final = timedelta(days=365)
RENEWED_BEFORE: Final = timedelta(days=30)
#: Machines whose clocks disagree a little still accept what was made a moment ago.
BACKDATED: Final = timedelta(hours=1)

CA_FILE: Final = "ca.crt"
CA_KEY_FILE: Final = "ca.key"
SERVING_FILE: Final = "serving.pem"

_CA_USAGE: Final = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def ensure(folder: Path, names: Sequence[str], now: datetime | None = None) -> bool:
    """See to it that the folder holds a CA and a serving certificate for `names`.

    What is there and still good is kept, also across restarts, so that the API server need not be
    told of a new CA each time. What is there and cannot be read is made anew.

    Args:
        folder: Made when it is missing, readable by its owner only.
        names: DNS names and IP addresses that the certificate is for.
        now: The instant to judge validity by.

    Returns:
        Whether the serving certificate was made anew.

    Raises:
        OSError: The folder cannot be written.
    """
    at = now or datetime.now(UTC)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = _read_authority(folder, at)
    if authority is None:
        authority = _new_authority(at)
        _write(folder / CA_KEY_FILE, _key_pem(authority[1]))
        _write(folder / CA_FILE, authority[0].public_bytes(serialization.Encoding.PEM))
    if _is_good(folder / SERVING_FILE, authority[0], names, at):
        return False
    _write(folder / SERVING_FILE, _serving(authority, names, at))
    return True


def _read_authority(
    folder: Path, at: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None:
    """The CA of the folder; None when there is none that will outlive what it would sign."""
    try:
        certificate = x509.load_pem_x509_certificate((folder / CA_FILE).read_bytes())
        key = serialization.load_pem_private_key((folder / CA_KEY_FILE).read_bytes(), None)
    except (FileNotFoundError, ValueError, TypeError):
        return None
    lasts = certificate.not_valid_after_utc > at + SERVING_LIFETIME
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not lasts:
        return None
    return (certificate, key) if certificate.public_key() == key.public_key() else None


def _new_authority(at: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("tutti-admission-ca")
    certificate = (
        _builder(name, name, key, at, CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_CA_USAGE, critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _serving(
    authority: tuple[x509.Certificate, ec.EllipticCurvePrivateKey],
    names: Sequence[str],
    at: datetime,
) -> bytes:
    issuer, issuer_key = authority
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name("tutti-admission"), issuer.subject, key, at, SERVING_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(_general_names(names)), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return _key_pem(key) + certificate.public_bytes(serialization.Encoding.PEM)


def _is_good(path: Path, issuer: x509.Certificate, names: Sequence[str], at: datetime) -> bool:
    """Whether the serving certificate is ours, for exactly these names, and not about to end."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        certificate.verify_directly_issued_by(issuer)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is made anew
        return False
    lasts = certificate.not_valid_after_utc > at + RENEWED_BEFORE
    return lasts and set(found) == set(_general_names(names))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    at: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - BACKDATED)
        .not_valid_after(at + lifetime)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_names(names: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return found


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> None:
    """Replace the file in one step; only its owner can read it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
