"""What a hosted cluster tells about itself from inside (config.openshift.io): its version, parts and settings."""
