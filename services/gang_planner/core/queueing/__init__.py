"""The order of gangs and queues: admission, fair shares, turns."""
