"""Parses and validates `volcano-scheduler.conf`, the YAML file of Volcano and kube-batch.

Keys: `actions` (names separated by commas), `tiers[].plugins[]` (name, enable flags, arguments),
    `configurations[]` (per action).
Accepted entries without effect (`unsupported`) are reported in `warnings`; unknown keys and actions
are errors. An empty text is Volcano's built-in default.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final, cast

import msgspec

from services.gang_planner.core.configuration import unsupported
from services.gang_planner.core.framework.arguments import Arguments, ConfigurationError
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.policies import discovered
from services.gang_planner.core.state.gang_settings import WITHOUT_ROOM, Defaults
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.run_limits import NO_RESERVATIONS, ReserveRules
from shared.yaml_documents import InvalidYaml, read_document

DEFAULT_TEXT: Final = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

ACTIONS: Final = frozenset(
    {
        *("enqueue", "allocate", "backfill", "reserve"),
        *("preempt", "reclaim", "gangpreempt", "gangreclaim"),
    }
)
#: Reservations for each root at most: each costs a plan in every cycle that frees capacity.
_PER_ROOT_MAX: Final = 100
#: Actions that evict pods of other gangs.
_ASKING: Final = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim"})
#: Flags and the contributions that each one switches off, besides victims and inter-pod rules.
_SWITCHED: Final[Mapping[str, Mapping[str, tuple[()] | None]]] = {
    "enableHierarchy": {},
    "enableJobEnqueued": {"enqueue": None},
    "enableJobOrder": {"group_key": None, "users_rank": None},
    "enableNodeOrder": {"scores": (), "place_points": None},
    "enablePredicate": {"node_filters": (), "capacity_filters": (), "queue_mask": None},
    "enablePreemptable": {},
    "enableQueueOrder": {"queue_key": None, "queue_share": None},
    "enableReclaimable": {},
}
_FLAGS: Final = _SWITCHED.keys() | unsupported.FLAGS.keys()
_EXCLUSIVE: Final = ("proportion", "capacity")
_TOP: Final = frozenset({"actions", "tiers", "configurations", "metrics"})
#: Separates a policy file's text from the appended planner settings; a comment in YAML.
_DEFAULTS_MARK: Final = "\n# tutti planner settings: "
#: As similar are names that differ by one or two typing errors (`difflib`).
_NEAR: Final = 0.8
#: A configuration has about a page; a much larger file is an error.
_CHARACTERS_MAX: Final = 256 * 1024


class PluginOption(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of one plugin."""

    name: str
    tier: int
    #: Flags that are set to false.
    disabled: tuple[str, ...] = ()
    #: Flags that are set to true; only flags that are false by default have an effect.
    enabled: tuple[str, ...] = ()
    #: (name, value as text), sorted.
    arguments: tuple[tuple[str, str], ...] = ()


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed configuration: it determines how a cycle runs."""

    source: str
    actions: tuple[str, ...]
    plugins: tuple[PluginOption, ...]
    #: Entries without effect, with the reason, in words.
    warnings: tuple[str, ...] = ()
    #: Those of them that are misspelt names of plugins. A file with one is refused, but decisions
    #: that were recorded with one can be replayed.
    misspelt: tuple[str, ...] = ()
    #: Digest of the text, which decisions carry.
    digest: str
    #: Arguments of actions: (action, (name, value as text) sorted).
    action_arguments: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    #: Defaults for gangs that set no deadlines or preflight.
    defaults: Defaults = Defaults()

    @property
    def in_turn(self) -> tuple[str, ...]:
        """The actions in the order in which they run.

        Evicting actions consider only gangs that `allocate` has refused. An evicting action before
        `allocate`, as in kube-batch's files, runs again at the end, because the planner does not
        start a next cycle by itself.
        """
        if "allocate" not in self.actions:
            return self.actions
        early = self.actions[: self.actions.index("allocate")]
        return self.actions + tuple(action for action in early if action in _ASKING)

    @property
    def reserve_rules(self) -> ReserveRules:
        """The arguments of the action `reserve`, which `allocate` and `backfill` carry out whether
        it is named or not.

        Raises:
            ConfigurationError: One is invalid.
        """
        given = dict(self.action_arguments).get("reserve", ())
        arguments = Arguments("configurations[reserve]", dict(given))
        usual = NO_RESERVATIONS
        per_root, most = self.defaults.reservations, _PER_ROOT_MAX
        return ReserveRules(
            arguments.integer("reservations", per_root, maximum=most),
            arguments.integer("heldPercent", usual.held_percent, maximum=100),
            1_000 * arguments.integer("heldSeconds", usual.held_ms // 1_000, maximum=86_400),
        )

    def policies(self, state: State) -> PolicySet:
        """The configured policies, for these tables."""
        built = [_build(option)[0] for option in self.plugins if option.name in discovered()]
        enqueue = dict(self.action_arguments).get("enqueue", ())
        arguments = Arguments("configurations[enqueue]", dict(enqueue))
        without_room = arguments.integer("enqueueWithoutRoom", WITHOUT_ROOM)
        return PolicySet(built, state, without_room=without_room)


def parse_configuration(text: str) -> Configuration:
    """Parse a file's text.

    Raises:
        ConfigurationError: It is invalid; the message names the place and the rule.
    """
    if len(text) > _CHARACTERS_MAX:
        raise ConfigurationError("file", f"must have at most {_CHARACTERS_MAX} characters")
    policy_text, _, defaults_text = text.partition(_DEFAULTS_MARK)
    try:
        loaded: object = read_document(policy_text if policy_text.strip() else DEFAULT_TEXT)
    except InvalidYaml as error:
        raise ConfigurationError("file", f"must be YAML: {error}") from error
    root = _mapping("file", loaded)
    for key in root:
        if key not in _TOP:
            raise ConfigurationError(key, f"unknown key, known are {', '.join(sorted(_TOP))}")
    actions, ignored = _actions(root.get("actions", "enqueue, allocate, backfill"))
    plugins = _plugins(root.get("tiers"))
    warnings = [f"action {name}: {unsupported.ACTIONS[name]}" for name in ignored]
    warnings += [text for option in plugins for text in _warnings(option)]
    configuration = Configuration(
        source=text,
        actions=tuple(actions),
        plugins=tuple(plugins),
        warnings=tuple(warnings),
        misspelt=tuple(text for option in plugins for text in _misspelt(option)),
        digest=hashlib.sha256((text if text.strip() else DEFAULT_TEXT).encode()).hexdigest()[:16],
        defaults=_defaults(defaults_text),
        action_arguments=tuple(_action_arguments(root.get("configurations"))),
    )
    configuration.policies(State())
    _ = configuration.reserve_rules
    return configuration


def with_defaults(policy_text: str, defaults: Defaults) -> str:
    """The source of a configuration: a policy file's text, followed by the planner's settings if
    they differ from the built-in ones. `parse_configuration` restores both, so that a recording can
    be replayed.
    """
    if defaults == Defaults():
        return policy_text
    return policy_text + _DEFAULTS_MARK + msgspec.json.encode(defaults).decode()


def _defaults(text: str) -> Defaults:
    if not text:
        return Defaults()
    try:
        return msgspec.json.decode(text, type=Defaults)
    except msgspec.DecodeError as error:
        raise ConfigurationError("planner settings", str(error)) from error


def _actions(value: object) -> tuple[list[str], list[str]]:
    if not isinstance(value, str):
        raise ConfigurationError("actions", "must be names separated by commas")
    names = [_action("actions", name.strip()) for name in value.split(",") if name.strip()]
    if not names:
        raise ConfigurationError("actions", "must name at least one action")
    return (
        [name for name in names if name in ACTIONS],
        [name for name in names if name not in ACTIONS],
    )


def _action(where: str, name: object) -> str:
    known = sorted(ACTIONS | unsupported.ACTIONS.keys())
    if name not in known:
        raise ConfigurationError(where, f"unknown action {name!r}, known are {', '.join(known)}")
    return str(name)


def _action_arguments(value: object) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield (action, sorted arguments) of the entries of `configurations`."""
    if value is None:
        return
    for index, entry in enumerate(_sequence("configurations", value)):
        where = f"configurations[{index}]"
        fields = _mapping(where, entry)
        name = _action(f"{where}.name", fields.get("name"))
        given = _given(where, fields)
        yield name, tuple(sorted((key, str(value)) for key, value in given.items()))


