"""Builds an operator from its Go module, once; the result is cached beside the control plane."""

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.binaries import cache_root, find_go, run_tool
from tests.controlplane.locks import exclusive

PROGRAM: Final = "operator"

logger = logging.getLogger(__name__)


class Recipe(NamedTuple):
    """What an operator is built from."""

    name: str
    module: str
    version: str
    #: The folder of the module that holds the CRDs, and the files in it to install.
    crds: str
    crd_files: tuple[str, ...]
    #: The module's main package, relative to its root ("" is the root itself).
    main: str = ""
    #: A main module of ours that calls the operator's controller; it replaces `main`.
    own_main: Path | None = None


class BuiltOperator(NamedTuple):
    """Where the executable and the CRDs of an operator are."""

    program: Path
    crds: Path


def ensure_operator(recipe: Recipe, environ: Mapping[str, str] = os.environ) -> BuiltOperator:
    """Return the operator, building it first if no cache has it: minutes, once.

    Raises:
        BinariesError: The build failed.
    """
    root = cache_root(environ)
    folder = root / f"{recipe.name}-{recipe.version}-{_digest(recipe)}"
    with exclusive(root / f"{folder.name}.lock"):
        if not folder.is_dir():
            _build(recipe, folder, environ)
    return BuiltOperator(folder / PROGRAM, folder / "crds")


def _digest(recipe: Recipe) -> str:
    digest = hashlib.sha256(repr(recipe._replace(own_main=None)).encode())
    if recipe.own_main is not None:
        for source in sorted(recipe.own_main.iterdir()):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _build(recipe: Recipe, folder: Path, environ: Mapping[str, str]) -> None:
    """Build beside `folder`, and move the result there in one rename.

    The module's own go.mod and go.sum decide its dependencies: `go install` of a version would ask
    the module proxy for the list of versions, which it need not have.
    """
    go = find_go(environ)
    logger.warning("building %s@%s (minutes, once)", recipe.module, recipe.version)
    tools = {**environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as scratch:
        made, source = Path(scratch) / "made", Path(scratch) / "source"
        made.mkdir()
        command = [go, "mod", "download", "-json", f"{recipe.module}@{recipe.version}"]
        described = run_tool(command, cwd=made, environ=tools)
        module = Path(json.loads(described)["Dir"])
        # Files of the module cache are read-only: only their contents are copied.
        shutil.copytree(recipe.own_main or module, source, copy_function=shutil.copyfile)
        main = "." if recipe.own_main is not None else f"./{recipe.main}"
        command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w"]
        run_tool([*command, "-o", str(made / PROGRAM), main], cwd=source, environ=tools)
        (made / "crds").mkdir()
        for file in recipe.crd_files:
            shutil.copyfile(module / recipe.crds / file, made / "crds" / file)
        made.rename(folder)
