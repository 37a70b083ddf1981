"""SSH key pairs with which the pods of a Job log in to each other."""

import asyncio

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


async def key_pair() -> tuple[str, str]:
    """A new RSA key: private (PKCS #1, PEM) and public (OpenSSH). Generated in a thread."""
    return await asyncio.to_thread(_generate)


def _generate() -> tuple[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private.decode(), public.decode() + "\n"
