"""`tutti bundle`: the data of a bug report in one file, without secrets.

`collection` asks the services, NATS and this machine's data folder, `pods` asks the API server for
logs, `archive` packs the files and lists them, `command` reads the flags.
"""
