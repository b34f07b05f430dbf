"""From what an author wrote to the very text that an agent is sent."""
