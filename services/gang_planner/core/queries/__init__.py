"""Questions that change nothing: would a gang fit, which gangs would it displace, the ledger."""
