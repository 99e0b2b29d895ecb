"""Location of a kernel's bytes: by section, subsystem, symbol and configuration option."""
