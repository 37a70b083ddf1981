"""Flags that the commands share, and commands that parse them as Go's pflag does.

Scripts contain `-N=train` and `--all-namespaces=true`; click would read the first as the name
`=train` and refuse the second.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Container, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias

import click
import msgspec
from click.shell_completion import CompletionItem
from typing_extensions import override

from shared.kinds.durations import duration_ms
from shared.kube.client import KubeClient
from shared.kube.errors import NotFound
from shared.kube.resources import NAMESPACES, Resource
from tutti.api.access import Access, open_client, open_namespace
from tutti.api.conventions import conventions
from tutti.api.failures import Refusal, fail
from tutti.api.fetches import Wanted, fetch
from tutti.api.manifests import Content, contents
from tutti.api.objects import name_of
from tutti.api.output import FORMATS
from tutti.up.options import SCHEDULER_NAMES

Function: TypeAlias = Callable[..., Any]
Flag: TypeAlias = Callable[[Function], Function]
"""Adds flags to the function of a command."""

#: Where click's context keeps it.
_VERBOSITY = "tutti.verbosity"
_TRUE = frozenset({"1", "t", "true"})
_FALSE = frozenset({"0", "f", "false"})
#: Timeout of a completion: the user waits for it after pressing Tab.
_PATIENCE_S: Final = 2.0


class PflagCommand(click.Command):
    """A command that also accepts `-x=value` and `--switch=true`."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, as_click_reads(self, args, conventions(ctx).ignored))

    @override
    def get_help(self, ctx: click.Context) -> str:
        write = conventions(ctx).help_
        return (write(ctx) if write is not None else None) or super().get_help(ctx)


class PflagGroup(PflagCommand, click.Group):
    """A group whose flags and commands are parsed in the same way."""

    command_class = PflagCommand


PflagGroup.group_class = PflagGroup


def as_click_reads(
    command: click.Command, args: Sequence[str], ignored: Container[str] = ()
) -> list[str]:
    """The arguments of a command with `-x=value` taken apart, and `--switch=true` reduced to the
    switch; the flags in `ignored` are removed with their values.
    """
    options = {
        name: param
        for param in command.params
        if isinstance(param, click.Option)
        for name in param.opts
    }
    words: list[str] = []
    left = list(args)
    while left:
        arg = left.pop(0)
        if arg == "--":
            return [*words, arg, *left]
        name, equals, value = arg.partition("=")
        if name in ignored:
            left = left if equals else left[1:]
        elif equals and name in options:
            words += _one_option(options[name], name, value)
        else:
            words.append(arg)
    return words


def _one_option(option: click.Option, name: str, value: str) -> list[str]:
    if option.is_flag and not option.secondary_opts and value.lower() in _TRUE | _FALSE:
        return [name] if value.lower() in _TRUE else []
    return [f"{name}={value}"] if name.startswith("--") else [name, value]


def gathered(kind: type[msgspec.Struct], name: str, *options: Flag) -> Flag:
    """Several options as one, given to the function as a struct: the argument `name`.

    An option sets the field of its name; fields without an option have their defaults.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = {each: kwargs.pop(each) for each in kind.__struct_fields__ if each in kwargs}
            return function(*args, **{name: kind(**given)}, **kwargs)

        decorated: Function = call
        # The last decorator is the first in the help.
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def remember_verbosity(ctx: click.Context, _: click.Parameter, level: int) -> int:
    """Keep and return the highest level that is given, before or after the command."""
    highest: int = max(level, ctx.meta.get(_VERBOSITY, 0))
    ctx.meta[_VERBOSITY] = highest
    return highest


kubeconfig_flag = click.option(
    "--kubeconfig",
    "-k",
    default="",
    metavar="FILE",
    help="Kubeconfig of the cluster; default: as kubectl finds it.",
)
context_flag = click.option(
    "--context", default="", metavar="NAME", help="Context in the kubeconfig."
)


def verbosity_flag(help_: str = "At level 4 and above, log every request.") -> Flag:
    return click.option(
        "--v",
        "-v",
        "verbosity",
        type=int,
        default=0,
        callback=remember_verbosity,
        metavar="LEVEL",
        help=help_,
    )


#: `--kubeconfig`, `--context`, `--master`, `-v`, given to the function as `access`.
access_flags = gathered(
    Access,
    "access",
    kubeconfig_flag,
    context_flag,
    click.option(
        "--master",
        "-s",
        "server",
        default="",
        metavar="URL",
        help="URL of the API server; default: the context's.",
    ),
    verbosity_flag(),
)


def namespace_flag(
    help_: str = "Namespace; default: the context's.", *, letter: str = "-n"
) -> Flag:
    return click.option(
        "--namespace",
        letter,
        default="",
        metavar="NAME",
        help=help_,
        shell_complete=completion(NAMESPACES),
    )


everywhere_flag = click.option(
    "--all-namespaces", "-A", "everywhere", is_flag=True, help="Use all namespaces."
)


class _Formats(click.Choice[str]):
    """Formats of output; `table` is read as `text`, its name now."""

    @override
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert("text" if value == "table" else value, param, ctx)


def output_flag(*formats: str) -> Flag:
    """`--output`; all formats unless some are named, the first by default."""
    formats = formats or FORMATS
    return click.option(
        "--output",
        "-o",
        type=_Formats(formats),
        default=formats[0],
        show_default=True,
        help="Output format.",
    )


#: Of commands that print a report.
report_flag = output_flag("text", "json", "yaml")
#: Of commands that print objects of Tutti's API.
objects_flag = output_flag("text", "json", "yaml", "name")


class Duration(click.ParamType[int]):
    """`90s`, `15m`, `2h` or `1h30m`, in milliseconds."""

    name = "duration"

    @override
    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        duration = value if isinstance(value, int) else duration_ms(value)
        if duration is None:
            self.fail(f"{value!r} must be a duration, such as 90s, 10m or 1h30m", param, ctx)
        return duration


def scheduler_names_flag(help_: str) -> Flag:
    """`--scheduler-name`; by default the names that Tutti serves without settings."""
    return click.option(
        "--scheduler-name",
        "scheduler_names",
        multiple=True,
        default=SCHEDULER_NAMES,
        show_default=True,
        metavar="NAME",
        help=help_,
    )


def files_flag(*, required: bool = True) -> Flag:
    """`-f`, one or more if `required`: the contents of files, given to the function as `files`."""
    return click.option(
        "--filename",
        "--file",
        "-f",
        "files",
        multiple=True,
        required=required,
        metavar="FILE",
        callback=_contents,
        help="Manifest file, or folder of them; - for standard input; repeatable.",
    )


def _contents(ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> list[Content]:
    """The contents of the files, those of a folder by name. A file that cannot be read ends the
    program.
    """
    try:
        return [] if ctx.resilient_parsing else [file for path in given for file in contents(path)]
    except Refusal as error:
        fail(str(error))


watch_flag = click.option(
    "--watch", "-w", is_flag=True, help="After the list, print changes until Ctrl-C."
)
#: A label selector, as kubectl reads it.
selector_flag = click.option(
    "--selector",
    "-l",
    default="",
    metavar="LABELS",
    help="Only objects with these labels, such as app=train,tier!=test.",
)


def split_selector(given: str) -> tuple[str, str]:
    """A `--selector` as (label selector, part of the name); at most one is not "".

    `train` alone is a label's name for kubectl and a part of the job's name for Volcano's tools.
    """
    is_word = not any(mark in given for mark in "=!(,") and " " not in given.strip()
    if given and is_word and conventions().names_by_part:
        return "", given
    return given, ""


def name_flag(kind: str, letter: str = "-N") -> Flag:
    """`--name`, which Volcano's tools require instead of arguments."""
    return click.option("--name", letter, default="", metavar="NAME", help=f"Name of the {kind}.")


