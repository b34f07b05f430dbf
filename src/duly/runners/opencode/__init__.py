"""The runner for prompts to a real OpenCode server: its HTTP API, its events, and the server itself."""
