"""TLS towards the API server."""

import ssl
import tempfile

from shared.kube.errors import CredentialsError


def client_context(
    origin: str,
    *,
    ca_pem: bytes | None,
    insecure: bool,
    certificate_pem: bytes | None,
    key_pem: bytes | None,
) -> ssl.SSLContext:
    """A context that trusts the given CA (or the system's) and shows the given client certificate.

    Blocks for milliseconds: it parses certificates and writes the key into a private file for as
    long as OpenSSL reads it (which takes files only).

    Raises:
        CredentialsError: Names `origin`, the field and what OpenSSL says.
    """
    try:
        ca_text = ca_pem.decode("ascii") if ca_pem is not None else None
        context = ssl.create_default_context(cadata=ca_text)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise CredentialsError(f"{origin}: certificate-authority: is no PEM: {error}") from None
    # Python 3.13 switches this on; cluster CAs of many installers lack the extensions that it asks
    # for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate_pem is not None and key_pem is not None:
        with tempfile.NamedTemporaryFile(prefix="tutti-", suffix=".pem") as file:
            file.write(certificate_pem + b"\n" + key_pem)
            file.flush()
            try:
                # The password keeps OpenSSL from asking for one at the terminal.
                context.load_cert_chain(file.name, password="")
            except (ssl.SSLError, ValueError) as error:
                raise CredentialsError(
                    f"{origin}: client-certificate, client-key: cannot be used: {error}"
                ) from None
    return context
