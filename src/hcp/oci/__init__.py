"""Image references, registry client, mirrors, image writer."""
