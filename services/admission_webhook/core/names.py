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
_IS_LABEL: Final = re.compile(_LABEL)
_IS_SUBDOMAIN: Final = re.compile(_SUBDOMAIN)
_IS_PART: Final = re.compile(_PART)
_IS_VALUE: Final = re.compile(_VALUE)
# As the API server accepts since 1.34: all printable ASCII characters but "=".
_IS_ENVIRONMENT: Final = re.compile(r"[ -<>-~]+")


def label(text: str) -> str:
    """A DNS label (RFC 1123)."""
    if len(text) > LABEL_MAX:
        return f"must be no more than {LABEL_MAX} characters"
    if _IS_LABEL.fullmatch(text):
        return ""
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
        f"regex used for validation is '{_LABEL}')"
    )


def subdomain(text: str) -> str:
    """A DNS subdomain (RFC 1123)."""
    if len(text) > SUBDOMAIN_MAX:
        return f"must be no more than {SUBDOMAIN_MAX} characters"
    if _IS_SUBDOMAIN.fullmatch(text):
        return ""
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
        f"regex used for validation is '{_SUBDOMAIN}')"
    )


def qualified(text: str) -> str:
    """A qualified name: the key of a label, an annotation or an extended resource."""
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or subdomain(prefix)):
        return "prefix part must be a lowercase RFC 1123 subdomain"
    if not name:
        return "name part must be non-empty"
    if len(name) > LABEL_MAX:
        return f"name part must be no more than {LABEL_MAX} bytes"
    if _IS_PART.fullmatch(name):
        return ""
    return (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "
        "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
        f"regex used for validation is '{_PART}')"
    )


def label_value(text: str) -> str:
    """The value of a label."""
    if len(text) > LABEL_MAX:
        return f"must be no more than {LABEL_MAX} bytes"
    if _IS_VALUE.fullmatch(text):
        return ""
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
        f"'my_value',  or '12345', regex used for validation is '{_VALUE}')"
    )


def environment(text: str) -> str:
    """The name of an environment variable."""
    if _IS_ENVIRONMENT.fullmatch(text):
        return ""
    return (
        "a valid environment variable name must consist of alphabetic characters, digits, '_', "
        f"'-', or '.', and must not start with a digit (e.g. 'MY_ENV.NAME', {_ENVIRONMENT})"
    )
