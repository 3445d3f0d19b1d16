"""How an engine is started on a host, found again, and stopped with proof."""
