"""The `ddconsole` command."""


def main() -> None:
    """Run the command line."""
