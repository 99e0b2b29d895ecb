/* What the driver of ktasks and its processes share: the tasks, and what each process leaves. */
#ifndef KDUEL_KTASKS_H
#define KDUEL_KTASKS_H

#include "policy.h"
#include "work.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { TASKS = 32, STEPS = 64, MEMBERS = 256, LOCKS = 16, RING = 4096, RUNS = 16384, CHUNK = 1000, GRACE_S = 20, SLOWEST = 5 };
enum kind { PERIOD, WAIT, RUN, FORK, SLEEP, WAKE, LOCK, UNLOCK, KINDS };
static const char *const kinds[KINDS] = {"period", "wait", "run", "fork", "sleep", "wake", "lock", "unlock"};

struct step {
    enum kind kind;
    long long value, times;
};

struct task {
    const char *name, *policy_text;
    struct policy policy;
    int count, steps;
    struct step step[STEPS];
};

/* Wake-ups of a task's processes, each with its time; 0 is an empty place. */
struct inbox {
    _Atomic uint32_t told, tickets, taken; /* told: a futex, changed where there may be something to take */
    _Atomic int64_t sent[RING];
};

struct run {
    int64_t planned, woke, done;
    int slept;
};

struct accounts {
    long long voluntary, involuntary, migrations, run_ns, wait_ns;
};

struct member {
    pid_t pid;
    int task, number;
    atomic_int ready, error;
    _Atomic int64_t current; /* plan of what it is doing, LLONG_MAX while it does nothing that is measured */
    _Atomic uint64_t points, runs, skipped;
    struct run *run;
    uint64_t room;
    struct accounts before, after;
    uint64_t points_before, points_after;
};

static struct task tasks[TASKS];
static int task_count, member_count;
static long long time_ms = 1000, speed;
static struct member *members;
static struct inbox *inboxes;
static _Atomic uint32_t *locks, *let_go;
static _Atomic int64_t *begin, *end;

static void end_all(void) {
    for (int i = 0; i < member_count; i++)
        if (members[i].pid > 0) {
            policy_set_of(members[i].pid, &policy_plain);
            kill(members[i].pid, SIGKILL);
        }
    while (wait(NULL) > 0) {}
}

#endif
