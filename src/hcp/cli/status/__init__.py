"""`status`: one hosted cluster on one screen."""
