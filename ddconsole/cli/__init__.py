"""The door: one file a noun. It wires the rooms together, and imports them lazily."""
