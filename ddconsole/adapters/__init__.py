"""How the world is reached: ssh, local processes, SQLite, YAML, paths."""
