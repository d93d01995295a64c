"""The guided tour: every step is a command a person could have typed."""
