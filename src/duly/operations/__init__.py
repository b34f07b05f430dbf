"""The operations: what people and programs ask of a store, whichever front they come by."""
