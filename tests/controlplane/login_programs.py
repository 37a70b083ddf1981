"""Programs with which users log in: Dex, a provider of OIDC, and oauth2-proxy, which authenticates
the requests to a web page for an ingress. Both are built from their Go modules.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.go_builds import GoTool, ensure_built
from tests.controlplane.operators.building import Edit, apply_edit

DEX: Final = "github.com/dexidp/dex"
#: Of 2026-08-06: the registry has no newer tag than 2.13 of 2018, because Dex's go.mod has no /v2.
DEX_VERSION: Final = "v0.0.0-20260806151424-ab64ed778070"
#: Of the module's content, as `go mod download` reports it.
DEX_CHECKSUM: Final = "h1:Zhb4XyHQ8935RToX2ZgxyfQcg8EE9gSnbk2Zi5PYf4E="
#: The module replaces its API by a folder, which is a module of its own, so not in the download.
_DEX_EDITS: Final = (
    Edit("go.mod", "replace github.com/dexidp/dex/api/v2 => ./api/v2\n", ""),
    Edit(
        "go.mod",
        "github.com/dexidp/dex/api/v2 v2.4.0",
        "github.com/dexidp/dex/api/v2 v2.4.1-0.20260806151424-ab64ed778070",
    ),
)

OAUTH2_PROXY: Final = "github.com/oauth2-proxy/oauth2-proxy/v7"
OAUTH2_PROXY_VERSION: Final = "v7.15.6"


def ensure_dex(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the executable, building it first if no cache has it: minutes, once.

    Raises:
        BinariesError: The build failed, or the registry's module is not the one that was pinned.
    """
    return ensure_built(f"dex-{DEX_VERSION}", f"Dex {DEX_VERSION}", _build_dex, environ) / "dex"


def ensure_oauth2_proxy(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the executable; built as above.

    Raises:
        BinariesError: The build failed.
    """

    def build(go: GoTool, made: Path) -> None:
        go.install(OAUTH2_PROXY, OAUTH2_PROXY_VERSION, made, {})

    name, title = f"oauth2-proxy-{OAUTH2_PROXY_VERSION}", f"oauth2-proxy {OAUTH2_PROXY_VERSION}"
    return ensure_built(name, title, build, environ) / "oauth2-proxy"


def _build_dex(go: GoTool, made: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        go.copy_pinned(DEX, DEX_VERSION, DEX_CHECKSUM, source)
        for edit in _DEX_EDITS:
            apply_edit(edit, source)
        go.build(source, "./cmd/dex", made, complete=False)
