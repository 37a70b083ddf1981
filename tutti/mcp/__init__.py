"""`tutti mcp`: read-only tools for assistants over the Model Context Protocol, with the maintained
SDK (the extra `mcp`) and the Python client.
"""
