"""Prints help in the format of Go's cobra, for the commands that Volcano has."""

from collections.abc import Iterator, Sequence

import click

from tutti.vcctl.surface import COMMANDS, GLOBAL, Flag, everywhere

#: Names of commands are padded to this at least.
_NAME_WIDTH_MIN = 11
#: Commands without flags for the API server.
_BARE = frozenset({"", "help", "version"})


def volcano_help(ctx: click.Context) -> str | None:
    """The help of a command that Volcano has; None for one of ours."""
    program, *words = ctx.command_path.split()
    entry = COMMANDS.get(" ".join(words))
    if entry is None:
        return None
    below = _below(words)
    usage = f"{ctx.command_path} [{'command' if below else 'flags'}]"
    parts = [entry.words] if entry.words else []
    parts.append(f"Usage:\n  {usage}")
    if below:
        width = max(_NAME_WIDTH_MIN, *(len(name) for name, _ in below))
        rows = [f"  {name:<{width}} {words_of}" for name, words_of in below]
        parts.append("\n".join(["Available Commands:", *rows]))
    own = Flag("help", "h", "", f"help for {words[-1] if words else program}")
    bare = below or " ".join(words) in _BARE
    flags = [own, *entry.flags, *(() if bare else everywhere())]
    if words:
        parts.append("\n".join(["Flags:", *usages(flags)]))
        parts.append("\n".join(["Global Flags:", *usages(GLOBAL)]))
    else:
        parts.append("\n".join(["Flags:", *usages([own, *GLOBAL])]))
    if below:
        more = f'Use "{ctx.command_path} [command] --help" for more information about a command.'
        parts.append(more)
    return "\n\n".join(parts)


def usages(flags: Sequence[Flag]) -> Iterator[str]:
    """The lines about flags, sorted by name, with aligned descriptions."""
    ordered = sorted(flags, key=lambda flag: flag.name)
    heads = [_head(flag) for flag in ordered]
    width = max(map(len, heads))
    for flag, head in zip(ordered, heads, strict=True):
        default = f" (default {flag.default})" if flag.default else ""
        yield f"{head:<{width}}   {flag.words}{default}"


def _head(flag: Flag) -> str:
    letter = f"-{flag.letter}, " if flag.letter else "    "
    return f"  {letter}--{flag.name}{f' {flag.kind}' if flag.kind else ''}"


def _below(words: Sequence[str]) -> list[tuple[str, str]]:
    """The commands of a group, with their descriptions."""
    prefix = "".join(f"{word} " for word in words)
    names = [name for name in COMMANDS if name.startswith(prefix) and name != prefix.strip()]
    direct = [name for name in names if " " not in name.removeprefix(prefix)]
    return sorted((name.removeprefix(prefix), COMMANDS[name].words) for name in direct)