def _plugins(value: object) -> list[PluginOption]:
    if value is None:
        return []
    options: list[PluginOption] = []
    for tier, entry in enumerate(_sequence("tiers", value)):
        where = f"tiers[{tier}]"
        plugins = _mapping(where, entry).get("plugins")
        if plugins is None:
            continue
        for index, plugin in enumerate(_sequence(f"{where}.plugins", plugins)):
            options.append(_plugin(f"{where}.plugins[{index}]", tier, plugin))
    names = [option.name for option in options]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError("tiers", f"plugin {name!r} is named more than once")
    if all(name in names for name in _EXCLUSIVE):
        raise ConfigurationError("tiers", f"{' and '.join(_EXCLUSIVE)} exclude each other")
    drf = next((option for option in options if option.name == "drf"), None)
    if drf is not None and "enableHierarchy" in drf.enabled and "proportion" in names:
        raise ConfigurationError(
            "tiers", "drf with enableHierarchy and proportion exclude each other"
        )
    return options


def _plugin(where: str, tier: int, value: object) -> PluginOption:
    fields = _mapping(where, value)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{where}.name", f"must be a plugin's name, not {name!r}")
    disabled: list[str] = []
    enabled: list[str] = []
    for key, flag in fields.items():
        if key in {"name", "arguments"}:
            continue
        if key not in _FLAGS:
            raise ConfigurationError(f"{where}.{key}", "unknown key")
        if not isinstance(flag, bool):
            raise ConfigurationError(f"{where}.{key}", f"must be true or false, not {flag!r}")
        (enabled if flag else disabled).append(key)
    return PluginOption(
        name=name,
        tier=tier,
        disabled=tuple(sorted(disabled)),
        enabled=tuple(sorted(enabled)),
        arguments=tuple(
            sorted((key, _text(value)) for key, value in _given(where, fields).items())
        ),
    )


