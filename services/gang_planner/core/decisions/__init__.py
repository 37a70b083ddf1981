"""What is decided: made from a Statement, kept while it is open, read back from the log."""
