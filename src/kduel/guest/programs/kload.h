/* What the driver of kload and its processes share: what is wanted, and what each process leaves. */
#ifndef KDUEL_KLOAD_H
#define KDUEL_KLOAD_H

#include "accounts.h"
#include "policy.h"
#include "work.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/resource.h>

enum { CPU, IO, MIXED, BLOCKS, MESSAGES };
enum { BUFFERED, DIRECT, DSYNC };
enum { MOST_PROCESSES = 100000, MOST_OUTPUTS = 64, QUIET_NS = 200000000 };
static const char *kinds[] = {"cpu", "io", "mixed", "blocks", "messages"};
static const char *modes[] = {"buffered", "direct", "dsync"};

/* What a process leaves in memory shared with the driver. Times in ns of CLOCK_MONOTONIC. */
struct slot {
    pid_t pid;
    int error; /* an errno, with what was being done in `doing` */
    char doing[80];
    struct policy seen;
    int64_t started, ended;
    struct rusage before, after;
    struct status_counts status_before, status_after;
    uint64_t inside; /* points inside the quarter circle */
};

struct shared {
    atomic_int ready, finished;
    _Atomic uint32_t over; /* futex: 1 when the last process has finished */
    struct slot slots[];
};

static struct {
    int kind, mode, processes, outputs, verify;
    long long iterations, transfers, block, size;
    double deadline;
    const char *policy_text, *directory, *cgroup;
    struct policy policy;
} want = {.kind = -1, .processes = 10, .outputs = 4, .iterations = 500000, .transfers = 256, .block = 4096,
          .size = 262144, .deadline = 600, .directory = ".", .policy_text = "other"};

static struct shared *shared;
static int (*lanes)[2]; /* a pair of sockets for each process that receives */
static pid_t driver;

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static void kill_all(void) {
    for (int i = 0; i < want.processes; i++) {
        pid_t child = shared->slots[i].pid;
        if (child <= 0) continue;
        policy_set_of(child, &policy_plain);
        kill(child, SIGKILL);
    }
}

static void fail(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("kload: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    if (shared && getpid() == driver) kill_all();
    exit(status);
}

#endif
