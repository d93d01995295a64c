"""Backups of hosted clusters: what is kept of one, in which file, in which store, and how it comes back.

Pure: `naming`, `sealing`, `content`, `objects`, `retention`, `jobs`. The rest reads and writes.
"""
