"""The door for agents: tools of the Model Context Protocol over the operations, with no rule of their own."""
