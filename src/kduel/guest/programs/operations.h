/* The operations of kbench, one small function each, under the names that lmbench made common.
 *
 * `run` is the operation itself. `open` is called once before, with the operation's argument; `rewind` before every
 * batch, unmeasured, with the number of calls to come; `close` once at the end. `batch` is the largest batch that
 * `rewind` can prepare (0: any). `hops` is what one call counts for.
 */
#ifndef KDUEL_OPERATIONS_H
#define KDUEL_OPERATIONS_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE_MAX = 65536, MANY = 1024, FAULTS = 512, FILE_FAULTS = 128 /* 8 MiB that have to be written first */ };

static char own_path[4096]; /* this very program, for exec */
static pid_t children[64];
static int child_count;

__attribute__((noreturn)) static void die(const char *what) {
    fprintf(stderr, "kbench: %s: %s\n", what, strerror(errno));
    exit(errno == ENOSYS || errno == EAFNOSUPPORT || errno == ENODEV ? 4 : 1);
}

static inline long need(long result, const char *what) {
    if (result < 0) die(what);
    return result;
}

/* A directory for one kbench at a time, until its descriptor is closed. One that was ended early may have left it. */
static int claim_directory(const char *path, mode_t mode) {
    static char why[128];
    if (mkdir(path, mode) < 0 && errno != EEXIST) die(path);
    int fd = (int)need(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path);
    snprintf(why, sizeof why, "another kbench uses %s", path);
    need(flock(fd, LOCK_EX | LOCK_NB), why);
    return fd;
}

static int new_sessions; /* whether partners are each in a session of their own */

static pid_t child(void (*body)(void *), void *argument) {
    pid_t pid = (pid_t)need(fork(), "fork");
    if (pid == 0) {
        if (new_sessions) setsid();
        body(argument);
        _exit(0);
    }
    children[child_count++] = pid;
    return pid;
}

static void end_children(void) {
    while (child_count > 0) {
        kill(children[--child_count], SIGKILL);
        waitpid(children[child_count], NULL, 0);
    }
}

static void nothing(void) {}

/* Simple system calls */

static int zero_fd, null_fd, file_fd;
static char file_name[64] = "kbench.file", other_name[64] = "kbench.other", directory_name[64] = "kbench.dir";

static void open_file(long argument) {
    (void)argument;
    file_fd = (int)need(open(file_name, O_RDWR | O_CREAT | O_TRUNC, 0600), file_name);
}
static void close_file(void) {
    close(file_fd);
    unlink(file_name);
}
static void null_call(void) { syscall(SYS_getppid); }
static void open_zero(long argument) { (void)argument, zero_fd = (int)need(open("/dev/zero", O_RDONLY), "/dev/zero"); }
static void open_null(long argument) { (void)argument, null_fd = (int)need(open("/dev/null", O_WRONLY), "/dev/null"); }
static void read_one(void) {
    char byte;
    if (read(zero_fd, &byte, 1) != 1) die("read");
}
static void write_one(void) {
    if (write(null_fd, "", 1) != 1) die("write");
}
static void stat_it(void) {
    struct stat found;
    need(stat(file_name, &found), "stat");
}
static void fstat_it(void) {
    struct stat found;
    need(fstat(file_fd, &found), "fstat");
}
static void open_close(void) {
    int fd = (int)need(open(file_name, O_RDONLY), "open");
    close(fd);
}
static void create_delete(void) {
    int fd = (int)need(open(file_name, O_WRONLY | O_CREAT | O_EXCL, 0600), "create");
    close(fd);
    need(unlink(file_name), "unlink");
}

/* Waiting for one of n descriptors: pipes that stay empty, so that all n are looked at */

static int many, idle_fds[MANY], idle_top, feed[2], epoll_fd;
static struct pollfd polled[MANY];
static fd_set selected;

