"""Steps of a study that bring programs of ours to a real machine."""

OWN_TASKS = """
[[benchmark]]
use = "kload"
kind = ["cpu", "io", "mixed"]
processes = 2
iterations = 1000
transfers = 2
io = "buffered"
[[benchmark]]
use = "wakeup"
requests = 100
rate = 500
work = 1000
[[benchmark]]
use = "desktop"
frames = 100
hogs = 1
work = 1000
"""
"""Programs whose tasks take the policy one by one."""
LAUNCHED = """
[[benchmark]]
use = "command"
label = "policy"
command = "chrt -p $$; echo done 1"
metrics = [{name = "one", unit = "1", better = "none", regex = "done (1)"}]
[[benchmark]]
use = "kbench"
operation = "pipe"
time = 0.1
[[benchmark]]
use = "lmbench"
category = "bandwidth"
time = 0.1
[[benchmark]]
use = "memory"
figures = ["allocatable", "total"]
most = 8
"""
