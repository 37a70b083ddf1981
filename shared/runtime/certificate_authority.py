"""A certificate authority of Tutti's own, and the certificates that it signs for servers.

Its functions block for a millisecond. Keys are elliptic (P-256): every TLS library supports them,
and they are generated quickly.
"""

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Machines whose clocks differ a little accept a new certificate too.
BACKDATED: Final = timedelta(hours=1)

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


class Unreadable(Exception):
    """The content is not a certificate with its key."""


class Issued(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key as PEM, not encrypted."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def read(certificate_pem: bytes, key_pem: bytes) -> Issued:
    """A certificate and its key. Raises Unreadable."""
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        key = serialization.load_pem_private_key(key_pem, None)
    except (ValueError, TypeError) as error:
        raise Unreadable(str(error)) from error
    if isinstance(key, ec.EllipticCurvePrivateKey) and certificate.public_key() == key.public_key():
        return Issued(certificate, key)
    raise Unreadable("the key is of another certificate, or of another kind than ours")


def new_authority(name: str, at: datetime, lifetime: timedelta) -> Issued:
    """A CA that signs certificates of servers, not of other CAs; valid from `at` on."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    certificate = (
        _builder(subject, subject, key, at, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_CA_USAGE, critical=True)
        # Verifiers find the signing CA by this key, also among CAs of the same name.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Issued(certificate, key)


def issue(
    authority: Issued,
    name: str,
    addresses: Sequence[str],
    at: datetime,
    lifetime: timedelta,
    *,
    for_peers: bool = False,
) -> Issued:
    """A server's certificate for DNS names and IP addresses, valid from `at` on. `for_peers`: the
    server also uses it as a client of other such servers.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    usage = [ExtendedKeyUsageOID.SERVER_AUTH]
    if for_peers:
        usage.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    certificate = (
        _builder(_name(name), authority.certificate.subject, key, at, lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(_general_names(addresses)), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
        .sign(authority.key, hashes.SHA256())
    )
    return Issued(certificate, key)


def is_good(
    certificate: x509.Certificate,
    issuer: x509.Certificate,
    addresses: Sequence[str],
    until: datetime,
) -> bool:
    """Whether a certificate is signed by `issuer`, is for exactly these addresses, and is still
    valid after `until`.
    """
    try:
        certificate.verify_directly_issued_by(issuer)
        alternatives = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except Exception:  # noqa: BLE001 - any error means that the certificate is not usable
        return False
    lasts = certificate.not_valid_after_utc > until
    return lasts and set(alternatives) == set(_general_names(addresses))


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


def _general_names(addresses: Sequence[str]) -> list[x509.GeneralName]:
    general: list[x509.GeneralName] = []
    for address in addresses:
        try:
            general.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            general.append(x509.DNSName(address))
    return general
