"""Reports as something to read: plain text, a terminal, JSON, SARIF, pictures, a page of HTML."""
