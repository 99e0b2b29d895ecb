/* kvary: runs a program under conditions that must not matter, one after the other.
 *
 *   kvary [--conditions K] [--seed N] [--cpus N] -- PROGRAM [ARGUMENT...]
 *
 * Drawn from the seed, so that all kernels have the same ones; number 0 changes nothing:
 *   phase        how long it waits before it starts the program: where the ticks of the timer fall
 *   cpu          on which CPU the program starts; it may then run on all of them
 *   halvings     how often a CPU's turn is halved on the exact machine with scheduling (markers that its plug-in knows)
 *   environment  bytes of environment more: where the stack begins
 *   layout       pages by which mappings lie lower
 * Before what the program prints there is a line of JSON with the condition, behind it one with the switches of all its
 * processes. It ends with the program's status where that is not 0.
 */
#define _GNU_SOURCE
#include "counter.h"
#include "drawn.h"
#include "work.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>

enum { PHASE_MAX_NS = 4000000, HALVINGS_MAX = 3, CONDITIONS_MAX = 1000 };

struct condition {
    long phase, cpu, halvings, environment, layout;
};

static struct condition condition_of(uint64_t seed, uint64_t number, long cpus) {
    uint64_t n = number * 8;
    if (!number) return (struct condition){0, 0, 0, 0, 0};
    return (struct condition){.phase = (long)(drawn(seed, n) % PHASE_MAX_NS),
                              .cpu = (long)(drawn(seed, n + 1) % (uint64_t)cpus),
                              .halvings = (long)(drawn(seed, n + 2) % (HALVINGS_MAX + 1)),
                              .environment = (long)(drawn(seed, n + 3) % ENVIRONMENT_MAX),
                              .layout = (long)(drawn(seed, n + 4) % LAYOUT_MAX)};
}

static void die(const char *what) {
    fprintf(stderr, "kvary: %s: %s\n", what, strerror(errno));
    exit(1);
}

static long number_of(const char *word, long least, long most) {
    char *end;
    errno = 0;
    long value = strtol(word, &end, 10);
    if (errno || *end || end == word || value < least || value > most) {
        fprintf(stderr, "kvary: %s is no number from %ld to %ld\n", word, least, most);
        exit(2);
    }
    return value;
}

static void start_on(unsigned long cpu, const cpu_set_t *all) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one)) die("sched_setaffinity");
    if (sched_setaffinity(0, sizeof *all, all)) die("sched_setaffinity");
}

static void run_under(uint64_t seed, long number, long cpus, const cpu_set_t *all, char **words) {
    struct condition c = condition_of(seed, (uint64_t)number, cpus);
    struct rusage before, after;
    int status;
    MARK_RESET();
    for (long i = 0; i < c.halvings; i++) MARK_SELECT();
    getrusage(RUSAGE_CHILDREN, &before);
    printf("{\"kvary\":%ld,\"phase\":%ld,\"cpu\":%ld,\"halvings\":%ld,\"environment\":%ld,\"layout\":%ld}\n", number,
           c.phase, c.cpu, c.halvings, c.environment, c.layout);
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (!child) {
        if (number) start_on((unsigned long)c.cpu, all);
        for (int64_t until = now_ns() + c.phase; now_ns() < until;) {}
        if (move_addresses(c.environment, c.layout)) die("setrlimit");
        execv(words[0], words);
        die(words[0]);
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) die("waitpid");
    if (status) exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    getrusage(RUSAGE_CHILDREN, &after);
    printf("{\"voluntary\":%ld,\"involuntary\":%ld}\n", after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw);
    fflush(stdout);
}

int main(int count, char **words) {
    long conditions = 1, cpus = 1, at = 1;
    uint64_t seed = 0;
    cpu_set_t all;
    for (; at + 1 < count && strcmp(words[at], "--"); at += 2) {
        if (!strcmp(words[at], "--conditions")) conditions = number_of(words[at + 1], 1, CONDITIONS_MAX);
        else if (!strcmp(words[at], "--seed")) seed = (uint64_t)number_of(words[at + 1], 0, 1000000000000000);
        else if (!strcmp(words[at], "--cpus")) cpus = number_of(words[at + 1], 1, CPU_SETSIZE);
        else break;
    }
    if (at + 1 >= count || strcmp(words[at], "--")) {
        fputs("usage: kvary [--conditions K] [--seed N] [--cpus N] -- PROGRAM [ARGUMENT...]\n", stderr);
        return 2;
    }
    if (sched_getaffinity(0, sizeof all, &all)) die("sched_getaffinity");
    for (long i = 0; i < conditions; i++) run_under(seed, i, cpus, &all, words + at + 1);
    MARK_RESET();
    return 0;
}
