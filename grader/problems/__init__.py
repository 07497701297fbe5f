"""What a problem is, and a library to write one: distributions, error bounds, generic operations."""
