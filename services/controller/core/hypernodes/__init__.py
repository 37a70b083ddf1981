"""HyperNodes: the nodes of each (`node_sets`), and those that node labels describe
(`discovery`).
"""
