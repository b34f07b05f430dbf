"""The runner for webhooks."""
