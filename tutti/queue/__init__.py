"""`tutti queue`: create, list, operate and delete Queues. (`tutti queues` prints the ledger.)"""
