"""What things are: pure values and rules. No I/O, no clock, no await."""
