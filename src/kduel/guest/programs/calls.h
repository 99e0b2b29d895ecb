/* More operations of kbench: on memory, on files, and calls on kernel objects. See operations.h for how they are called.
 *
 * Each call leaves things as it found them, so that all calls are alike.
 */
#ifndef KDUEL_CALLS_H
#define KDUEL_CALLS_H

#include "operations.h"

#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>

#ifndef SYS_brk /* of the oldest headers; all kernels have it */
#define SYS_brk __NR_brk
#endif

/* Memory */

static size_t map_size, fault_step, fault_at, fault_bytes;
static char *fault_area;

static void open_map(long argument) { map_size = (size_t)argument * 1024; }
static void map_unmap(void) {
    void *area = mmap(NULL, map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) die("mmap");
    munmap(area, map_size);
}
static void open_page_map(long argument) { (void)argument, map_size = (size_t)sysconf(_SC_PAGESIZE); }
static void map_touch(void) {
    char *area = mmap(NULL, map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) die("mmap");
    *(volatile char *)area = 1;
    munmap(area, map_size);
}
static void take_area(int faults, int flags, int fd) {
    fault_bytes = fault_step * (size_t)faults;
    fault_area = mmap(NULL, fault_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, fd, 0);
    if (fault_area == MAP_FAILED) die("mmap");
    madvise(fault_area, fault_bytes, MADV_NOHUGEPAGE);
}
static void open_anonymous(long argument) {
    (void)argument;
    fault_step = (size_t)sysconf(_SC_PAGESIZE);
    take_area(FAULTS, MAP_ANONYMOUS, -1);
}
static void open_mapped(long argument) {
    static char chunk[PAGE_MAX];
    open_file(argument);
    fault_step = PAGE_MAX; /* the kernel maps up to 64 KiB around a fault */
    for (int i = 0; i < FILE_FAULTS; i++)
        if (write(file_fd, chunk, sizeof chunk) != (ssize_t)sizeof chunk) die("filling a file");
    take_area(FILE_FAULTS, 0, file_fd);
}
static void rewind_area(long calls) {
    (void)calls;
    need(madvise(fault_area, fault_bytes, MADV_DONTNEED), "madvise");
    fault_at = 0;
}
static void close_area(void) { munmap(fault_area, fault_bytes); }
static void close_mapped(void) {
    close_area();
    close_file();
}
static void fault_write(void) {
    *(volatile char *)(fault_area + fault_at) = 1;
    fault_at += fault_step;
}
static void fault_read(void) {
    (void)*(volatile char *)(fault_area + fault_at);
    fault_at += fault_step;
}

/* A timer that is armed for a moment in the past, and fires at once */

static int timer_fd;

static void open_timer(long argument) {
    (void)argument, timer_fd = (int)need(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create");
}
static void timer_fire(void) {
    uint64_t fired;
    struct itimerspec when = {.it_value.tv_nsec = 1};
    need(timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL), "timerfd_settime");
    if (read(timer_fd, &fired, sizeof fired) != (ssize_t)sizeof fired) die("timerfd");
}

/* More calls on memory */

static char *one_page;
static uintptr_t break_end;

