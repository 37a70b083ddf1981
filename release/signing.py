"""Signatures in cosign's formats, by a key that the environment has.

`COSIGN_PRIVATE_KEY` is the key itself in PEM (PKCS #8, ECDSA P-256), `COSIGN_PASSWORD` its
password if it is encrypted: cosign's own names. Signatures are deterministic (RFC 6979), so a
signed release is reproducible, too. Nothing is sent to a transparency log: verify with
`cosign verify --key cosign.pub --insecure-ignore-tlog`.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from release.oci import CONFIG, Descriptor, Layout, canonical

KEY: Final = "COSIGN_PRIVATE_KEY"
PASSWORD: Final = "COSIGN_PASSWORD"  # noqa: S105 - the name of a variable, not a password
SIMPLE_SIGNING: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGNATURE: Final = "dev.cosignproject.cosign/signature"
IN_TOTO: Final = "application/vnd.in-toto+json"
_NO_INSTANT: Final = "0001-01-01T00:00:00Z"
#: By which `cosign verify --local-image` tells an image of a layout from its signatures.
_KIND: Final = "kind"


class SigningError(ValueError):
    """The key cannot be used; the message names the variable and the rule."""


class Signer:
    """Signs with one ECDSA key on P-256."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key

    def sign(self, content: bytes) -> str:
        """The signature (DER) of the content's SHA-256 in base64, as of `cosign sign-blob`."""
        algorithm = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
        return base64.b64encode(self._key.sign(content, algorithm)).decode()

    def public_key(self) -> str:
        """In PEM: the file `cosign.pub`."""
        return (
            self._key.public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            .decode()
        )


def signer_from(environ: Mapping[str, str]) -> Signer | None:
    """The signer by the key of the environment; None if it has no key.

    Raises:
        SigningError: The key is of another kind or the password is wrong.
    """
    text = environ.get(KEY, "")
    if not text.strip():
        return None
    if "ENCRYPTED SIGSTORE" in text or "ENCRYPTED COSIGN" in text:
        raise SigningError(
            f"{KEY} is in cosign's own encryption; expected PEM in PKCS #8, as "
            "`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` makes it "
            "(`cosign import-key-pair` reads it, too)"
        )
    password = environ.get(PASSWORD, "").encode() or None
    try:
        key = serialization.load_pem_private_key(text.encode(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SigningError(f"{KEY} with {PASSWORD} cannot be read: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise SigningError(f"{KEY} is another kind of key: expected ECDSA on P-256")
    return Signer(key)


def sign_manifest(layout: Layout, signed: Descriptor, reference: str, signer: Signer) -> None:
    """Add the signature of a manifest or index to a layout, under the tag that cosign asks for.

    Args:
        layout: Receives the signature; it need not have the manifest.
        signed: Describes the manifest or index.
        reference: The repository that the signature claims, without a tag.
        signer: Has the key.
    """
    payload = canonical(simple_signing(signed.digest, reference))
    blob = layout.add(payload, SIMPLE_SIGNING)
    layer = Descriptor(
        media_type=SIMPLE_SIGNING,
        digest=blob.digest,
        size=blob.size,
        annotations={SIGNATURE: signer.sign(payload)},
    )
    config = layout.add_json(
        {
            "architecture": "",
            "config": {},
            "created": _NO_INSTANT,
            "history": [{"created": _NO_INSTANT}],
            "os": "",
            "rootfs": {"type": "layers", "diff_ids": [blob.digest]},
        },
        CONFIG,
    )
    manifest = layout.add_manifest(config, [layer], {})
    tag = f"{signed.digest.replace(':', '-')}.sig"
    layout.name(manifest, tag, {_KIND: "dev.cosignproject.cosign/sigs"})


def simple_signing(digest: str, reference: str) -> dict[str, Any]:
    """What cosign signs: that a reference has this digest."""
    return {
        "critical": {
            "identity": {"docker-reference": reference},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": None,
    }


def envelope(statement: bytes, signer: Signer) -> dict[str, Any]:
    """The statement in a DSSE envelope, as in-toto attestations are signed."""
    return {
        "payloadType": IN_TOTO,
        "payload": base64.b64encode(statement).decode(),
        "signatures": [{"sig": signer.sign(authenticated(statement))}],
    }


def authenticated(statement: bytes) -> bytes:
    """The bytes of an envelope that are signed (DSSE's pre-authentication encoding)."""
    kind = IN_TOTO.encode()
    return b" ".join(
        (b"DSSEv1", str(len(kind)).encode(), kind, str(len(statement)).encode(), statement)
    )
