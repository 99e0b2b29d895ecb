/* The operations of kbench by name. They are only ever added at the end: their number is their region's in the plug-in. */
#ifndef KDUEL_TABLE_H
#define KDUEL_TABLE_H

#include "calls.h"
#include "containers.h"
#include "filesystems.h"
#include "vdso.h"

struct operation {
    const char *name, *about;
    void (*open)(long);
    void (*run)(void);
    void (*close)(void);
    void (*rewind)(long);
    long argument, batch, count; /* `count`: how often in exact mode */
    int hops;
    int wakes; /* NEW_TASKS, THREADS or PROCESSES where another task is woken, so that the scheduler has a part in the cost */
    int slow; /* whether its calls are so long that it takes half as long again until the scheduler's opinion is formed */
    int situated; /* whether it is counted in the situations, too: one operation of each way to wake */
};
enum {
    NEW_TASKS = 1, /* that each call makes for itself */
    THREADS,       /* partners of one process */
    PROCESSES,
};

#define RING(n, k) .open = open_ring, .run = ring_round, .close = close_pair, .argument = ((long)(n) << 16) | (k), .hops = n, \
    .wakes = PROCESSES

static const struct operation operations[] = {
    {"empty", "nothing: what measuring costs", .run = nothing},
    {"null-call", "getppid", .run = null_call},
    {"read", "one byte of /dev/zero", .open = open_zero, .run = read_one},
    {"write", "one byte to /dev/null", .open = open_null, .run = write_one},
    {"stat", "stat of a file", .open = open_file, .run = stat_it, .close = close_file},
    {"fstat", "fstat of an open file", .open = open_file, .run = fstat_it, .close = close_file},
    {"open-close", "open and close of a file", .open = open_file, .run = open_close, .close = close_file},
    {"create-delete", "create, close and delete an empty file", .run = create_delete, .count = 200},
    {"select-10", "select on 10 idle pipes", .open = open_many, .run = select_many, .argument = 10},
    {"select-100", "select on 100 idle pipes", .open = open_many, .run = select_many, .argument = 100, .count = 200},
    {"poll-10", "poll on 10 idle pipes", .open = open_many, .run = poll_many, .argument = 10},
    {"poll-100", "poll on 100 idle pipes", .open = open_many, .run = poll_many, .argument = 100, .count = 200},
    {"epoll-10", "epoll_wait, 10 ready pipes", .open = open_epoll, .run = epoll_many, .argument = 10},
    {"epoll-100", "epoll_wait, 100 ready pipes", .open = open_epoll, .run = epoll_many, .argument = 100, .count = 200},
    {"signal-install", "sigaction", .run = signal_install},
    {"signal-deliver", "kill oneself and return from the handler", .open = open_signal, .run = signal_deliver},
    {"fault-protection", "a write to a read-only page, caught", .open = open_protection, .run = protection_fault},
    {"pipe", "round trip of a byte through two pipes", .open = open_pipe, .run = round_trip, .close = close_pair, .wakes = PROCESSES, .situated = 1},
    {"unix", "round trip through a UNIX stream socket", .open = open_unix, .run = round_trip, .close = close_pair, .wakes = PROCESSES, .situated = 1,
     .slow = 1},
    {"tcp", "round trip through TCP on lo", .open = open_tcp, .run = round_trip, .close = close_pair, .wakes = PROCESSES, .situated = 1,
     .count = 200, .slow = 1},
    {"udp", "round trip through UDP on lo", .open = open_udp, .run = round_trip, .close = close_pair, .wakes = PROCESSES, .count = 200,
     .slow = 1},
    {"switch-2-0k", "a hop in a ring of 2 processes", RING(2, 0)},
    {"switch-2-16k", "a hop in a ring of 2 that use 16 KiB each", RING(2, 16)},
    {"switch-8-0k", "a hop in a ring of 8 processes", RING(8, 0), .situated = 1, .count = 200},
    {"switch-8-16k", "a hop in a ring of 8 that use 16 KiB each", RING(8, 16), .count = 200},
    {"switch-16-64k", "a hop in a ring of 16 that use 64 KiB each", RING(16, 64), .count = 60},
    {"futex", "round trip between two threads by futex", .open = open_futex, .run = futex_round, .wakes = THREADS, .situated = 1},
    {"fork-exit", "fork, exit, wait", .run = fork_exit, .wakes = NEW_TASKS, .situated = 1, .count = 60},
    {"fork-exec", "fork, exec of a small static program, wait", .run = fork_exec, .wakes = NEW_TASKS, .count = 40},
    {"shell", "the same by /bin/sh -c", .run = shell, .wakes = NEW_TASKS, .count = 20},
    {"clone", "create and join a thread", .run = clone_join, .wakes = NEW_TASKS, .count = 200},
    {"mmap", "mmap and munmap of 64 KiB, untouched", .open = open_map, .run = map_unmap, .argument = 64},
    {"fault-anonymous", "first write to a page of anonymous memory", .open = open_anonymous, .run = fault_write,
     .close = close_area, .rewind = rewind_area, .batch = FAULTS, .count = FAULTS},
    {"fault-file", "first read of a mapped, cached file's page", .open = open_mapped, .run = fault_read,
     .close = close_mapped, .rewind = rewind_area, .batch = FILE_FAULTS, .count = FAULTS},
    {"timer", "arm a timerfd for now, read that it fired", .open = open_timer, .run = timer_fire},
    {"brk", "64 KiB more and less of heap, untouched", .open = open_break, .run = move_break},
    {"mprotect", "a page read-only and writable again", .open = open_page, .run = protect_page},
    {"dup", "dup and close of a descriptor", .run = dup_close},
    {"eventfd", "write and read of an eventfd", .open = open_event, .run = event_round},
    {"fallocate", "4 KiB of a file in memory, and truncate", .open = open_memory_file, .run = allocate},
    {"lock", "lock and unlock a byte of a file", .open = open_file, .run = lock_file, .close = close_file},
    {"lseek", "lseek", .open = open_file, .run = seek, .close = close_file},
    {"pread-4k", "4 KiB of a cached file", .open = open_chunk, .run = pread_chunk, .close = close_file},
    {"pwrite-4k", "4 KiB to a cached file", .open = open_chunk, .run = pwrite_chunk, .close = close_file},
    {"sendfile", "4 KiB of a cached file to /dev/null", .open = open_chunk, .run = send_chunk, .close = close_file},
    {"splice", "the same through a pipe", .open = open_splice, .run = splice_chunk, .close = close_file},
    {"inotify", "write to a watched file, read the event", .open = open_watch, .run = watched_write, .close = close_file},
    {"rename", "rename a file and back", .open = open_file, .run = rename_back, .close = close_file, .count = 500},
    {"readdir-100", "list a directory of 100 files", .open = open_directory, .run = read_directory, .close = close_directory,
     .count = 200},
    {"pipe-create", "create and close a pipe", .run = pipe_close, .count = 500},
    {"socketpair", "create and close a pair of UNIX sockets", .run = socketpair_close, .count = 500},
    {"tcp-connect", "connect on lo, accept, close", .open = open_listener, .run = connect_close, .count = 200},
    {"sched-yield", "sched_yield of the only runnable task", .run = yield_alone},
    {"futex-wake", "wake where nobody waits", .run = wake_nobody},
    {"namespace", "a new UTS namespace, the old one freed", .run = new_namespace, .count = 500},
    {"seccomp", "getppid under a filter of 16 comparisons", .open = open_filter, .run = null_call},
    {"io-uring", "submit and complete a request that does nothing", .open = open_io_ring, .run = io_ring_nop},
    {"cgroup-attach", "move the process to another control group", .open = open_attach, .run = attach, .close = close_attach, .count = 200},
    {"tmpfs-create", "create, close and delete an empty file of tmpfs", .open = open_mount, .run = create_mounted, .close = close_mount,
     .argument = TMPFS, .count = 200},
    {"tmpfs-fsync", "the same of 4 KiB, with fsync", .open = open_mount, .run = sync_mounted, .close = close_mount, .argument = TMPFS,
     .count = 200},
    {"ext4-create", "create, close and delete an empty file of ext4 on a RAM disk", .open = open_mount, .run = create_mounted,
     .close = close_mount, .argument = EXT4, .count = 200},
    {"ext4-fsync", "the same of 4 KiB, with fsync: a transaction of the journal", .open = open_mount, .run = sync_mounted,
     .close = close_mount, .argument = EXT4, .wakes = THREADS, .count = 60},
    {"netfilter-100", "a datagram to oneself through 100 rules of nftables", .open = open_filtered, .run = send_filtered,
     .close = close_filtered, .argument = 100, .count = 200},
    {"module-load", "load a small module without its signature", .open = open_module, .run = load_small, .close = close_module,
     .rewind = unload_small, .batch = 1, .count = 40},
    {"mmap-touch", "mmap, first write and munmap of a page", .open = open_page_map, .run = map_touch},
    {"access", "access of a file", .open = open_file, .run = access_it, .close = close_file},
    {"fstatat-empty", "fstatat of an open file by an empty path", .open = open_file, .run = stat_empty, .close = close_file},
    {"statx-empty", "statx of an open file by an empty path", .open = open_file, .run = statx_empty, .close = close_file},
    {"getrandom", "16 random bytes by the system call", .run = random_bytes},
    {"exec-missing", "exec of a file that is missing", .run = exec_missing},
    {"mprotect-100", "100 touched pages read-only and writable again", .open = open_pages, .run = protect_pages, .argument = 100, .count = 200},
    {"fork-100", "fork, exit, wait with 100 mappings more", .open = open_mappings, .run = fork_exit, .argument = 100, .wakes = NEW_TASKS,
     .count = 40},
    {"fork-400", "fork, exit, wait with 400 mappings more", .open = open_mappings, .run = fork_exit, .argument = 400, .wakes = NEW_TASKS,
     .count = 20},
    {"switch-8-rseq", "a hop in a ring of 8 processes that have registered rseq", .open = open_rseq_ring, .run = ring_round, .close = close_pair,
     .argument = 8L << 16, .hops = 8, .wakes = PROCESSES, .count = 200},
    {"munmap-100", "munmap of 100 touched pages", .open = open_slices, .run = unmap_slice, .close = close_slices, .rewind = touch_slices,
     .argument = 100, .batch = SLICES, .count = 3 * SLICES},
    {"munmap-400", "munmap of 400 touched pages", .open = open_slices, .run = unmap_slice, .close = close_slices, .rewind = touch_slices,
     .argument = 400, .batch = SLICES, .count = SLICES},
    {"mmap-large", "mmap of 128 MiB and 64 KiB, first write, munmap", .open = open_map, .run = map_touch, .argument = (128 << 10) + 64,
     .count = 100},
    {"pipe-cgroup-2", "round trip of a byte in a group of level 2", .open = open_deep_pipe, .run = round_trip, .close = close_deep_pipe,
     .argument = 2, .wakes = PROCESSES},
    {"pipe-cgroup-8", "round trip of a byte in a group of level 8", .open = open_deep_pipe, .run = round_trip, .close = close_deep_pipe,
     .argument = 8, .wakes = PROCESSES},
    {"getrandom-vdso", "16 random bytes by the vDSO, without a system call", .open = open_vdso_random, .run = vdso_random},
};

#endif
