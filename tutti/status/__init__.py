"""`tutti status`, for operators, over NATS: services and their health, gangs by phase, decisions a
second, streams.

`report` makes a report of two rounds of answers (pure), `command` asks and prints.
"""
