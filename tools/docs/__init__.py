"""What turns `docs/` into a site: reference pages out of the source, and a check of what came out."""
