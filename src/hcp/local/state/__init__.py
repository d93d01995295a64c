"""What is kept about an embedded cluster between commands, and where: specification, folders, parts, locks."""
