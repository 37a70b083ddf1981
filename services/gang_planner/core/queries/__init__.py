"""Read-only queries: would a gang fit, which gangs would it displace, the ledger of queues,
the fragmentation of free capacity.
"""
