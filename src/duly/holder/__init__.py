"""The holder: one process's loops over the store, and the work it holds.

Each loop has a `step()`; nothing worth testing stands outside of one.
"""
