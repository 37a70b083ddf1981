"""`tutti queue`: create, list, operate and delete Queues. (`tutti queues` is the ledger.)"""
