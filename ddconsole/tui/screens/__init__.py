"""One module a screen, its stylesheet beside it."""