static void open_many(long argument) {
    many = (int)argument;
    need(pipe(feed), "pipe");
    FD_ZERO(&selected);
    for (int i = 0; i < many; i++) {
        idle_fds[i] = (int)need(dup(feed[0]), "dup");
        if (idle_fds[i] >= FD_SETSIZE) errno = EMFILE, die("too many descriptors");
        polled[i] = (struct pollfd){.fd = idle_fds[i], .events = POLLIN};
        FD_SET(idle_fds[i], &selected);
        idle_top = idle_fds[i] + 1;
    }
}
static void open_epoll(long argument) {
    open_many(argument);
    epoll_fd = (int)need(epoll_create1(0), "epoll_create1");
    for (int i = 0; i < many; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = idle_fds[i]};
        need(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, idle_fds[i], &event), "epoll_ctl");
    }
    if (write(feed[1], "", 1) != 1) die("write");
}
static void select_many(void) {
    fd_set set = selected;
    struct timeval now = {0, 0};
    need(select(idle_top, &set, NULL, NULL, &now), "select");
}
static void poll_many(void) { need(poll(polled, (nfds_t)many, 0), "poll"); }
static void epoll_many(void) {
    static struct epoll_event events[MANY];
    if (epoll_wait(epoll_fd, events, many, 0) != many) die("epoll_wait");
}

/* Signals */

static sigjmp_buf fault_back;
static char *fault_page;

static void take_signal(int number) { (void)number; }
static void take_fault(int number) { (void)number, siglongjmp(fault_back, 1); }
static void install(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    need(sigaction(number, &action, NULL), "sigaction");
}
static void signal_install(void) { install(SIGUSR1, take_signal); }
static void open_signal(long argument) { (void)argument, signal_install(); }
static void signal_deliver(void) { need(kill(getpid(), SIGUSR1), "kill"); }
static void open_protection(long argument) {
    (void)argument;
    install(SIGSEGV, take_fault);
    fault_page = mmap(NULL, PAGE_MAX, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fault_page == MAP_FAILED) die("mmap");
}
static void protection_fault(void) {
    if (sigsetjmp(fault_back, 1) == 0) *(volatile char *)fault_page = 1;
}

/* Round trips of one byte between two processes */

static int here, there; /* what this side reads from, and writes to */

