"""The documents agree with the code: links, symbols, commands, outputs and generated tables."""
