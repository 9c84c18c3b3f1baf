"""The operating system: files that appear whole, signals, worker processes with limits, text that may be printed."""