static void open_break(long argument) {
    (void)argument;
    long end = syscall(SYS_brk, 0);
    break_end = ((uintptr_t)end + PAGE_MAX - 1) & ~(uintptr_t)(PAGE_MAX - 1);
    if (end <= 0 || (uintptr_t)syscall(SYS_brk, break_end) != break_end) die("brk");
}
static void move_break(void) {
    if ((uintptr_t)syscall(SYS_brk, break_end + PAGE_MAX) != break_end + PAGE_MAX) die("brk");
    syscall(SYS_brk, break_end);
}
static void open_page(long argument) {
    (void)argument;
    one_page = mmap(NULL, PAGE_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (one_page == MAP_FAILED) die("mmap");
    *one_page = 1;
}
static void protect_page(void) {
    need(mprotect(one_page, PAGE_MAX, PROT_READ), "mprotect");
    need(mprotect(one_page, PAGE_MAX, PROT_READ | PROT_WRITE), "mprotect");
}

/* Many touched pages, and many mappings */

static long page_count;

static void open_pages(long argument) {
    page_count = argument * sysconf(_SC_PAGESIZE);
    one_page = mmap(NULL, (size_t)page_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (one_page == MAP_FAILED) die("mmap");
    madvise(one_page, (size_t)page_count, MADV_NOHUGEPAGE);
    memset(one_page, 1, (size_t)page_count);
}
static void protect_pages(void) {
    need(mprotect(one_page, (size_t)page_count, PROT_READ), "mprotect");
    need(mprotect(one_page, (size_t)page_count, PROT_READ | PROT_WRITE), "mprotect");
}
/* Areas of so many touched pages, to be unmapped one by one; between them are pages without access, so that each is a mapping. */
enum { SLICES = 16 };
static char *slices;
static int slice;
static size_t slice_step(void) { return (size_t)page_count + (size_t)sysconf(_SC_PAGESIZE); }
static void open_slices(long argument) {
    page_count = argument * sysconf(_SC_PAGESIZE);
    slices = mmap(NULL, SLICES * slice_step(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slices == MAP_FAILED) die("mmap");
}
static void touch_slices(long calls) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    for (slice = 0; slice < SLICES && slice < calls; slice++) {
        char *area = slices + (size_t)slice * slice_step();
        if (mmap(area, (size_t)page_count, PROT_READ | PROT_WRITE, flags, -1, 0) != area) die("mmap");
        madvise(area, (size_t)page_count, MADV_NOHUGEPAGE);
        for (long at = 0; at < page_count; at += sysconf(_SC_PAGESIZE)) *(volatile char *)(area + at) = 1;
    }
    slice = 0;
}
static void unmap_slice(void) { need(munmap(slices + (size_t)slice++ * slice_step(), (size_t)page_count), "munmap"); }
static void close_slices(void) { munmap(slices, SLICES * slice_step()); }

/* Untouched, each second one without access: neighbours do not merge. */
static void open_mappings(long argument) {
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *area = mmap(NULL, size * (size_t)argument, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) die("mmap");
    for (long i = 1; i < argument; i += 2) need(mprotect(area + size * (size_t)i, size, PROT_NONE), "mprotect");
}

/* Descriptors and files: a file of 4 KiB in the cache, or in memory */

enum { CHUNK = 4096, ENTRIES = 100 };
static char chunk_data[CHUNK];
static int event_fd, watch_fd, directory_fd, tube[2];

static void open_chunk(long argument) {
    open_file(argument);
    open_null(argument);
    if (write(file_fd, chunk_data, CHUNK) != CHUNK) die("filling a file");
}
static void dup_close(void) { close((int)need(dup(0), "dup")); }
static void open_event(long argument) { (void)argument, event_fd = (int)need(eventfd(0, 0), "eventfd"); }
static void event_round(void) {
    uint64_t one = 1;
    if (write(event_fd, &one, sizeof one) != sizeof one || read(event_fd, &one, sizeof one) != sizeof one) die("eventfd");
}
static void open_memory_file(long argument) {
    (void)argument;
    file_fd = (int)need(syscall(SYS_memfd_create, file_name, 0), "memfd_create");
}
static void allocate(void) {
    need(fallocate(file_fd, 0, 0, CHUNK), "fallocate");
    need(ftruncate(file_fd, 0), "ftruncate");
}
static void lock_file(void) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    need(fcntl(file_fd, F_SETLK, &lock), "F_SETLK");
    lock.l_type = F_UNLCK;
    need(fcntl(file_fd, F_SETLK, &lock), "F_SETLK");
}
static void seek(void) { need(lseek(file_fd, 1, SEEK_SET), "lseek"); }
static void pread_chunk(void) {
    if (pread(file_fd, chunk_data, CHUNK, 0) != CHUNK) die("pread");
}
static void pwrite_chunk(void) {
    if (pwrite(file_fd, chunk_data, CHUNK, 0) != CHUNK) die("pwrite");
}
static void send_chunk(void) {
    off_t at = 0;
    if (sendfile(null_fd, file_fd, &at, CHUNK) != CHUNK) die("sendfile");
}
static void open_splice(long argument) {
    open_chunk(argument);
    need(pipe(tube), "pipe");
}
static void splice_chunk(void) {
    off_t at = 0;
    if (splice(file_fd, &at, tube[1], NULL, CHUNK, 0) != CHUNK) die("splice");
    if (splice(tube[0], NULL, null_fd, NULL, CHUNK, 0) != CHUNK) die("splice");
}
static void open_watch(long argument) {
    open_file(argument);
    watch_fd = (int)need(inotify_init1(0), "inotify_init1");
    need(inotify_add_watch(watch_fd, file_name, IN_MODIFY), "inotify_add_watch");
}
static void watched_write(void) {
    char event[sizeof(struct inotify_event) + 256];
    if (pwrite(file_fd, "", 1, 0) != 1) die("pwrite");
    if (read(watch_fd, event, sizeof event) <= 0) die("inotify");
}
static void access_it(void) { need(access(file_name, R_OK), "access"); }
static void stat_empty(void) {
    static char found[512]; /* not the C library's call, which makes another one of it */
#ifdef SYS_newfstatat
    need(syscall(SYS_newfstatat, file_fd, "", found, AT_EMPTY_PATH), "newfstatat");
#else
    need(syscall(SYS_fstatat64, file_fd, "", found, AT_EMPTY_PATH), "fstatat64");
#endif
}
static void statx_empty(void) {
    static char found[512];
    need(syscall(SYS_statx, file_fd, "", AT_EMPTY_PATH, 0x7ff /* all that stat has */, found), "statx");
}
static void random_bytes(void) {
    char bytes[16];
    if (syscall(SYS_getrandom, bytes, sizeof bytes, 0) != sizeof bytes) die("getrandom");
}
static void exec_missing(void) {
    execv("/kbench.missing", (char *[]){"missing", NULL});
    if (errno != ENOENT) die("execv");
}
static void rename_back(void) {
    need(rename(file_name, other_name), "rename");
    need(rename(other_name, file_name), "rename");
}
static const char *entry_name(int number) {
    static char name[80];
    snprintf(name, sizeof name, "%s/%d", directory_name, number);
    return name;
}
static void open_directory(long argument) {
    (void)argument;
    need(mkdir(directory_name, 0700), "mkdir");
    for (int i = 0; i < ENTRIES; i++) close((int)need(open(entry_name(i), O_WRONLY | O_CREAT, 0600), "create"));
    directory_fd = (int)need(open(directory_name, O_RDONLY | O_DIRECTORY), directory_name);
}
static void read_directory(void) {
    static char entries[CHUNK];
    long got;
    need(lseek(directory_fd, 0, SEEK_SET), "lseek");
    do got = need(syscall(SYS_getdents64, directory_fd, entries, sizeof entries), "getdents64");
    while (got > 0);
}
static void close_directory(void) {
    for (int i = 0; i < ENTRIES; i++) unlink(entry_name(i));
    close(directory_fd);
    rmdir(directory_name);
}
static void pipe_close(void) {
    int ends[2];
    need(pipe(ends), "pipe");
    close(ends[0]), close(ends[1]);
}

/* Sockets, tasks, and what looks at system calls */

static int tcp_listener;
static struct sockaddr_in tcp_address;

static void socketpair_close(void) {
    int ends[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    close(ends[0]), close(ends[1]);
}
static void open_listener(long argument) {
    (void)argument;
    tcp_listener = (int)need(socket(AF_INET, SOCK_STREAM, 0), "TCP socket");
    tcp_address = loopback(tcp_listener);
    need(listen(tcp_listener, 8), "listen");
}
static void connect_close(void) {
    struct linger at_once = {.l_onoff = 1}; /* a reset: nothing is left in TIME_WAIT */
    int near = (int)need(socket(AF_INET, SOCK_STREAM, 0), "TCP socket");
    need(connect(near, (struct sockaddr *)&tcp_address, sizeof tcp_address), "connect");
    int far = (int)need(accept(tcp_listener, NULL, NULL), "accept");
    need(setsockopt(near, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), "SO_LINGER");
    close(near), close(far);
}

/* A ring of tasks that have registered restartable sequences, as the C library of GNU does for all */
static void open_rseq_ring(long argument) {
    static struct {
        uint32_t words[8];
    } __attribute__((aligned(32))) area;
    need(syscall(SYS_rseq, &area, sizeof area, 0, 0x53053053), "rseq");
    open_ring(argument);
}
static void yield_alone(void) { sched_yield(); }
static void wake_nobody(void) { need(syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), "futex"); }
static void new_namespace(void) { need(unshare(CLONE_NEWUTS), "unshare"); }

/* Looks whether a system call's number is one of 16 that there are not, and lets it pass. */
static void open_filter(long argument) {
    enum { CHECKS = 16 };
    struct sock_filter rules[CHECKS + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    (void)argument;
    for (unsigned i = 0; i < CHECKS; i++)
        rules[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x10000 + i, (unsigned char)(CHECKS - i), 0);
    rules[CHECKS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    rules[CHECKS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    struct sock_fprog program = {.len = CHECKS + 3, .filter = rules};
    need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
    need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

/* io_uring: one request that does nothing, handed in and taken back by one system call */

static int ring_fd;
static unsigned *submit_tail, *submit_mask, *submit_array, *complete_head, *complete_tail;
static struct io_uring_sqe *ring_requests;

static void *map_ring(size_t size, long at) {
    void *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd, (off_t)at);
    if (area == MAP_FAILED) die("mapping an io_uring");
    return area;
}
static void open_io_ring(long argument) {
    struct io_uring_params params = {0};
    (void)argument;
    ring_fd = (int)need(syscall(__NR_io_uring_setup, 8, &params), "io_uring_setup");
    char *submit = map_ring(params.sq_off.array + params.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    char *complete = map_ring(params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring_requests = map_ring(params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    submit_tail = (unsigned *)(void *)(submit + params.sq_off.tail);
    submit_mask = (unsigned *)(void *)(submit + params.sq_off.ring_mask);
    submit_array = (unsigned *)(void *)(submit + params.sq_off.array);
    complete_head = (unsigned *)(void *)(complete + params.cq_off.head);
    complete_tail = (unsigned *)(void *)(complete + params.cq_off.tail);
}
static void io_ring_nop(void) {
    unsigned tail = *submit_tail, at = tail & *submit_mask;
    ring_requests[at] = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
    submit_array[at] = at;
    __atomic_store_n(submit_tail, tail + 1, __ATOMIC_RELEASE);
    need(syscall(__NR_io_uring_enter, ring_fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), "io_uring_enter");
    unsigned done = __atomic_load_n(complete_tail, __ATOMIC_ACQUIRE);
    if (done == *complete_head) errno = EAGAIN, die("io_uring");
    __atomic_store_n(complete_head, done, __ATOMIC_RELEASE);
}

#endif
