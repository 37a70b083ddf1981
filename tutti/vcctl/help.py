"""The help of Volcano's `vcctl`, in the format of Go's cobra: its commands and flags.

Volcano's end-to-end tests compare the help texts, so they are an interface. Commands and flags of
`tutti` beyond these work in `vcctl`, too, and are shown by `tutti ... --help`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import click


class Flag(NamedTuple):
    """One flag as help shows it."""

    name: str
    letter: str
    kind: str
    words: str
    #: The default in the help; "" for the zero value of its type.
    default: str = ""


class Entry(NamedTuple):
    """One command, or a group of them."""

    words: str
    flags: tuple[Flag, ...] = ()


def _namespace(kind: str) -> Flag:
    return Flag("namespace", "n", "string", f"the namespace of {kind}", '"default"')


def _name(kind: str, letter: str = "N") -> Flag:
    return Flag("name", letter, "string", f"the name of {kind}")


def _file(kind: str) -> Flag:
    return Flag("file", "f", "string", f"the path to the YAML file containing the {kind}")


_MASTER: Final = Flag("master", "s", "string", "the address of apiserver")
_FORMAT: Final = Flag("format", "o", "string", "the format of output", '"yaml"')
_RESOURCES: Final = '"cpu=1000m,memory=100Mi"'


def everywhere() -> tuple[Flag, ...]:
    """The flags that every command has in addition to its own."""
    words = "(optional) absolute path to the kubeconfig file"
    return (Flag("kubeconfig", "k", "string", words), _MASTER)


#: Flags that Go's libraries give the program as a whole.
GLOBAL: Final = (
    Flag(
        "log-flush-frequency",
        "",
        "duration",
        "Maximum number of seconds between log flushes",
        "5s",
    ),
    Flag("v", "v", "Level", "number for the log level verbosity"),
    Flag(
        "vmodule",
        "",
        "moduleSpec",
        "comma-separated list of pattern=N settings for file-filtered logging (only works for the "
        "default text log format)",
    ),
)


def _all(kind: str) -> Flag:
    return Flag("all-namespaces", "", "", f"list {kind} in all namespaces")


def _flow_commands(word: str, kind: str) -> dict[str, Entry]:
    lists_everywhere = (_all("jobflows"),) if word == "jobflow" else ()
    return {
        word: Entry(f"vcctl command line operation {word}"),
        f"{word} create": Entry(f"create a {word}", (_file(word),)),
        f"{word} delete": Entry(f"delete a {word}", (_file(word), _name(kind), _namespace(kind))),
        f"{word} describe": Entry(f"describe a {word}", (_FORMAT, _name(kind), _namespace(kind))),
        f"{word} get": Entry(f"get a {word}", (_name(kind), _namespace(kind))),
        f"{word} list": Entry(f"list {word}s", (*lists_everywhere, _namespace(kind))),
    }


COMMANDS: Final[Mapping[str, Entry]] = {
    "": Entry(""),
    "help": Entry("Help about any command"),
    "job": Entry("vcctl command line operation job"),
    "job delete": Entry("delete a job", (_name("job"), _namespace("job"))),
    "job list": Entry(
        "list job information",
        (
            _all("jobs"),
            _namespace("job"),
            Flag("queue", "q", "string", "list job with specified queue name"),
            Flag("scheduler", "S", "string", "list job with specified scheduler name"),
            Flag("selector", "", "string", "fuzzy matching jobName"),
        ),
    ),
    "job resume": Entry("resume a job", (_name("job"), _namespace("job"))),
    "job run": Entry(
        "run job by parameters from the command line",
        (
            Flag("filename", "f", "string", "the yaml file of job"),
            Flag("image", "i", "string", "the container image of job", '"busybox"'),
            Flag("limits", "L", "string", "the resource limit of the task", _RESOURCES),
            Flag("min", "m", "int", "the minimal available tasks of job", "1"),
            _name("job"),
            _namespace("job"),
            Flag("replicas", "r", "int", "the total tasks of job", "1"),
            Flag("requests", "R", "string", "the resource request of the task", _RESOURCES),
            Flag("scheduler", "S", "string", "the scheduler for this job", '"volcano"'),
        ),
    ),
    "job suspend": Entry("abort a job", (_name("job"), _namespace("job"))),
    "job view": Entry("show job information", (_name("job"), _namespace("job"))),
    **_flow_commands("jobflow", "jobflow"),
    **_flow_commands("jobtemplate", "job template"),
    "pod": Entry("vcctl command line operation pod"),
    "pod list": Entry(
        "list pod information created by vcjob",
        (
            _all("pods"),
            Flag("job", "j", "string", "list pod with specified job name"),
            _namespace("pod"),
            Flag("queue", "q", "string", "list pod with specified queue name"),
        ),
    ),
    "queue": Entry("Queue Operations"),
    "queue create": Entry(
        "creates queue",
        (
            Flag("name", "n", "string", "the name of queue", '"test"'),
            Flag("state", "S", "string", "the state of queue", '"Open"'),
            Flag("weight", "w", "int32", "the weight of the queue", "1"),
        ),
    ),
    "queue delete": Entry("delete queue", (_name("queue", "n"),)),
    "queue get": Entry("get a queue", (_name("queue", "n"),)),
    "queue list": Entry("lists all the queue"),
    "queue operate": Entry(
        "operate queue",
        (
            Flag(
                "action",
                "a",
                "string",
                "operate action to queue, valid actions are open, close, update",
            ),
            _name("queue", "n"),
            Flag("weight", "w", "int32", "the weight of the queue"),
        ),
    ),
    "version": Entry("Print the version information"),
}


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
