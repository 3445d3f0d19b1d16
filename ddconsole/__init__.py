"""A terminal console for tuning DDTree speculative decoding on a GPU host that is far away."""

__version__ = "0.1.0"
