"""Consent to stop a service of the host and put it back: `--take-over`, or a question on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable


def take_over_option() -> Callable[[Callable[..., object]], Callable[..., object]]:
    """The `--take-over` flag, as the argument `take_over`."""
    return click.option(
        "--take-over",
        is_flag=True,
        help="Run engines in the place of the service that launcher.unit names; it is put back at the end.",
    )
