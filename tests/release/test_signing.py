"""Signatures are what cosign verifies: its payload, its annotations, its tag."""

import base64
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from release import signing
from release.oci import REFERENCE, Layout
from release.signing import Signer, SigningError, authenticated, envelope, signer_from

_KEY = ec.derive_private_key(7, ec.SECP256R1())


def _pem(key: Any, password: bytes | None = None) -> str:
    how = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    form = serialization.PrivateFormat.PKCS8
    return str(key.private_bytes(serialization.Encoding.PEM, form, how).decode())


def _verify(signature: str, content: bytes) -> None:
    _KEY.public_key().verify(base64.b64decode(signature), content, ec.ECDSA(hashes.SHA256()))


def test_a_signed_manifest_verifies_as_cosign_does_it(tmp_path: Path) -> None:
    layout = Layout()
    manifest = layout.add_manifest(layout.add_json({}, "application/json"), [], {"a": "b"})
    layout.name(manifest, "1.2.3", {})
    signing.sign_manifest(layout, manifest, "registry.example/tutti", Signer(_KEY))
    layout.write(tmp_path / "layout.tar", 0)
    blobs = {}
    with tarfile.open(tmp_path / "layout.tar") as archive:
        for member in archive:
            if member.isreg() and (file := archive.extractfile(member)) is not None:
                blobs[member.name] = file.read()
    listed = json.loads(blobs["index.json"])["manifests"]
    tags = {one["annotations"][REFERENCE]: one["digest"] for one in listed}
    assert tags["1.2.3"] == manifest.digest
    found = tags[f"sha256-{manifest.digest.removeprefix('sha256:')}.sig"]
    signature = json.loads(blobs[f"blobs/{found.replace(':', '/')}"])
    (layer,) = signature["layers"]
    assert layer["mediaType"] == "application/vnd.dev.cosign.simplesigning.v1+json"
    payload = blobs[f"blobs/{layer['digest'].replace(':', '/')}"]
    assert json.loads(payload)["critical"] == {
        "identity": {"docker-reference": "registry.example/tutti"},
        "image": {"docker-manifest-digest": manifest.digest},
        "type": "cosign container image signature",
    }
    given = layer["annotations"]["dev.cosignproject.cosign/signature"]
    _verify(given, payload)
    with pytest.raises(InvalidSignature):
        _verify(given, payload.replace(b"example", b"exampla"))


def test_a_statement_is_signed_in_an_envelope() -> None:
    made = envelope(b'{"a":1}', Signer(_KEY))
    assert base64.b64decode(made["payload"]) == b'{"a":1}'
    assert authenticated(b'{"a":1}') == b'DSSEv1 28 application/vnd.in-toto+json 7 {"a":1}'
    _verify(made["signatures"][0]["sig"], authenticated(b'{"a":1}'))


def test_the_same_content_gets_the_same_signature() -> None:
    assert Signer(_KEY).sign(b"a") == Signer(_KEY).sign(b"a") != Signer(_KEY).sign(b"b")


def test_without_a_key_nothing_is_signed() -> None:
    assert signer_from({}) is None
    assert signer_from({signing.KEY: " \n"}) is None


@pytest.mark.parametrize("password", [None, b"secret"])
def test_the_key_of_the_environment_signs(password: bytes | None) -> None:
    environ = {signing.KEY: _pem(_KEY, password), signing.PASSWORD: (password or b"").decode()}
    signer = signer_from(environ)
    assert signer is not None
    _verify(signer.sign(b"a"), b"a")
    assert signer.public_key().startswith("-----BEGIN PUBLIC KEY-----\n")


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({signing.KEY: "none"}, "COSIGN_PRIVATE_KEY with COSIGN_PASSWORD cannot be read"),
        (
            {signing.KEY: _pem(_KEY, b"secret"), signing.PASSWORD: "other"},
            "COSIGN_PRIVATE_KEY with COSIGN_PASSWORD cannot be read",
        ),
        ({signing.KEY: _pem(_KEY, b"secret")}, "cannot be read"),
        (
            {signing.KEY: _pem(ec.derive_private_key(7, ec.SECP384R1()))},
            "another kind of key: expected ECDSA on P-256",
        ),
        (
            {signing.KEY: _pem(rsa.generate_private_key(65537, 1024))},
            "another kind of key: expected ECDSA on P-256",
        ),
        (
            {signing.KEY: "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----"},
            "in cosign's own encryption; expected PEM in PKCS #8",
        ),
    ],
    ids=["no-key", "wrong-password", "no-password", "p384", "rsa", "cosign"],
)
def test_a_key_that_cannot_sign_is_refused(environ: dict[str, str], complaint: str) -> None:
    with pytest.raises(SigningError) as raised:
        signer_from(environ)
    assert complaint in str(raised.value)
