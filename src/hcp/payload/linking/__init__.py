"""Which shared libraries a program needs, and whether it finds them where it is started.

`elf` reads one file, `tree` a folder or an image, `rules` finds what is missing, `check` holds artifacts to it.
"""
