"""Runners: what performs one attempt of one kind of action, and the processes of ours around its work."""
