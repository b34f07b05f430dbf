"""Notices on their way: made of the ledger, gathered by channel, and sent, by a thread that no run waits for."""
