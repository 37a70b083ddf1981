"""The formats of Kubernetes' names and labels: each check returns an objection, or "" for a valid
text.

The objections have Kubernetes' own words, which users search for.
"""

import re
from typing import Final

LABEL_MAX: Final = 63
SUBDOMAIN_MAX: Final = 253

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_PART: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = rf"({_PART})?"
_ENVIRONMENT: Final = r"[-._a-zA-Z][-._a-zA-Z0-9]*"
# As the API server accepts since 1.34: all printable ASCII characters but "=".
_IS_ENVIRONMENT: Final = re.compile(r"[ -<>-~]+")


def label(text: str) -> str:
    """A DNS label (RFC 1123)."""
    rule = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    )
    return _objection(text, LABEL_MAX, "characters", _LABEL, rule)


def subdomain(text: str) -> str:
    """A DNS subdomain (RFC 1123)."""
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    )
    return _objection(text, SUBDOMAIN_MAX, "characters", _SUBDOMAIN, rule)


def qualified(text: str) -> str:
    """A qualified name: the key of a label, an annotation or an extended resource."""
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or subdomain(prefix)):
        return "prefix part must be a lowercase RFC 1123 subdomain"
    if not name:
        return "name part must be non-empty"
    rule = (
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and "
        "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    )
    objection = _objection(name, LABEL_MAX, "bytes", _PART, rule)
    return f"name part {objection}" if objection else ""


def label_value(text: str) -> str:
    rule = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
        "'my_value',  or '12345', "
    )
    return _objection(text, LABEL_MAX, "bytes", _VALUE, rule)


def _objection(text: str, length_max: int, unit: str, pattern: str, rule: str) -> str:
    if len(text) > length_max:
        return f"must be no more than {length_max} {unit}"
    if re.fullmatch(pattern, text):
        return ""
    return f"{rule}regex used for validation is '{pattern}')"


def environment(text: str) -> str:
    """The name of an environment variable."""
    if _IS_ENVIRONMENT.fullmatch(text):
        return ""
    return (
        "a valid environment variable name must consist of alphabetic characters, digits, '_', "
        f"'-', or '.', and must not start with a digit (e.g. 'MY_ENV.NAME', {_ENVIRONMENT})"
    )
