"""The operations of kbench: what each does, by subsystem, and what it needs."""

from __future__ import annotations

ABOUT = {
    "empty": "nothing: what measuring costs",
    "null-call": "getppid",
    "read": "one byte of /dev/zero",
    "write": "one byte to /dev/null",
    "stat": "stat of a file",
    "fstat": "fstat of an open file",
    "open-close": "open and close of a file",
    "create-delete": "create, close and delete an empty file",
    "select-10": "select on 10 idle pipes",
    "select-100": "select on 100 idle pipes",
    "poll-10": "poll on 10 idle pipes",
    "poll-100": "poll on 100 idle pipes",
    "epoll-10": "epoll_wait, 10 ready pipes",
    "epoll-100": "epoll_wait, 100 ready pipes",
    "signal-install": "sigaction",
    "signal-deliver": "kill oneself and return from the handler",
    "fault-protection": "a write to a read-only page, caught",
    "pipe": "round trip of a byte through two pipes",
    "unix": "round trip through a UNIX stream socket",
    "tcp": "round trip through TCP on lo",
    "udp": "round trip through UDP on lo",
    "switch-2-0k": "a hop in a ring of 2 processes",
    "switch-2-16k": "a hop in a ring of 2 that use 16 KiB each",
    "switch-8-0k": "a hop in a ring of 8 processes",
    "switch-8-16k": "a hop in a ring of 8 that use 16 KiB each",
    "switch-16-64k": "a hop in a ring of 16 that use 64 KiB each",
    "futex": "round trip between two threads by futex",
    "fork-exit": "fork, exit, wait",
    "fork-exec": "fork, exec of a small static program, wait",
    "shell": "the same by /bin/sh -c",
    "clone": "create and join a thread",
    "mmap": "mmap and munmap of 64 KiB, untouched",
    "fault-anonymous": "first write to a page of anonymous memory",
    "fault-file": "first read of a mapped, cached file's page",
    "timer": "arm a timerfd for now, read that it fired",
    "brk": "64 KiB more and less of heap, untouched",
    "mprotect": "a page read-only and writable again",
    "dup": "dup and close of a descriptor",
    "eventfd": "write and read of an eventfd",
    "fallocate": "4 KiB of a file in memory, and truncate",
    "lock": "lock and unlock a byte of a file",
    "lseek": "lseek",
    "pread-4k": "4 KiB of a cached file",
    "pwrite-4k": "4 KiB to a cached file",
    "sendfile": "4 KiB of a cached file to /dev/null",
    "splice": "the same through a pipe",
    "inotify": "write to a watched file, read the event",
    "rename": "rename a file and back",
    "readdir-100": "list a directory of 100 files",
    "pipe-create": "create and close a pipe",
    "socketpair": "create and close a pair of UNIX sockets",
    "tcp-connect": "connect on lo, accept, close",
    "sched-yield": "sched_yield of the only runnable task",
    "futex-wake": "wake where nobody waits",
    "namespace": "a new UTS namespace, the old one freed",
    "seccomp": "getppid under a filter of 16 comparisons",
    "io-uring": "submit and complete a request that does nothing",
    "cgroup-attach": "move the process to another control group",
    "tmpfs-create": "create, close and delete an empty file of tmpfs",
    "tmpfs-fsync": "the same of 4 KiB, with fsync",
    "ext4-create": "create, close and delete an empty file of ext4 on a RAM disk",
    "ext4-fsync": "the same of 4 KiB, with fsync: a transaction of the journal",
    "netfilter-100": "a datagram to oneself through 100 rules of nftables",
    "module-load": "load a small module without its signature",
    "mmap-touch": "mmap, first write and munmap of a page",
    "access": "access of a file",
    "fstatat-empty": "fstatat of an open file by an empty path",
    "statx-empty": "statx of an open file by an empty path",
    "getrandom": "16 random bytes by the system call",
    "exec-missing": "exec of a file that is missing",
    "mprotect-100": "100 touched pages read-only and writable again",
    "fork-100": "fork, exit, wait with 100 mappings more",
    "fork-400": "fork, exit, wait with 400 mappings more",
    "switch-8-rseq": "a hop in a ring of 8 processes that have registered rseq",
}
"""In the program's own order, which is the numbering of regions in the counting plug-in (from 1), and in its words."""
WORDS = ABOUT | {
    "shell": "fork, exec of a program by /bin/sh -c, wait",
    "splice": "4 KiB of a cached file through a pipe to /dev/null",
    "tmpfs-fsync": "create, fsync and delete a file of 4 KiB of tmpfs",
    "ext4-fsync": "create, fsync and delete a file of 4 KiB of ext4 on a RAM disk",
}
"""The same, where none leans on the words of the operation before."""
OPERATIONS = tuple(ABOUT)
ASKED_FOR = OPERATIONS[OPERATIONS.index("access") :]
"""Those that no suite counts, and no published atlas has: they are counted where a study or a command names them."""

GROUPS = {
    "system calls and files": (
        "null-call", "read", "write", "stat", "fstat", "open-close", "create-delete", "select-10", "select-100", "poll-10",
        "poll-100", "epoll-10", "epoll-100", "dup", "eventfd", "fallocate", "lock", "lseek", "pread-4k", "pwrite-4k", "sendfile",
        "splice", "inotify", "rename", "readdir-100", "pipe-create", "seccomp", "io-uring", "tmpfs-create", "tmpfs-fsync",
        "ext4-create", "ext4-fsync", "access", "fstatat-empty", "statx-empty", "getrandom",
    ),
    "signals and timers": ("signal-install", "signal-deliver", "fault-protection", "timer"),
    "scheduling and communication": (
        "pipe", "unix", "switch-2-0k", "switch-2-16k", "switch-8-0k", "switch-8-16k", "switch-16-64k", "futex",
        "futex-wake", "sched-yield", "socketpair", "switch-8-rseq",
    ),
    "network": ("tcp", "udp", "tcp-connect", "netfilter-100"),
    "processes": ("fork-exit", "fork-exec", "shell", "clone", "namespace", "cgroup-attach", "module-load", "exec-missing",
                  "fork-100", "fork-400"),
    "memory": ("mmap", "mmap-touch", "fault-anonymous", "fault-file", "brk", "mprotect", "mprotect-100"),
}  # fmt: skip
"""The operations by subsystem, for reports."""
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}

MODULES = {
    "ext4-create": ("brd", "crc32c_intel", "ext4"),
    "ext4-fsync": ("brd", "crc32c_intel", "ext4"),
    "netfilter-100": ("nf_tables",),
    "module-load": ("ts_kmp", "ts_bm"),
}
"""Kernel modules that an operation loads where the kernel does not have them built in."""
