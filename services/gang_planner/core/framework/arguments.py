"""Arguments of policies and actions from a `volcano-scheduler.conf`: text or typed YAML, validated
when they are read.
"""

from collections.abc import Collection, Mapping
from typing import cast

import msgspec

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})


class ConfigurationError(ValueError):
    """The file is invalid: `where` is the path in the file, the message states the rule."""

    def __init__(self, where: str, rule: str) -> None:
        super().__init__(f"{where}: {rule}")
        self.where = where


class Arguments:
    """Arguments of one plugin; reading a value of the wrong type raises `ConfigurationError`."""

    def __init__(
        self,
        where: str,
        values: Mapping[str, object],
        flags: Collection[str] = frozenset(),
    ) -> None:
        """`where` is the plugin's path in the file; `flags` are the flags that are set to true."""
        self._where = where
        self._values = values
        self._flags = flags
        self._asked: set[str] = set()
        self._parts: list[Arguments] = []

    def unread(self) -> list[str]:
        """Paths of arguments that no policy has read and that therefore have no effect."""
        own = [self._path(name) for name in self._values if name not in self._asked]
        return own + [path for part in self._parts for path in part.unread()]

    def entry(self, name: str) -> "Arguments":
        """A mapping, as nested arguments; empty if it is not set."""
        value = self._get(name)
        mapping: object = {} if value is None else value
        if isinstance(value, str):
            try:
                mapping = msgspec.json.decode(value)
            except msgspec.DecodeError:
                mapping = value
        if not isinstance(mapping, dict):
            raise ConfigurationError(self._path(name), f"must be a mapping, not {value!r}")
        items = cast("dict[object, object]", mapping)
        part = Arguments(self._path(name), {str(key): nested for key, nested in items.items()})
        self._parts.append(part)
        return part

    def entries(self, name: str) -> list[tuple[str, "Arguments"]]:
        """A mapping of mappings, sorted by name."""
        whole = self.entry(name)
        return [(key, whole.entry(key)) for key in whole.given()]

    def given(self) -> list[str]:
        return sorted(self._values)

    def scaled(self, name: str, unit: int) -> int:
        """A decimal number times `unit`, rounded; 0 if it is not set."""
        text = self.text(name)
        try:
            return round(float(text or 0) * unit)
        except (ValueError, OverflowError):
            raise ConfigurationError(self._path(name), f"must be a number, not {text!r}") from None

    def flag(self, name: str) -> bool:
        return name in self._flags

    def wrong(self, name: str, rule: str) -> ConfigurationError:
        """The error to raise for a value that violates a rule of the plugin."""
        return ConfigurationError(self._path(name), rule)

    def text(self, name: str) -> str | None:
        """A value as stripped text; None if it is not set."""
        value = self._get(name)
        return None if value is None else str(value).strip()

    def integer(
        self, name: str, default: int, *, minimum: int = 0, maximum: int | None = None
    ) -> int:
        """A whole number from `minimum` to `maximum` (None: any), from text or a number."""
        value = self._get(name)
        if value is None:
            return default
        text = str(value).strip()
        digits = text.removeprefix("-")
        if isinstance(value, bool) or not (digits.isascii() and digits.isdigit()):
            raise ConfigurationError(self._path(name), f"must be a whole number, not {value!r}")
        if int(text) < minimum:
            raise ConfigurationError(self._path(name), f"must be at least {minimum}, not {text}")
        if maximum is not None and int(text) > maximum:
            raise ConfigurationError(self._path(name), f"must be at most {maximum}, not {text}")
        return int(text)

    def boolean(self, name: str, default: bool) -> bool:
        """A boolean, from text or a boolean."""
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
        """Names separated by commas; empty if it is not set."""
        value = self._get(name)
        if value is None:
            return ()
        if not isinstance(value, str):
            raise ConfigurationError(self._path(name), f"must be text, not {value!r}")
        return tuple(part.strip() for part in value.split(",") if part.strip())

    def resource_weights(self, prefix: str) -> dict[str, int]:
        """Weights of resources: `<prefix>.cpu`, `.memory` (1 each), `.resources` (names of further
        ones), `.resources.<name>` (1).
        """
        weights = {name: self.integer(f"{prefix}.{name}", 1) for name in ("cpu", "memory")}
        for name in self.names(f"{prefix}.resources"):
            weights[name] = self.integer(f"{prefix}.resources.{name}", 1)
        return weights

    def _get(self, name: str) -> object:
        self._asked.add(name)
        return self._values.get(name)

    def _path(self, name: str) -> str:
        return f"{self._where}.arguments[{name}]"
