"""Rules of the addresses of tracing, for settings and flags."""

from typing import Final

#: Credentials have no place in it: see docs/tracing.md. Empty: none.
OTLP_ENDPOINT: Final = r"^(https?://[^@\s]+)?\Z"
OTLP_ENDPOINT_RULE: Final = "must be http:// or https://, without credentials"
#: A path is appended to it, and the console makes a link of it. Empty: none.
JAEGER_URL: Final = r"^(https?://[^/@?#\s]+(/[^@?#\s]*)?)?\Z"
JAEGER_URL_RULE: Final = "must be http:// or https://, without credentials, query and fragment"
