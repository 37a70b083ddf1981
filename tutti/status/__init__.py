"""`tutti status`, for operators, over NATS: services, gangs by phase, rates and streams.

`report` makes a report of two rounds of answers (pure), `live` draws the screen of `--watch`
(pure), `command` asks and prints.
"""
