"""Node documents and the server that hands them out."""