def names_argument(resource: Resource) -> Flag:
    """Names as arguments, completed from the existing objects."""
    return click.argument(
        "names", nargs=-1, metavar="[NAME]...", shell_complete=completion(resource)
    )


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Objects of one kind, as a user names them: by `--name`, by arguments, or both."""

    access: Access
    namespace: str = ""
    name: str = ""
    names: tuple[str, ...] = ()

    @property
    def all_names(self) -> tuple[str, ...]:
        return (*([self.name] if self.name else []), *self.names)

    def opened(self) -> AbstractAsyncContextManager[tuple[KubeClient, str]]:
        """A client and the namespace; see `open_namespace`."""
        return open_namespace(self.access, self.namespace)

    def required(self, resource: Resource) -> tuple[str, ...]:
        """All names. Raises Refusal if there is none."""
        if not self.all_names:
            kind = resource.kind.lower()
            raise Refusal(f"{kind} name is mandatory: give it as an argument, or with --name")
        return self.all_names

    def single(self, resource: Resource) -> str:
        """The only name. Raises Refusal if there is none, or more than one."""
        first, *more = names = self.required(resource)
        if more:
            kind = resource.kind.lower()
            raise Refusal(f"give one {kind} name, not {len(names)}: {', '.join(names)}")
        return first


def selection_flags(resource: Resource, *own: Flag, letter: str = "-N") -> Flag:
    """The flags and arguments that name objects of a kind, given to the function as `selection`;
    the help lists the command's own flags between them. `letter` is the short form of `--name`.
    """
    return gathered(
        Selection,
        "selection",
        *([namespace_flag()] if resource.namespaced else []),
        name_flag(resource.kind, letter),
        *own,
        names_argument(resource),
        access_flags,
    )


Completion: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completion(*resources: Resource) -> Completion:
    """Complete names of these kinds, in the namespace of the flags before them; without an answer
    of the API server, with nothing.
    """
    return completed_by(lambda ctx, _: _names(resources, ctx))


def completed_by(
    find: Callable[[click.Context, str], Coroutine[Any, Any, list[str]]],
) -> Completion:
    """Complete with what `find` returns for the word that was begun; an error completes nothing."""

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        try:
            names = asyncio.run(find(ctx, begun))
        except Exception:  # noqa: BLE001 - a completion has no place for a message
            return []
        return [CompletionItem(name) for name in names if name.startswith(begun)]

    return complete


async def _names(resources: Sequence[Resource], ctx: click.Context) -> list[str]:
    async with asyncio.timeout(_PATIENCE_S), completing_client(ctx) as client:
        return await names_of(resources, client, ctx)


def completing_client(ctx: click.Context) -> AbstractAsyncContextManager[KubeClient]:
    """A client of the cluster that the flags before the word name."""
    typed = ctx.params
    return open_client(
        Access(
            kubeconfig=typed.get("kubeconfig") or "",
            context=typed.get("context") or "",
            server=typed.get("server") or "",
        )
    )


async def names_of(
    resources: Sequence[Resource], client: KubeClient, ctx: click.Context
) -> list[str]:
    """The names of the objects of these kinds, without those of kinds that are not served."""
    default = conventions(ctx).namespace or client.credentials.namespace
    place = ctx.params.get("namespace") or default
    names: dict[str, None] = {}
    for resource in resources:
        wanted = Wanted(resource=resource, namespace=place if resource.namespaced else "")
        with contextlib.suppress(NotFound):
            names |= dict.fromkeys(name_of(each) for each in await fetch(client, wanted))
    return list(names)