static void echo(void *argument) {
    int *ends = argument;
    char byte;
    while (read(ends[0], &byte, 1) == 1)
        if (write(ends[1], &byte, 1) != 1) break;
}
static void round_trip(void) {
    char byte = 0;
    if (write(there, &byte, 1) != 1 || read(here, &byte, 1) != 1) die("round trip");
}
static void open_pipe(long argument) {
    (void)argument;
    int out[2], back[2];
    need(pipe(out), "pipe");
    need(pipe(back), "pipe");
    child(echo, (int[]){out[0], back[1]});
    there = out[1], here = back[0];
}
static void open_unix(long argument) {
    (void)argument;
    int pair[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    child(echo, (int[]){pair[1], pair[1]});
    here = there = pair[0];
}
static struct sockaddr_in loopback(int listener) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    struct ifreq lo = {.ifr_name = "lo"};
    if (ioctl(listener, SIOCGIFFLAGS, &lo) == 0 && !(lo.ifr_flags & IFF_UP)) {
        lo.ifr_flags |= IFF_UP | IFF_RUNNING;
        need(ioctl(listener, SIOCSIFFLAGS, &lo), "setting lo up");
    }
    need(bind(listener, (struct sockaddr *)&address, size), "bind");
    need(getsockname(listener, (struct sockaddr *)&address, &size), "getsockname");
    return address;
}
static void open_tcp(long argument) {
    (void)argument;
    int one = 1, listener = (int)need(socket(AF_INET, SOCK_STREAM, 0), "TCP socket");
    struct sockaddr_in address = loopback(listener);
    need(listen(listener, 1), "listen");
    int near = (int)need(socket(AF_INET, SOCK_STREAM, 0), "TCP socket");
    need(connect(near, (struct sockaddr *)&address, sizeof address), "connect");
    int far = (int)need(accept(listener, NULL, NULL), "accept");
    need(setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
    need(setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
    child(echo, (int[]){far, far});
    here = there = near;
}
static void open_udp(long argument) {
    (void)argument;
    int near = (int)need(socket(AF_INET, SOCK_DGRAM, 0), "UDP socket");
    int far = (int)need(socket(AF_INET, SOCK_DGRAM, 0), "UDP socket");
    struct sockaddr_in near_address = loopback(near), far_address = loopback(far);
    need(connect(near, (struct sockaddr *)&far_address, sizeof far_address), "connect");
    need(connect(far, (struct sockaddr *)&near_address, sizeof near_address), "connect");
    child(echo, (int[]){far, far});
    here = there = near;
}
static void close_pair(void) {
    end_children();
    close(here);
    close(there);
}

/* A ring of n processes, each of which goes through `size` KiB of its own whenever the token comes by */

static long ring_size;
static char *ring_memory;

static void use_memory(void) {
    for (long i = 0; i < ring_size * 1024; i += 64) (*(volatile char *)(ring_memory + i))++;
}
static void pass_on(void *argument) {
    int *ends = argument;
    char token;
    if (ring_size) memset(ring_memory, 1, (size_t)ring_size * 1024);
    while (read(ends[0], &token, 1) == 1) {
        use_memory();
        if (write(ends[1], &token, 1) != 1) break;
    }
}
static void open_ring(long argument) {
    long members = argument >> 16;
    int first[2], last[2];
    ring_size = argument & 0xffff;
    ring_memory = ring_size ? malloc((size_t)ring_size * 1024) : NULL;
    if (ring_size && !ring_memory) die("malloc");
    need(pipe(first), "pipe");
    int from = first[0];
    for (long i = 1; i < members; i++) {
        need(pipe(last), "pipe");
        child(pass_on, (int[]){from, last[1]});
        from = last[0];
    }
    if (ring_size) memset(ring_memory, 1, (size_t)ring_size * 1024);
    here = from, there = first[1];
}
static void ring_round(void) {
    round_trip();
    use_memory();
}

/* Processes and threads */

static void fork_exit(void) {
    pid_t pid = (pid_t)need(fork(), "fork");
    if (pid == 0) _exit(0);
    need(waitpid(pid, NULL, 0), "waitpid");
}
static void run_program(char *const arguments[]) {
    int status;
    pid_t pid = (pid_t)need(fork(), "fork");
    if (pid == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    need(waitpid(pid, &status, 0), "waitpid");
    if (status) errno = ENOEXEC, die(arguments[0]);
}
static void fork_exec(void) { run_program((char *[]){own_path, "--nothing", NULL}); }
static void shell(void) {
    static char line[4200];
    if (!*line) snprintf(line, sizeof line, "%s --nothing", own_path);
    run_program((char *[]){"/bin/sh", "-c", line, NULL});
}
static void *thread_body(void *argument) { return argument; }
static void clone_join(void) {
    pthread_t thread;
    if ((errno = pthread_create(&thread, NULL, thread_body, NULL))) die("pthread_create");
    pthread_join(thread, NULL);
}

static volatile int turn;
static pthread_t partner;

static void futex_until(int mine) {
    while (turn != mine) syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !mine, NULL, NULL, 0);
}
static void futex_give(int other) {
    turn = other;
    need(syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), "futex");
}
static void *futex_partner(void *argument) {
    for (;;) {
        futex_until(1);
        futex_give(0);
    }
    return argument;
}
static void open_futex(long argument) {
    (void)argument;
    if ((errno = pthread_create(&partner, NULL, futex_partner, NULL))) die("pthread_create");
}
static void futex_round(void) {
    futex_give(1);
    futex_until(0);
}

#endif
