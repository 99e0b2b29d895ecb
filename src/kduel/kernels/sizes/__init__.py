"""Where a kernel's bytes are: by section, subsystem, symbol and configuration option."""
