"""The machine an embedded cluster runs on: what it must offer, and what is changed on it."""
