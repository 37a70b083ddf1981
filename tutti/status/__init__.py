"""`tutti status`, for operators, over NATS: services, gangs by phase, rates and streams.

`report` makes a report of two rounds of answers (pure), `command` asks, prints, and draws the
screen of `--watch`.
"""
