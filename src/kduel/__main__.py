"""`python -P -m kduel`."""

import signal

# Until `main` handles it, Ctrl-C ends the process without a traceback.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from kduel.cli import main

main()
