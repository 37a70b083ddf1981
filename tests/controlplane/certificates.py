"""Keys and certificates of one throw-away control plane: its authority, servers and clients."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY = dt.timedelta(days=7)
# Machines with clocks that disagree a little still accept what was made a moment ago.
BACKDATED = dt.timedelta(hours=1)

_CA_KEY_USAGE = x509.KeyUsage(
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


@dataclass(frozen=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, both in PEM."""

    certificate_pem: bytes
    key_pem: bytes


class Authority:
    """A certificate authority that lives in memory and signs for servers and clients.

    Its key is RSA, as kubeadm's: the API server verifies a client's certificate on each request,
    which takes it ten times as long with an ECDSA key. And no two authorities have the same name,
    or it would verify the signature with the keys of both.
    """

    def __init__(self, name: str = "kubernetes") -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = _name(name, ())
        certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_CA_KEY_USAGE, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate_pem = certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, addresses: Sequence[str]) -> KeyPair:
        """Issue a server certificate valid for these DNS names and IP addresses."""
        names = x509.SubjectAlternativeName([_general_name(address) for address in addresses])
        return self._issue(
            _name(addresses[0], ()), ExtendedKeyUsageOID.SERVER_AUTH, extension=names
        )

    def client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """Issue a client certificate that Kubernetes reads as this user in these groups."""
        return self._issue(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        *,
        extension: x509.SubjectAlternativeName | None = None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        # Python 3.13 and later refuse a chain whose leaf does not name its issuer's key.
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(subject, self._name, key)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(issuer_key, critical=False)
        )
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(
            certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
            key_pem=private_key_pem(key),
        )


def private_key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the key, unencrypted, in the form that Go's and Python's TLS both read.

    Not PKCS 8: the API server does not accept that for service accounts' keys.
    """
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def service_account_key_pem() -> bytes:
    """Return a fresh key with which an API server signs service accounts' tokens."""
    return private_key_pem(ec.generate_private_key(ec.SECP256R1()))


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
