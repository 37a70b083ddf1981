"""Our own CA and certificate, and the replacement of a certificate without a dropped connection.

Our own are files in one folder: `ca.crt` and `ca.key` are valid for ten years. `serving.pem` (key
and certificate in one file, so that they are replaced in one step) is valid for one year and
renewed a month before its end.

Changed files are loaded into a new TLS context; if that succeeds, new handshakes use it. (Loading a
half-replaced pair into the context in use would break that one.) Existing connections keep the
certificate with which they began.
"""

import asyncio
import hashlib
import logging
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509

from shared.runtime.certificate_authority import (
    Issued,
    Unreadable,
    is_good,
    issue,
    new_authority,
    read,
)
from shared.runtime.settings import ServingSettings
from shared.runtime.whole_files import write_whole

log = logging.getLogger(__name__)

#: Nothing reports a changed file (a kubelet swaps a link); a check costs three stat calls.
CHECK_EVERY_S: Final = 2.0
#: Seconds between two checks whether our own certificate is due for renewal.
RENEW_EVERY_S: Final = 3600.0

CA_LIFETIME: Final = timedelta(days=3650)
SERVING_LIFETIME: Final = timedelta(days=365)
RENEWED_BEFORE: Final = timedelta(days=30)

CA_FILE: Final = "ca.crt"
CA_KEY_FILE: Final = "ca.key"
SERVING_FILE: Final = "serving.pem"

_Stamps = tuple[tuple[int, int, int], ...]


class CertificateProblem(Exception):
    """Certificate or key cannot be used; the message names the file and the reason. The previous
    certificate stays in use.
    """


class CertificateFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the certificate chain, its key (which may be the same file) and its CA."""

    certificate: Path
    key: Path
    ca: Path


class ServingCertificate:
    """A TLS context that serves the files as `reload` loaded them last."""

    def __init__(self, files: CertificateFiles, *, asks_clients: bool = False) -> None:
        """Load the files. Blocks. Raises CertificateProblem.

        `asks_clients`: clients are asked for a certificate, which they need not have, and which
        must be signed by a CA of `trust_clients`.
        """
        self._files = files
        #: `reload` and `trust_clients` are called in threads.
        self._loading = threading.Lock()
        self._client_ca: str | None = "" if asks_clients else None
        #: `ca`: the CA in PEM, for the API server to trust. `ends_s`: when the served chain
        #: expires, in seconds since the epoch.
        self._current, self.ca, self.ends_s = _loaded(files, self._client_ca)
        self._stamps = _stamps(files)
        self.context = self._current
        self.context.sni_callback = self._select_context

    def reload(self) -> bool:
        """Load the files if they have changed; returns whether they had. Blocks.

        Raises:
            CertificateProblem: The changed files cannot be used; the previous ones stay in use. The
                next call tries again.
        """
        with self._loading:
            stamps = _stamps(self._files)
            if stamps == self._stamps:
                return False
            self._current, self.ca, self.ends_s = _loaded(self._files, self._client_ca)
            # Read before loading: a change during the loading is found by the next call.
            self._stamps = stamps
            return True

    def trust_clients(self, ca_pem: str) -> None:
        """Accept clients' certificates of these CAs, in new handshakes; only with `asks_clients`.
        Blocks. Raises CertificateProblem; the previous CAs stay in use.
        """
        with self._loading:
            if ca_pem == self._client_ca:
                return
            self._current, self.ca, self.ends_s = _loaded(self._files, ca_pem)
            self._client_ca = ca_pem

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
    """Modification time, inode and size of each file."""
    try:
        stats = [path.stat() for path in (files.certificate, files.key, files.ca)]
    except OSError as error:
        raise CertificateProblem(f"{error.filename}: {error.strerror}") from error
    return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats)


def _loaded(files: CertificateFiles, client_ca: str | None) -> tuple[ssl.SSLContext, str, float]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if client_ca is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            # A resumed session would keep a certificate whose CA is not trusted any more.
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
            if client_ca:
                context.load_verify_locations(cadata=client_ca)
        # Without this, OpenSSL would prompt for an encrypted key's password on the terminal.
        context.load_cert_chain(files.certificate, files.key, password="")
        ca = files.ca.read_text("ascii")
        ssl.create_default_context(cadata=ca)
        chain = x509.load_pem_x509_certificates(files.certificate.read_bytes())
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CertificateProblem(f"{files.certificate}, {files.key}, {files.ca}: {error}") from None
    return context, ca, min(certificate.not_valid_after_utc for certificate in chain).timestamp()


def ensure_certificate(
    folder: Path, title: str, names: Sequence[str], now: datetime | None = None
) -> bool:
    """Have a CA and a serving certificate for `names` in the folder; `title` is the subject of new
    ones.

    Valid files are kept, also across restarts, so that the API server does not get a new CA each
    time. Files that are missing or cannot be read are made again.

    A missing folder is created, readable by its owner only. `names` are DNS names and IP addresses.
    Validity is checked at `now`, by default the current time. Returns whether a new serving
    certificate was made. Blocks.

    Raises:
        OSError: The folder cannot be written.
    """
    at = now or datetime.now(UTC)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = _read_authority(folder, at)
    if authority is None:
        authority = new_authority(f"{title}-ca", at, CA_LIFETIME)
        write_whole(folder / CA_KEY_FILE, authority.key_pem)
        write_whole(folder / CA_FILE, authority.certificate_pem)
    if _is_current(folder / SERVING_FILE, authority.certificate, names, at):
        return False
    made = issue(authority, title, names, at, SERVING_LIFETIME)
    write_whole(folder / SERVING_FILE, made.key_pem + made.certificate_pem)
    return True


def own_files(folder: Path, title: str, names: Sequence[str]) -> CertificateFiles:
    """The files that `ensure_certificate` keeps in the folder; it takes the same arguments, blocks,
    and raises the same error.
    """
    if ensure_certificate(folder, title, names):
        log.info("made a serving certificate in %s", folder)
    serving = folder / SERVING_FILE
    return CertificateFiles(certificate=serving, key=serving, ca=folder / CA_FILE)


def serving_files(
    settings: ServingSettings, folder: Path, title: str, names: Sequence[str]
) -> CertificateFiles:
    """The configured files, else `own_files`."""
    if not settings.tls_cert_file:
        return own_files(folder, title, names)
    return CertificateFiles(
        certificate=Path(settings.tls_cert_file),
        key=Path(settings.tls_key_file),
        ca=Path(settings.ca_file),
    )


@contextmanager
def certificate_folder(settings: ServingSettings, prefix: str) -> Iterator[Path]:
    """The folder for our own certificate: a temporary one if one is needed and none is given."""
    if settings.cert_dir or settings.tls_cert_file:
        yield Path(settings.cert_dir)
        return
    with tempfile.TemporaryDirectory(prefix=prefix) as scratch:
        yield Path(scratch)


async def renew_own(folder: Path, title: str, names: Sequence[str]) -> None:
    """Renew the certificate of `own_files` in time, until cancelled; `ServingCertificate.watch`
    loads the new file.
    """
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        try:
            await asyncio.to_thread(own_files, folder, title, names)
        except OSError as error:
            log.warning("the certificate cannot be renewed: %s", error)


def serving_identity(instance: str, folder: str) -> str:
    """An identity that stays the same after a restart and differs from that of each other replica.

    Two installations on one machine differ in the folders of their certificates. Without a folder
    ("") only host and instance distinguish them.
    """
    where = str(Path(folder).absolute()) if folder else ""
    place = hashlib.sha256(where.encode()).hexdigest()[:8]
    return f"{socket.gethostname()}/{instance}/{place}"


def _read_authority(folder: Path, at: datetime) -> Issued | None:
    """The CA of the folder; None without one that is valid for longer than a new certificate."""
    try:
        authority = read((folder / CA_FILE).read_bytes(), (folder / CA_KEY_FILE).read_bytes())
    except (FileNotFoundError, Unreadable):
        return None
    lasts = authority.certificate.not_valid_after_utc > at + SERVING_LIFETIME
    return authority if lasts else None


def _is_current(path: Path, issuer: x509.Certificate, names: Sequence[str], at: datetime) -> bool:
    """Whether the serving certificate is of this CA, for exactly these names, and not due for
    renewal.
    """
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return is_good(certificate, issuer, names, at + RENEWED_BEFORE)
