"""The operating system: files that are written atomically, signals, worker processes with limits, printable text."""
