"""`python -m ddconsole`, the same door as the installed `ddconsole` command."""

from ddconsole.cli.main import main

if __name__ == "__main__":
    main()
