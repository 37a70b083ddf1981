"""Builds an operator from its Go module, once; the result is cached beside the control plane."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.go_builds import BinariesError, GoTool, ensure_built

PROGRAM: Final = "operator"


class Edit(NamedTuple):
    """A change to one source file of a module, before it is built."""

    #: Relative to the module's root.
    file: str
    #: What must be in the file exactly once, and what replaces it.
    old: str
    new: str


class Recipe(NamedTuple):
    """What an operator is built from."""

    name: str
    module: str
    version: str
    #: The folder of the module that holds the CRDs ("" is its root), and the files in it to
    #: install.
    crds: str
    crd_files: tuple[str, ...]
    #: The module's main package, relative to its root ("" is the root itself).
    main: str = ""
    #: A main module of ours that calls the operator's controller; it replaces `main`.
    own_main: Path | None = None
    #: Another module and its version: what both require is taken in its versions, so that the
    #: packages that were compiled for it serve here, too.
    versions_of: tuple[str, str] | None = None
    #: For what the operator has no flag for.
    edits: tuple[Edit, ...] = ()


class BuiltOperator(NamedTuple):
    """Where the executable and the CRDs of an operator are."""

    program: Path
    crds: Path


def ensure_operator(recipe: Recipe, environ: Mapping[str, str] = os.environ) -> BuiltOperator:
    """Return the operator, building it first if no cache has it: minutes, once.

    Raises:
        BinariesError: The build failed, or an edit does not fit the source.
    """

    def build(go: GoTool, made: Path) -> None:
        module = go.download(recipe.module, recipe.version, made).folder
        with tempfile.TemporaryDirectory() as scratch:
            source = Path(scratch) / "source"
            # Files of the module cache are read-only: only their contents are copied.
            shutil.copytree(recipe.own_main or module, source, copy_function=shutil.copyfile)
            for edit in recipe.edits:
                apply_edit(edit, source)
            if recipe.versions_of is not None:
                go.share_versions(source, go.download(*recipe.versions_of, made).folder)
            main = "." if recipe.own_main is not None else f"./{recipe.main}"
            go.build(source, main, made / PROGRAM, complete=recipe.versions_of is None)
        (made / "crds").mkdir()
        for file in recipe.crd_files:
            shutil.copyfile(module / recipe.crds / file, made / "crds" / Path(file).name)

    name = f"{recipe.name}-{recipe.version}-{_digest(recipe)}"
    folder = ensure_built(name, f"{recipe.name} {recipe.version}", build, environ)
    return BuiltOperator(folder / PROGRAM, folder / "crds")


def apply_edit(edit: Edit, source: Path) -> None:
    """Change a copy of a module.

    Raises:
        BinariesError: The file does not have the edit's old text exactly once.
    """
    text = (source / edit.file).read_text()
    if (found := text.count(edit.old)) != 1:
        raise BinariesError(f"{edit.file} has {edit.old!r} {found} times, not once")
    (source / edit.file).write_text(text.replace(edit.old, edit.new))


def _digest(recipe: Recipe) -> str:
    # Operators that are in caches already keep their names: the last fields came later.
    text = repr(recipe._replace(own_main=None))
    for default in (", versions_of=None", ", edits=()"):
        text = text.replace(default, "")
    digest = hashlib.sha256(text.encode())
    if recipe.own_main is not None:
        for source in sorted(recipe.own_main.iterdir()):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
