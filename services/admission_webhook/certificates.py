"""The serving certificate, and its replacement without a dropped connection.

Changed files are loaded into a new TLS context; if that succeeds, new handshakes use it. (Loading a
half-replaced pair into the context in use would break that one.) Existing connections keep the
certificate with which they began.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509

from services.admission_webhook.errors import CertificateProblem

log = logging.getLogger(__name__)

#: Nothing reports a changed file (a kubelet swaps a link); a check costs three stat calls.
CHECK_EVERY_S: Final = 2.0
#: Seconds between two checks whether our own certificate is due for renewal.
RENEW_EVERY_S: Final = 3600.0

_Stamps = tuple[tuple[int, int, int], ...]


class CertificateFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the certificate chain, its key (which may be the same file) and its CA."""

    certificate: Path
    key: Path
    ca: Path

    def stamps(self) -> _Stamps:
        """Modification time, inode and size of each file. Blocks. Raises OSError."""
        stats = [path.stat() for path in (self.certificate, self.key, self.ca)]
        return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats)


class ServingCertificate:
    """A TLS context that serves the files as `reload` loaded them last."""

    def __init__(self, files: CertificateFiles) -> None:
        """Load the files. Blocks. Raises CertificateProblem."""
        self._files = files
        self._current, self._ca, self._ends_s = _loaded(files)
        self._stamps = _stamps(files)
        self.context = self._current
        self.context.sni_callback = self._select_context

    @property
    def ca(self) -> str:
        """The CA in PEM, for the API server to trust."""
        return self._ca

    @property
    def ends_s(self) -> float:
        """When the served chain expires, in seconds since the epoch."""
        return self._ends_s

    def reload(self) -> bool:
        """Load the files if they have changed; returns whether they had. Blocks.

        Raises:
            CertificateProblem: The changed files cannot be used; the previous ones stay in use. The
                next call tries again.
        """
        stamps = _stamps(self._files)
        if stamps == self._stamps:
            return False
        self._current, self._ca, self._ends_s = _loaded(self._files)
        # Read before loading: a change during the loading is found by the next call.
        self._stamps = stamps
        return True

    async def watch(self, on_reload: Callable[[], None], *, every_s: float = CHECK_EVERY_S) -> None:
        """Reload changed files until cancelled; each problem with them is logged once."""
        logged = ""
        while True:
            await asyncio.sleep(every_s)
            try:
                changed = await asyncio.to_thread(self.reload)
            except CertificateProblem as problem:
                if str(problem) != logged:
                    logged = str(problem)
                    log.warning("keeping the previous certificate: %s", problem)
                continue
            logged = ""
            if changed:
                log.info("certificate reloaded")
                on_reload()

    def _select_context(
        self, handshake: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        """Called by each handshake, also for one without a server name."""
        handshake.context = self._current


def _stamps(files: CertificateFiles) -> _Stamps:
    try:
        return files.stamps()
    except OSError as error:
        raise CertificateProblem(f"{error.filename}: {error.strerror}") from error


def _loaded(files: CertificateFiles) -> tuple[ssl.SSLContext, str, float]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without this, OpenSSL would prompt for an encrypted key's password on the terminal.
        context.load_cert_chain(files.certificate, files.key, password="")
        ca = files.ca.read_text("ascii")
        ssl.create_default_context(cadata=ca)
        chain = x509.load_pem_x509_certificates(files.certificate.read_bytes())
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CertificateProblem(f"{files.certificate}, {files.key}, {files.ca}: {error}") from None
    return context, ca, min(one.not_valid_after_utc for one in chain).timestamp()
