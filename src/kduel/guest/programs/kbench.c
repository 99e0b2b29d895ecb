/* kbench: what single kernel operations cost.
 *
 *   kbench [--exact [--conditions K] [--seed N]] [--threaded] [--count N] [--time SECONDS] [--cpu N] OPERATION
 *   kbench --list
 *
 * One line of JSON on stdout. In exact mode (on a machine whose clock counts instructions) every operation is
 * measured alone, between two marker instructions that a QEMU plug-in knows; with --conditions under each of them in a
 * process of its own, which gives a line. Else operations are repeated in batches that are long enough for the clock to
 * err by less than 1 %. An empty operation is measured alike, and subtracted. With --threaded a second thread sleeps
 * beside what is measured, so that the kernel takes the paths of a process that shares its files and memory.
 */
#define _GNU_SOURCE
static char *again_words[3] = {"--exact"}; /* and --threaded */
#define AGAIN again_words
#include "measuring.h"

static void *sleep_forever(void *unused) {
    for (;;) pause();
    return unused;
}

/* A thread that never runs: signals are for the one that is measured. */
static void start_sleeper(void) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if ((errno = pthread_create(&thread, NULL, sleep_forever, NULL))) die("pthread_create");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int main(int count, char **words) {
    int is_exact = 0, threaded = 0, cpu = -1;
    long times = 0;
    unsigned conditions = 0;
    double seconds = 1;
    struct condition condition = {.times = 1};
    const char *situation = NULL;
    uint64_t seed = 0;
    if (count == 2 && !strcmp(words[1], "--nothing")) _exit(0);
    if (count == 2 && !strcmp(words[1], "--list")) {
        for (int i = 0; i < OPERATIONS; i++) printf("%s\t%s\n", operations[i].name, operations[i].about);
        return 0;
    }
    int at = 1;
    for (; at < count && words[at][0] == '-'; at++) {
        if (!strcmp(words[at], "--exact")) is_exact = 1;
        else if (!strcmp(words[at], "--threaded")) threaded = 1, again_words[1] = words[at];
        else if (!strcmp(words[at], "--count")) times = (long)number(words[++at], 1, SAMPLES);
        else if (!strcmp(words[at], "--conditions")) conditions = (unsigned)number(words[++at], 1, 1000);
        else if (!strcmp(words[at], "--seed")) seed = (uint64_t)number(words[++at], 0, 1e15);
        else if (!strcmp(words[at], "--part")) situation = read_part(words[++at], &condition);
        else if (!strcmp(words[at], "--time")) seconds = number(words[++at], 0, 3600);
        else if (!strcmp(words[at], "--cpu")) cpu = (int)number(words[++at], 0, CPU_SETSIZE - 1);
        else break;
    }
    const struct operation *what = at < count ? operation_called(words[at]) : NULL;
    if (!what || at + 1 != count) {
        fprintf(stderr, "usage: kbench [--exact [--conditions K] [--seed N]] [--threaded] [--count N] [--time SECONDS] [--cpu N] OPERATION; kbench --list\n");
        return 2;
    }
    if (readlink("/proc/self/exe", own_path, sizeof own_path - 1) < 0) snprintf(own_path, sizeof own_path, "%s", words[0]);
    if (cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        need(sched_setaffinity(0, sizeof set, &set), "--cpu");
    }
    if (is_exact) seed_randomness();
    long calls = times ? times : what->count ? what->count : 1000;
    if (is_exact && conditions) {
        exact_under_conditions(what, times ? times : (calls + PER_CONDITION - 1) / PER_CONDITION, conditions, seed);
        return 0;
    }
    if (threaded) start_sleeper();
    memset(samples, 0, sizeof samples); /* no page of these faults in while measuring */
    memset(empty_samples, 0, sizeof empty_samples);
    if (is_exact) {
        exact(what, calls, &condition, situation ? situation : "");
        return 0;
    }
    if (what->open) what->open(what->argument);
    timed(what, seconds);
    if (what->close) what->close();
    end_children();
    return 0;
}
