/* The output of kload. */
#ifndef KDUEL_KLOAD_OUTPUT_H
#define KDUEL_KLOAD_OUTPUT_H

#include "kload.h"

/* All of a run that is not the processes' own. */
struct run {
    int left, in_time, finished, raised, throttled_before, throttled_after;
    int64_t opened, closed;
    double life[2];
    long long life_switches[2];
    struct rusage own_before, own; /* the driver's, over the same time as the cgroup's account */
    struct cgroup group;
};

static double used(struct timeval before, struct timeval after) { return seconds(after) - seconds(before); }

static void put_number(const char *name, long long value) {
    if (value == ABSENT) printf("\"%s\":null", name);
    else printf("\"%s\":%lld", name, value);
}

static void print_work(int64_t opened) {
    double user = 0, system = 0, wall = 0;
    long long voluntary = 0, involuntary = 0, status_voluntary = 0, status_involuntary = 0;
    uint64_t inside = 0;
    for (int i = 0; i < want.processes; i++) {
        struct slot *s = &shared->slots[i];
        user += used(s->before.ru_utime, s->after.ru_utime);
        system += used(s->before.ru_stime, s->after.ru_stime);
        voluntary += s->after.ru_nvcsw - s->before.ru_nvcsw;
        involuntary += s->after.ru_nivcsw - s->before.ru_nivcsw;
        status_voluntary += s->status_after.voluntary - s->status_before.voluntary;
        status_involuntary += s->status_after.involuntary - s->status_before.involuntary;
        inside += s->inside;
        double took = (double)(s->ended - opened) / 1e9;
        if (took > wall) wall = took;
    }
    printf(" \"wall_s\":%.9f,\"user_s\":%.6f,\"system_s\":%.6f,\"voluntary\":%lld,\"involuntary\":%lld,\n", wall, user,
           system, voluntary, involuntary);
    if ((want.kind == CPU || want.kind == MIXED) && want.iterations)
        printf(" \"pi\":%.9f,\n", 4.0 * (double)inside / (double)want.iterations / want.processes);
    if (want.verify)
        printf(" \"status\":{\"voluntary\":%lld,\"involuntary\":%lld},\n", status_voluntary, status_involuntary);
}

static void print_each(int64_t opened) {
    puts(",\n \"each\":{\"columns\":[\"start_us\",\"end_us\",\"user_us\",\"system_us\",\"voluntary\",\"involuntary\"],\"rows\":[");
    for (int i = 0; i < want.processes; i++) {
        struct slot *s = &shared->slots[i];
        printf("[%lld,%lld,%.0f,%.0f,%ld,%ld]%s\n", (long long)(s->started - opened) / 1000,
               (long long)(s->ended - opened) / 1000, used(s->before.ru_utime, s->after.ru_utime) * 1e6,
               used(s->before.ru_stime, s->after.ru_stime) * 1e6, s->after.ru_nvcsw - s->before.ru_nvcsw,
               s->after.ru_nivcsw - s->before.ru_nivcsw, i + 1 < want.processes ? "," : "");
    }
    printf("]}");
}

static void print(const struct run *run) {
    printf("{\"kload\":1,\"kind\":\"%s\",\"processes\":%d,\"iterations\":%lld,\"transfers\":%lld,\"io\":\"%s\",\n",
           kinds[want.kind], want.processes, want.iterations, want.transfers, modes[want.mode]);
    printf(" \"policy_wanted\":\"%s\",\"policy\":", want.policy_text);
    policy_print(stdout, &shared->slots[0].seen);
    printf(",\n \"finished\":%d,\"in_time\":%s,\"deadline_s\":%.0f,\"driver_policy\":\"%s\",\n", run->finished,
           run->in_time ? "true" : "false", want.deadline, run->raised ? "fifo:99" : "other");
    if (run->in_time) print_work(run->opened);
    printf(" \"life\":{\"user_s\":%.6f,\"system_s\":%.6f,\"voluntary\":%lld,\"involuntary\":%lld},\n", run->life[0],
           run->life[1], run->life_switches[0], run->life_switches[1]);
    printf(" \"driver\":{\"user_s\":%.6f,\"system_s\":%.6f},\"ended_s\":%.9f,\n",
           used(run->own_before.ru_utime, run->own.ru_utime), used(run->own_before.ru_stime, run->own.ru_stime),
           (double)(run->closed - run->opened) / 1e9);
    printf(" \"cgroup\":{"), put_number("user_us", run->group.user_us), putchar(',');
    put_number("system_us", run->group.system_us);
    printf("},\n \"rt\":{"), put_number("runtime_us", number_in("/proc/sys/kernel/sched_rt_runtime_us")), putchar(',');
    put_number("period_us", number_in("/proc/sys/kernel/sched_rt_period_us"));
    printf(",\"log_before\":%d,\"log_after\":%d}", run->throttled_before, run->throttled_after);
    if (run->in_time) print_each(run->opened);
    puts("}");
}

#endif
