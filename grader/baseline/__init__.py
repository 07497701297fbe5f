"""What a speedup is measured against: every formula as a chain of generic operations, one kernel each."""
