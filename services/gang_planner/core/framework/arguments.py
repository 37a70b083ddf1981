"""Arguments of policies and actions, as a `volcano-scheduler.conf` gives them: text or typed YAML,
checked where read.
"""

from collections.abc import Collection, Mapping
from typing import cast

import msgspec

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})


class ConfigurationError(ValueError):
    """The file is invalid: `where` is the path in it, the message names the rule."""

    def __init__(self, where: str, rule: str) -> None:
        super().__init__(f"{where}: {rule}")
        self.where = where


class Arguments:
    """The arguments of one plugin; a value of the wrong type raises `ConfigurationError`."""

    def __init__(
        self,
        where: str,
        values: Mapping[str, object],
        flags: Collection[str] = frozenset(),
    ) -> None:
        """`flags` are those that the plugin's entry sets to true."""
        self._where = where
        self._values = values
        self._flags = flags
        self._asked: set[str] = set()
        self._parts: list[Arguments] = []

    def unread(self) -> list[str]:
        """Paths of arguments that no policy has read: they have no effect."""
        own = [self._path(name) for name in self._values if name not in self._asked]
        return own + [path for part in self._parts for path in part.unread()]

    def entry(self, name: str) -> "Arguments":
        """A mapping as arguments of its own; empty where it is not given."""
        value = self._get(name)
        found: object = {} if value is None else value
        if isinstance(value, str):
            try:
                found = msgspec.json.decode(value)
            except msgspec.DecodeError:
                found = value
        if not isinstance(found, dict):
            raise ConfigurationError(self._path(name), f"must be a mapping, not {value!r}")
        items = cast("dict[object, object]", found)
        part = Arguments(self._path(name), {str(key): one for key, one in items.items()})
        self._parts.append(part)
        return part

    def entries(self, name: str) -> list[tuple[str, "Arguments"]]:
        """A mapping of mappings, in the order of names."""
        whole = self.entry(name)
        return [(key, whole.entry(key)) for key in whole.given()]

    def given(self) -> list[str]:
        """Names of what is given, sorted."""
        return sorted(self._values)

    def scaled(self, name: str, unit: int) -> int:
        """A number, whole or not, in units of `unit`; 0 where it is not given."""
        text = self.text(name)
        try:
            return round(float(text or 0) * unit)
        except (ValueError, OverflowError):
            raise ConfigurationError(self._path(name), f"must be a number, not {text!r}") from None

    def flag(self, name: str) -> bool:
        """Whether the plugin's entry sets a flag to true."""
        return name in self._flags

    def wrong(self, name: str, rule: str) -> ConfigurationError:
        """What to raise for a value that breaks a rule of the plugin's own."""
        return ConfigurationError(self._path(name), rule)

    def text(self, name: str) -> str | None:
        """A value as text; None: it is not given."""
        value = self._get(name)
        return None if value is None else str(value).strip()

    def integer(self, name: str, default: int, *, minimum: int = 0) -> int:
        """A whole number; given as text or number."""
        value = self._get(name)
        if value is None:
            return default
        text = str(value).strip()
        digits = text.removeprefix("-")
        if isinstance(value, bool) or not (digits.isascii() and digits.isdigit()):
            raise ConfigurationError(self._path(name), f"must be a whole number, not {value!r}")
        if int(text) < minimum:
            raise ConfigurationError(self._path(name), f"must be at least {minimum}, not {text}")
        return int(text)

    def boolean(self, name: str, default: bool) -> bool:
        """True or false; given as text or boolean."""
        value = self._get(name)
        if value is None:
            return default
        text = str(value).strip().lower()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
        raise ConfigurationError(self._path(name), f"must be true or false, not {value!r}")

    def names(self, name: str) -> tuple[str, ...]:
        """A list of names, separated by commas."""
        value = self._get(name)
        if value is None:
            return ()
        if not isinstance(value, str):
            raise ConfigurationError(self._path(name), f"must be text, not {value!r}")
        return tuple(part.strip() for part in value.split(",") if part.strip())

    def _get(self, name: str) -> object:
        self._asked.add(name)
        return self._values.get(name)

    def _path(self, name: str) -> str:
        return f"{self._where}.arguments[{name}]"
