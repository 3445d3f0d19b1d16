"""A GPU host in a box. Nothing but cli knows that it exists."""
