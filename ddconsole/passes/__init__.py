"""How an engine is measured: the streaming client, the passes, and what they run on."""
