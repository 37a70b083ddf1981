"""The API without I/O: gangs and nodes as indexed records, objects and tables built from them,
requests and documents.
"""
