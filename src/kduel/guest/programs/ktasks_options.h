/* The words of ktasks' command line. */
#ifndef KDUEL_KTASKS_OPTIONS_H
#define KDUEL_KTASKS_OPTIONS_H

#include "ktasks.h"

static void usage_error(const char *why) {
    fprintf(stderr, "ktasks: %s\nusage: ktasks [--time MS] [--speed POINTS] [--policy POLICY] task=NAME [count=N] [policy=POLICY] STEP... [task=...]\n"
            "steps: period=NS wait=N run=POINTS fork=POINTS sleep=NS wake=TASK:N lock=L unlock=L\n", why);
    exit(2);
}

static long long number_of(const char *word, const char *stop_at, long long least, long long most) {
    long long value;
    if (!policy_number(word, stop_at, &value) || value < least || value > most) usage_error(word);
    return value;
}

static void read_step(struct task *into, const char *word, const char *value) {
    static const long long most[KINDS] = {3600000000000, 1000, 1LL << 40, 1LL << 40, 3600000000000, TASKS - 1, LOCKS - 1, LOCKS - 1};
    const char *stop_at = value + strlen(value), *colon = strchr(value, ':');
    int kind = 0;
    while (kind < KINDS && (strlen(kinds[kind]) != (size_t)(value - 1 - word) || strncmp(word, kinds[kind], (size_t)(value - 1 - word))))
        kind++;
    if (kind == KINDS || into->steps == STEPS || (kind == PERIOD && into->steps)) usage_error(word);
    struct step *s = &into->step[into->steps++];
    s->kind = (enum kind)kind;
    s->times = kind == WAKE && colon ? number_of(colon + 1, stop_at, 1, 1000) : 1;
    s->value = number_of(value, kind == WAKE && colon ? colon : stop_at, kind < RUN ? 1 : 0, most[kind]);
}

static void read_words(int count, char **words) {
    const char *policy = getenv("KDUEL_POLICY");
    if (!policy || !*policy) policy = "other";
    struct task *task = NULL;
    for (int i = 1; i < count; i++) {
        const char *value = strchr(words[i], '=');
        if (!strcmp(words[i], "--time") && i + 1 < count) time_ms = number_of(words[i + 1], words[i + 1] + strlen(words[i + 1]), 1, 3600000), i++;
        else if (!strcmp(words[i], "--speed") && i + 1 < count) speed = number_of(words[i + 1], words[i + 1] + strlen(words[i + 1]), 1, 1000000000), i++;
        else if (!strcmp(words[i], "--policy") && i + 1 < count) policy = words[++i];
        else if (!value++) usage_error(words[i]);
        else if (!strncmp(words[i], "task=", 5)) {
            if (task_count == TASKS) usage_error("too many tasks");
            task = &tasks[task_count++];
            *task = (struct task){.name = value, .count = 1};
        } else if (!task) usage_error(words[i]);
        else if (!strncmp(words[i], "count=", 6)) task->count = (int)number_of(value, value + strlen(value), 1, MEMBERS);
        else if (!strncmp(words[i], "policy=", 7)) task->policy_text = value;
        else read_step(task, words[i], value);
    }
    if (!task_count) usage_error("no task");
    for (task = tasks; task < tasks + task_count; task++) {
        if (!task->policy_text) task->policy_text = policy;
        if (policy_parse(task->policy_text, &task->policy)) usage_error(task->policy_text);
        if (!task->steps) usage_error(task->name);
        for (struct step *s = task->step; s < task->step + task->steps; s++)
            if (s->kind == WAKE && s->value >= task_count) usage_error("wake: there is no such task");
        member_count += task->count;
    }
    if (member_count > MEMBERS) usage_error("too many processes");
}

#endif
