"""Reading a release image: components, versions, boot disk."""
