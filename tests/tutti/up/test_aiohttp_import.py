"""aiohttp is imported without the authorities of the system, and nothing else changes."""

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import os
before = dict(os.environ)
from tutti.up.fork_server import import_aiohttp
import_aiohttp()
from aiohttp import connector
assert dict(os.environ) == before
stats = connector._SSL_CONTEXT_VERIFIED.cert_store_stats()
assert stats["x509"] == 0, stats
"""


@pytest.mark.parametrize("given", [{}, {"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}])
def test_the_contexts_of_aiohttp_have_no_authorities_and_the_environment_stays(
    given: dict[str, str],
) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
    subprocess.run([sys.executable, "-c", _PROGRAM], env=environ | given, check=True)
