/* Scheduling policies by name, set and read back: sched_setattr(2), which no libc wraps the same way. */
#ifndef KDUEL_POLICY_H
#define KDUEL_POLICY_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_sched_setattr
#define SYS_sched_setattr __NR_sched_setattr
#endif
#ifndef SYS_sched_getattr
#define SYS_sched_getattr __NR_sched_getattr
#endif

enum { OTHER = 0, FIFO = 1, RR = 2, BATCH = 3, IDLE = 5, DEADLINE = 6, EXT = 7 };
enum { RESET_ON_FORK = 1 };

struct policy {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period; /* ns; for OTHER and BATCH `runtime` is the EEVDF slice, 0 the kernel's */
};

static const char *policy_names[] = {"other", "fifo", "rr", "batch", "iso", "idle", "deadline", "ext"};

/* A decimal number up to `stop`, exactly. Returns 0 where `text` is not one. */
static inline int policy_number(const char *text, const char *stop, long long *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && end == stop;
}

/* From words joined by '+': other batch idle ext fifo:P rr:P deadline:R,D,P nice:N slice:NS. Returns 0, or -1. */
static inline int policy_parse(const char *text, struct policy *into) {
    memset(into, 0, sizeof *into);
    into->size = 48;
    int named = 0, only_fair = 0;
    if (!*text) return -1;
    while (*text) {
        const char *end = strchr(text, '+');
        if (!end) end = text + strlen(text);
        const char *colon = memchr(text, ':', end - text);
        size_t word = (colon ? colon : end) - text;
        long long a = 0, b, c;
        int is_other = word == 5 && !memcmp(text, "other", 5);
        int plain = is_other || (word == 5 && !memcmp(text, "batch", 5)) ||
                    (word == 4 && !memcmp(text, "idle", 4)) || (word == 3 && !memcmp(text, "ext", 3));
        if (plain) {
            if (colon || named++) return -1;
            into->policy = is_other ? OTHER : *text == 'b' ? BATCH : *text == 'i' ? IDLE : EXT;
        } else if (colon && ((word == 4 && !memcmp(text, "fifo", 4)) || (word == 2 && !memcmp(text, "rr", 2)))) {
            if (named++ || !policy_number(colon + 1, end, &a) || a < 1 || a > 99) return -1;
            into->policy = *text == 'f' ? FIFO : RR;
            into->priority = (uint32_t)a;
        } else if (colon && word == 8 && !memcmp(text, "deadline", 8)) {
            const char *one = memchr(colon, ',', end - colon);
            const char *two = one ? memchr(one + 1, ',', end - one - 1) : NULL;
            if (named++ || !two || !policy_number(colon + 1, one, &a) || !policy_number(one + 1, two, &b) ||
                !policy_number(two + 1, end, &c) || a < 1 || b < 1 || c < 0)
                return -1;
            into->policy = DEADLINE;
            into->runtime = (uint64_t)a, into->deadline = (uint64_t)b, into->period = (uint64_t)c;
        } else if (colon && word == 4 && !memcmp(text, "nice", 4)) {
            if (!policy_number(colon + 1, end, &a) || a < -20 || a > 19) return -1;
            into->nice = (int32_t)a;
            only_fair = 1;
        } else if (colon && word == 5 && !memcmp(text, "slice", 5)) {
            if (!policy_number(colon + 1, end, &a) || a < 1) return -1;
            into->runtime = (uint64_t)a;
            only_fair = 1;
        } else {
            return -1;
        }
        if (*end && !end[1]) return -1;
        text = *end ? end + 1 : end;
    }
    if (only_fair && into->policy != OTHER && into->policy != BATCH && into->policy != EXT) return -1;
    return 0;
}

/* For a process, 0 is the calling one. Returns 0, or an errno. */
static inline int policy_set_of(pid_t process, const struct policy *wanted) {
    return syscall(SYS_sched_setattr, process, wanted, 0) == 0 ? 0 : errno;
}

static inline int policy_set(const struct policy *wanted) { return policy_set_of(0, wanted); }

/* The ordinary one, so that a process can end at once: under DEADLINE even dying is throttled to its runtime. */
static const struct policy policy_plain __attribute__((unused)) = {.size = 48, .policy = OTHER};

/* What the calling process has. Returns 0, or an errno. */
static inline int policy_get(struct policy *seen) {
    memset(seen, 0, sizeof *seen);
    return syscall(SYS_sched_getattr, 0, seen, sizeof *seen, 0) == 0 ? 0 : errno;
}

/* Whether `seen` is what was `wanted`; a slice that was not asked for may be anything. */
static inline int policy_same(const struct policy *wanted, const struct policy *seen) {
    if (wanted->policy != seen->policy || wanted->priority != seen->priority) return 0;
    if (wanted->policy == DEADLINE)
        return wanted->runtime == seen->runtime && wanted->deadline == seen->deadline &&
               (wanted->period ? wanted->period : wanted->deadline) == seen->period;
    /* IDLE has one weight at any nice level, and the kernel leaves the level as it was. */
    if (wanted->policy == FIFO || wanted->policy == RR || wanted->policy == IDLE) return 1;
    return wanted->nice == seen->nice && (!wanted->runtime || wanted->runtime == seen->runtime);
}

static inline const char *policy_name(const struct policy *which) {
    return which->policy < sizeof policy_names / sizeof *policy_names ? policy_names[which->policy] : "unknown";
}

static inline void policy_print(FILE *out, const struct policy *which) {
    fprintf(out, "{\"policy\":\"%s\",\"priority\":%u,\"nice\":%d,\"runtime_ns\":%llu,\"deadline_ns\":%llu,\"period_ns\":%llu}",
            policy_name(which), which->priority, which->nice, (unsigned long long)which->runtime,
            (unsigned long long)which->deadline, (unsigned long long)which->period);
}

/* Set, read back, and on stderr why it was not to be. Returns 0, or the exit status 3. */
static inline int policy_take(const char *program, const char *text, const struct policy *wanted, struct policy *seen) {
    int error = policy_set(wanted);
    if (!error) error = policy_get(seen);
    if (error) {
        fprintf(stderr, "%s: the kernel refused the policy %s: %s\n", program, text, strerror(error));
        return 3;
    }
    if (!policy_same(wanted, seen)) {
        fprintf(stderr, "%s: the kernel took the policy %s and then has another: ", program, text);
        policy_print(stderr, seen);
        fputc('\n', stderr);
        return 3;
    }
    return 0;
}

#endif
