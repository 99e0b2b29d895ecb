"""The command `kduel`, also as `python -P -m kduel`."""

# The built-in half of `signal`: the other half makes classes, which Ctrl-C may fall into.
import _signal  # type: ignore[import-not-found]

# Until `main` handles it, Ctrl-C ends the process without a traceback.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from kduel.cli import main

if __name__ == "__main__":
    main()
