"""The command line. Folders mirror the command tree; nothing heavy is imported before a command needs it."""