def _given(where: str, fields: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments of an entry that have a value."""
    arguments = fields.get("arguments")
    pairs = _mapping(f"{where}.arguments", {} if arguments is None else arguments)
    return {key: value for key, value in pairs.items() if value is not None}


def _text(value: object) -> str:
    """An argument's value as text; mappings and lists as JSON."""
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, order="sorted").decode()
    return str(value)


def _warnings(option: PluginOption) -> list[str]:
    """Warnings on the parts of a plugin's entry that have no effect.

    Raises:
        ConfigurationError: An argument is invalid.
    """
    where = f"plugin {option.name}"
    if option.name not in discovered():
        return [f"{where}: {unsupported.PLUGINS.get(option.name, unsupported.UNKNOWN_PLUGIN)}"]
    _, arguments = _build(option)
    flags = [
        f"{where}: {flag}: {why}"
        for flag, why in unsupported.FLAGS.items()
        if flag in option.disabled
    ]
    return flags + [f"{path}: has no effect" for path in arguments.unread()]


def _misspelt(option: PluginOption) -> Iterator[str]:
    """The message on a plugin whose name is nearly that of another one."""
    known = discovered().keys() | unsupported.PLUGINS.keys()
    if option.name not in known:
        for near in get_close_matches(option.name, sorted(known), 1, _NEAR):
            yield f"tiers[{option.tier}]: unknown plugin {option.name!r} (did you mean {near!r}?)"


def _build(option: PluginOption) -> tuple[Policy, Arguments]:
    where = f"tiers[{option.tier}].plugins[{option.name}]"
    arguments = Arguments(where, dict(option.arguments), frozenset(option.enabled))
    policy = discovered()[option.name](arguments)
    off: dict[str, Any] = {}  # of many types, each that of its field
    for flag in option.disabled:
        off.update(_SWITCHED.get(flag, {}))
    if policy.victims is not None:
        off["victims"] = policy.victims.only(
            preempt="enablePreemptable" not in option.disabled,
            reclaim="enableReclaimable" not in option.disabled,
        )
    pairwise = policy.pairwise.without(
        judging="enablePredicate" in option.disabled,
        preferring="enableNodeOrder" in option.disabled,
    )
    return replace(policy, tier=option.tier, pairwise=pairwise, **off), arguments


def _mapping(where: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigurationError(where, f"must be a mapping, not {type(value).__name__}")
    items = cast("dict[object, object]", value)
    return {str(key): item for key, item in items.items()}


def _sequence(where: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise ConfigurationError(where, f"must be a list, not {type(value).__name__}")
    return cast("list[object]", value)
