"""Where backups lie. A store keeps whole files by name, and shows none that is not whole."""
