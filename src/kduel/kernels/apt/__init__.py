"""Debian's archive: mirrors, versions, downloads, and what is unpacked from packages."""
