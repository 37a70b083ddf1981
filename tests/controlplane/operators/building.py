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
    """Build beside `folder`, and move the result there in one rename."""
    go = find_go(environ)
    logger.warning("building %s@%s (minutes, once)", recipe.module, recipe.version)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        tools = {**environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        source = recipe.own_main
        flags = ("-trimpath", "-ldflags=-s -w")
        if source is not None:
            copy = Path(scratch) / "source"
            shutil.copytree(source, copy)
            command = [go, "build", "-mod=readonly", *flags, "-o", str(made / PROGRAM), "."]
            run_tool(command, cwd=copy, environ=tools)
        else:
            tools["GOBIN"] = str(Path(scratch) / "bin")
            package = f"{recipe.module}/{recipe.main}".rstrip("/")
            command = [go, "install", *flags, f"{package}@{recipe.version}"]
            run_tool(command, cwd=folder.parent, environ=tools)
            (program,) = Path(tools["GOBIN"]).iterdir()
            program.rename(made / PROGRAM)
        _copy_crds(go, recipe, made / "crds", tools)
        made.rename(folder)


def _copy_crds(go: str, recipe: Recipe, target: Path, environ: Mapping[str, str]) -> None:
    command = [go, "mod", "download", "-json", f"{recipe.module}@{recipe.version}"]
    described = run_tool(command, cwd=target.parent, environ=environ)
    source = Path(json.loads(described)["Dir"]) / recipe.crds
    target.mkdir()
    for file in recipe.crd_files:
        shutil.copyfile(source / file, target / file)
