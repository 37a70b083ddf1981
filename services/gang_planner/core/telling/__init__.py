"""What is said of a gang: what it waits for, in a sentence and in conditions, and when."""
