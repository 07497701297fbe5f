"""The command line: each module is a command that parses options, calls a stage and returns an exit code."""
