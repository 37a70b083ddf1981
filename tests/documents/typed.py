"""Whether the commands of the documents exist: our programs with these flags, make's targets,
modules.

This is for blocks that no test of the documents runs, and for commands within a sentence.
"""

import importlib.util
import re
import shlex
from typing import Final

import click

from tests.documents.links import ROOT
from tutti.cli import Tutti, main
from tutti.vcctl import slurm
from tutti.vcctl.command import vcctl

_PROGRAMS: Final[dict[str, click.Command]] = {
    "tutti": main,
    "vcctl": vcctl,
    "vsub": slurm.vsub,
    "vjobs": slurm.vjobs,
    "vcancel": slurm.vcancel,
    "vsuspend": slurm.vsuspend,
    "vresume": slurm.vresume,
    "vqueues": slurm.vqueues,
}
_TARGETS: Final = frozenset(
    re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
)
#: Commands within a sentence, whole: "`tutti why podgroup/NAME`".
_SPAN: Final = re.compile(r"`((?:make|tutti(?! is )|vcctl|python -m) [^`]+)`")


def spans(text: str) -> list[str]:
    """Commands within sentences."""
    return [" ".join(found.split()) for found in _SPAN.findall(text)]


def objection(typed: str) -> str:
    """What does not exist of a command line; "" when all of it does, as far as it is ours."""
    for part in re.split(r"\s+(?:\||&&|;)\s+", typed.replace("\\\n", " ")):
        if found := _objection(shlex.split(part, comments=True)):
            return found
    return ""


def _objection(words: list[str]) -> str:
    while words and "=" in words[0]:
        words = words[1:]
    if not words:
        return ""
    program, *rest = [words[0].removeprefix(".venv/bin/"), *words[1:]]
    if program == "kubectl" and rest[:1] == ["tutti"]:
        program, rest = "tutti", rest[1:]
    if program == "make":
        unknown = [one for one in rest if "=" not in one and one not in _TARGETS]
        return f"make has no target {unknown[0]}" if unknown else ""
    if program.startswith("python") and rest[:1] == ["-m"]:
        return "" if _is_module(rest[1]) else f"there is no module {rest[1]}"
    command = _PROGRAMS.get(program)
    return "" if command is None else _of_command(command, program, rest)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _of_command(command: click.Command, path: str, words: list[str]) -> str:
    """What a command does not know of the words behind it."""
    context = click.Context(command, info_name=path)
    if command.context_settings.get("ignore_unknown_options"):
        return ""  # It hands them on.
    if isinstance(command, Tutti) and (old := command.find_old(context, words)) is not None:
        spelling, inner, rest = old
        return _of_command(inner, f"{path} {spelling}", rest)
    flags = {
        one for each in command.get_params(context) for one in (*each.opts, *each.secondary_opts)
    }
    for place, word in enumerate(words):
        if word.startswith("-") and word not in ("-", "&"):
            if not _knows(flags, word.partition("=")[0]):
                return f"{path} has no {word}"
        elif isinstance(command, click.Group):
            if word.isupper() or word == "…":
                return ""  # A placeholder, as in `tutti SUB`.
            # Several at once: `job suspend|resume`.
            found = {one: command.get_command(context, one) for one in word.split("|")}
            unknown = [one for one, inner in found.items() if inner is None]
            if unknown:
                return f"{path} has no {unknown[0]}"
            objections = (
                _of_command(inner, f"{path} {one}", words[place + 1 :])
                for one, inner in found.items()
                if inner is not None
            )
            return next(filter(None, objections), "")
    return ""


def _knows(flags: set[str], word: str) -> bool:
    """Whether a flag exists; short ones may carry their value, `-n2`."""
    return word in flags or (not word.startswith("--") and word[:2] in flags)
