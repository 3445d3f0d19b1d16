"""Pictures as pure functions: values and a width in, lines of styled text out. No widget, no clock, no I/O."""
