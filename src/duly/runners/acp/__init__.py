"""Agents by the Agent Client Protocol, over the standard streams of a process of their own."""
