"""`tutti status`, for operators, over NATS: services and their health, gangs by phase, decisions per
second, streams.

`report` makes a report of two rounds of answers (pure), `live` draws the screen of `--watch`
(pure), `command` asks and prints.
"""
