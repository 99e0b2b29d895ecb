/* Conditions that must not matter: ways to count one operation that differ in what no user would name as a cause.
 *
 * Every one is drawn from a seed and a number, so that all kernels are counted under the same ones; number 0 changes
 * nothing. Each is applied in a fresh process, which runs this program again. Situations are no such conditions: they
 * do matter, and are counted beside them.
 */
#ifndef KDUEL_CONDITIONS_H
#define KDUEL_CONDITIONS_H

#include "calls.h"
#include "drawn.h"

enum { PHASE_MAX = 4000000, HELD_MAX = 256, TIMES = 5 };

struct condition {
    uint64_t seed;
    unsigned number;
    long phase;       /* ticks of spinning before the operation is opened: where timer interrupts fall */
    long times;       /* how many times as many calls */
    long environment; /* bytes more of environment: where the stack begins */
    long layout;      /* pages by which mappings lie lower */
    long held;        /* pages that another process holds: which pages the kernel has left */
    unsigned before;  /* which operation was carried out before in the process; 0: none */
};

static struct condition condition_of(uint64_t seed, unsigned number, unsigned befores) {
    struct condition c = {.seed = seed, .number = number, .times = 1};
    uint64_t n = (uint64_t)number * 8;
    if (!number) return c;
    c.phase = (long)(drawn(seed, n) % PHASE_MAX);
    c.times = number % 2 ? TIMES : 1;
    c.environment = (long)(drawn(seed, n + 1) % ENVIRONMENT_MAX);
    c.layout = (long)(drawn(seed, n + 2) % LAYOUT_MAX);
    c.held = (long)(drawn(seed, n + 3) % HELD_MAX);
    c.before = (unsigned)(drawn(seed, n + 4) % (befores + 1));
    return c;
}

/* Situations */

static const char *const situations[] = {"session", "cgroup", "fifo"};
enum { SITUATIONS = sizeof situations / sizeof *situations, SITUATION_MISSING = 4 };

static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY), done;
    if (fd < 0) return 0;
    done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return done;
}

/* Two groups below the root, each with shares of the CPU of its own. */
static int enter_cgroup(void) {
    char pid[32];
    snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    put("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
    mkdir("/sys/fs/cgroup/kbench", 0755);
    put("/sys/fs/cgroup/kbench/cgroup.subtree_control", "+cpu");
    mkdir("/sys/fs/cgroup/kbench/inner", 0755);
    return access("/sys/fs/cgroup/kbench/inner/cpu.weight", F_OK) == 0 &&
           put("/sys/fs/cgroup/kbench/inner/cgroup.procs", pid);
}

static void leave_cgroup(void) {
    rmdir("/sys/fs/cgroup/kbench/inner");
    rmdir("/sys/fs/cgroup/kbench");
}

/* Before the operation is opened. Ends with SITUATION_MISSING where this kernel does not know the situation. */
static inline void enter_situation(const char *name) {
    struct sched_param priority = {.sched_priority = 10};
    int there = 1;
    if (!strcmp(name, "session")) new_sessions = 1;
    else if (!strcmp(name, "cgroup")) there = enter_cgroup();
    else if (!strcmp(name, "fifo")) there = syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &priority) == 0;
    if (!there) exit(SITUATION_MISSING);
}

/* What a process must have from its beginning. */
static void dress_process(const struct condition *c) { need(move_addresses(c->environment, c->layout), "setrlimit"); }

static char *hold(long pages) {
    if (!pages) return NULL;
    char *area = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) die("mmap");
    for (long i = 0; i < pages; i++) *(volatile char *)(area + i * 4096) = 1;
    return area;
}

#endif
