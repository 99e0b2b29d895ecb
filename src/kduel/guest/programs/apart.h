/* Programs that count operations under conditions: each runs itself again, in a process that has the condition from its beginning. */
#ifndef KDUEL_APART_H
#define KDUEL_APART_H

#include "conditions.h"
#include "counter.h"
#include "table.h"

enum { OPERATIONS = sizeof operations / sizeof *operations };

static const struct operation *operation_called(const char *name) {
    for (int i = 0; i < OPERATIONS; i++)
        if (!strcmp(operations[i].name, name)) return operations + i;
    return NULL;
}

/* What is carried out before, under some conditions: it leaves the kernel's and the processor's state otherwise. */
static const char *const befores[] = {"fork-exit", "pipe", "fault-anonymous", "create-delete", "mmap", "epoll-10"};
enum { BEFORES = sizeof befores / sizeof *befores, BEFORE_CALLS = 8 };

static void spin(long ticks_long) {
    uint64_t begin = ticks();
    while (ticks() - begin < (uint64_t)ticks_long) {}
}

/* This program again under a condition, in a process that has it from its beginning: with `words`, then `--part`, `--count` and
 * the operation's name. Gives its exit status. */
static int run_apart(char *const words[], const struct operation *what, long count, const struct condition *c, const char *situation) {
    char part[64], times[32];
    char *arguments[24] = {own_path};
    int status, used = 1;
    char *held = hold(c->held);
    snprintf(part, sizeof part, "%llu:%u:%s", (unsigned long long)c->seed, c->number, situation);
    snprintf(times, sizeof times, "%ld", count);
    pid_t pid = (pid_t)need(fork(), "fork");
    if (pid == 0) {
        dress_process(c);
        while (*words && used < 16) arguments[used++] = *words++;
        char *const last[] = {"--part", part, "--count", times, (char *)(uintptr_t)what->name, NULL};
        memcpy(arguments + used, last, sizeof last);
        execv(own_path, arguments);
        die(own_path);
    }
    need(waitpid(pid, &status, 0), "waitpid");
    if (held) munmap(held, (size_t)c->held * 4096);
    leave_cgroup();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static double number(const char *text, double low, double high) {
    char *end;
    double value = text ? strtod(text, &end) : -1;
    if (!text || end == text || *end || !(value >= low && value <= high)) {
        fprintf(stderr, "%s: %s is not a number from %g to %g\n", program_invocation_short_name, text ? text : "(nothing)", low, high);
        exit(2);
    }
    return value;
}

/* SEED:NUMBER:SITUATION, as this program says it to itself. */
static const char *read_part(const char *text, struct condition *into) {
    unsigned long long seed;
    unsigned number;
    int read = 0;
    if (!text || sscanf(text, "%llu:%u:%n", &seed, &number, &read) != 2 || !read) exit(2);
    *into = condition_of(seed, number, BEFORES);
    return text + read;
}

#endif
