"""The command line: one entry point whose sub-commands import what they need when they run."""
