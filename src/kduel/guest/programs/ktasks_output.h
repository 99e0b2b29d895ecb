/* What ktasks reads of each process, and what it prints. */
#ifndef KDUEL_KTASKS_OUTPUT_H
#define KDUEL_KTASKS_OUTPUT_H

#include "accounts.h"
#include "distribution.h"
#include "ktasks.h"

#include <stddef.h>

static void read_accounts(pid_t pid, struct accounts *into) {
    char path[64], text[8192];
    *into = (struct accounts){ABSENT, ABSENT, ABSENT, ABSENT, ABSENT};
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (read_text(path, text, sizeof text)) {
        into->voluntary = number_after(text, "\nvoluntary_ctxt_switches:");
        into->involuntary = number_after(text, "\nnonvoluntary_ctxt_switches:");
    }
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    if (read_text(path, text, sizeof text) && sscanf(text, "%lld %lld", &into->run_ns, &into->wait_ns) != 2)
        into->run_ns = into->wait_ns = ABSENT;
    snprintf(path, sizeof path, "/proc/%d/sched", (int)pid);
    if (read_text(path, text, sizeof text)) {
        const char *at = strstr(text, "nr_migrations");
        if (at) into->migrations = number_after(at, ":");
    }
}

static void put_sum(const char *name, int task, size_t offset) {
    long long sum = 0;
    for (struct member *m = members; m < members + member_count; m++) {
        if (m->task != task) continue;
        long long before = *(long long *)((char *)&m->before + offset), after = *(long long *)((char *)&m->after + offset);
        if (before < 0 || after < before) {
            printf(",\"%s\":null", name);
            return;
        }
        sum += after - before;
    }
    printf(",\"%s\":%lld", name, sum);
}

static void put_task(int t) {
    struct task *task = &tasks[t];
    int measured = task->step->kind <= WAIT;
    uint64_t all = 0, skipped = 0, late = 0, points = 0, n = 0;
    for (struct member *m = members; m < members + member_count; m++)
        if (m->task == t) all += m->runs, skipped += m->skipped, points += m->points_after - m->points_before;
    printf("%s{\"name\":\"%s\",\"count\":%d,\"policy\":", t ? ",\n " : "", task->name, task->count);
    policy_print(stdout, &task->policy);
    printf(",\"points\":%llu", (unsigned long long)points);
    put_sum("voluntary", t, offsetof(struct accounts, voluntary));
    put_sum("involuntary", t, offsetof(struct accounts, involuntary));
    put_sum("migrations", t, offsetof(struct accounts, migrations));
    put_sum("run_ns", t, offsetof(struct accounts, run_ns));
    put_sum("wait_ns", t, offsetof(struct accounts, wait_ns));
    if (measured) {
        int64_t *latency = malloc((all + 1) * sizeof *latency), *response = malloc((all + 1) * sizeof *response);
        if (!latency || !response) exit(1);
        for (struct member *m = members; m < members + member_count; m++)
            for (uint64_t i = 0; m->task == t && i < m->runs; i++, n++) {
                latency[n] = m->run[i].woke - m->run[i].planned;
                response[n] = m->run[i].done - m->run[i].planned;
                late += task->step->kind == PERIOD && response[n] >= task->step->value;
            }
        if (task->step->kind == PERIOD) printf(",\"skipped\":%llu,\"late\":%llu", (unsigned long long)skipped, (unsigned long long)late);
        put_distribution("latency", latency, (long long)n);
        put_distribution("response", response, (long long)n);
    }
    putchar('}');
}

/* Of processes that slept until they were to begin, those that began last: who, when it was due, when it began. */
static void put_slowest(void) {
    for (int k = 0; k < SLOWEST; k++) {
        struct run *found = NULL;
        struct member *whose = NULL;
        for (struct member *m = members; m < members + member_count; m++)
            for (uint64_t i = 0; i < m->runs; i++)
                if (m->run[i].slept && (!found || m->run[i].woke - m->run[i].planned > found->woke - found->planned))
                    found = &m->run[i], whose = m;
        if (!found) break;
        printf("%s[%d,%lld,%lld]", k ? "," : "", (int)whose->pid, (long long)found->planned, (long long)found->woke);
        found->slept = 0;
    }
}

#endif
