"""`upgrade`: to another release."""
