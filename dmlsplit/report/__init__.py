"""Reports as something to read: plain text, a terminal, JSON."""
