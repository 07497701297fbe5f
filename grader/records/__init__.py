"""What a grading says as plain data: the record, verdicts, findings, exit codes. Everything may import it."""
