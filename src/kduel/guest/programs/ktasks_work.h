/* What each process of ktasks does. */
#ifndef KDUEL_KTASKS_WORK_H
#define KDUEL_KTASKS_WORK_H

#include "ktasks.h"

#include <sys/prctl.h>

static void give_up(struct member *mine, int error) {
    atomic_store(&mine->error, error);
    for (;;) pause();
}

static void acquire(_Atomic uint32_t *word) {
    uint32_t seen = 0;
    if (atomic_compare_exchange_strong(word, &seen, 1)) return;
    while (atomic_exchange(word, 2)) futex_wait(word, 2, NULL);
}

static void release(_Atomic uint32_t *word) {
    if (atomic_exchange(word, 0) == 2) futex_wake(word);
}

/* One of the processes that wait there, if any, looks again. */
static void tell(struct inbox *of) {
    atomic_fetch_add(&of->told, 1);
    futex_wake(&of->told);
}

static void post(struct member *mine, struct inbox *to) {
    _Atomic int64_t *place = &to->sent[atomic_fetch_add(&to->tickets, 1) % RING];
    if (atomic_load(place)) give_up(mine, EOVERFLOW);
    atomic_store(place, now_ns());
    tell(to);
}

/* The next wake-up's time; `slept` is set where it had to be waited for. `current` has it before it is taken. */
static int64_t take(struct inbox *from, int *slept, _Atomic int64_t *current) {
    for (;;) {
        uint32_t told = atomic_load(&from->told), taken = atomic_load(&from->taken);
        int64_t sent = atomic_load(&from->sent[taken % RING]);
        if (!sent) {
            *slept = 1;
            futex_wait(&from->told, told, NULL);
            continue;
        }
        if (current) atomic_store(current, sent);
        if (atomic_compare_exchange_strong(&from->taken, &taken, taken + 1)) {
            atomic_store(&from->sent[taken % RING], 0);
            /* Whoever was told of the next one may have found this one's place, which was still empty, and sleep again. */
            if (atomic_load(&from->sent[(taken + 1) % RING])) tell(from);
            return sent;
        }
        if (current) atomic_store(current, LLONG_MAX);
    }
}

static void work(struct member *mine, uint64_t *state, long long points) {
    volatile uint64_t sink = 0;
    for (long long left = points; left > 0; left -= CHUNK) {
        long long chunk = left < CHUNK ? left : CHUNK;
        sink += pi_points(state, chunk);
        atomic_fetch_add(&mine->points, (uint64_t)chunk);
    }
    (void)sink;
}

static void work_in_child(struct member *mine, uint64_t *state, long long points) {
    pid_t child = fork();
    if (child < 0) give_up(mine, errno);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        work(mine, state, points);
        _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
}

static void sleep_until(int64_t at) {
    struct timespec t = {at / 1000000000, at % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

static void take_steps(struct member *mine, const struct task *task, int from, uint64_t *state) {
    int slept;
    for (const struct step *s = task->step + from; s < task->step + task->steps; s++)
        switch (s->kind) {
        case WAIT:
            for (long long i = 0; i < s->value; i++) take(&inboxes[mine->task], &slept, NULL);
            break;
        case RUN: work(mine, state, s->value); break;
        case FORK: work_in_child(mine, state, s->value); break;
        case SLEEP: sleep_until(now_ns() + s->value); break;
        case WAKE:
            for (long long i = 0; i < s->times; i++) post(mine, &inboxes[s->value]);
            break;
        case LOCK: acquire(&locks[s->value]); break;
        case UNLOCK: release(&locks[s->value]); break;
        default: break;
        }
}

static void keep(struct member *mine, const struct run *one) {
    if (one->planned < atomic_load(begin) || one->planned >= atomic_load(end)) return;
    uint64_t n = atomic_load(&mine->runs);
    if (n == mine->room) give_up(mine, EOVERFLOW);
    mine->run[n] = *one;
    atomic_store(&mine->runs, n + 1);
}

/* The plan of the next multiple of a period that is not over. One that is over counts with the time until that is found. */
static int64_t next_plan(struct member *mine, int64_t last, int64_t period) {
    int64_t next = last + period, now = now_ns();
    for (; next + period <= now; next += period) {
        keep(mine, &(struct run){.planned = next, .woke = now, .done = now});
        if (next < atomic_load(end)) atomic_fetch_add(&mine->skipped, 1);
    }
    return next;
}

static void run_member(struct member *mine) {
    const struct task *task = &tasks[mine->task];
    const struct step *first = task->step;
    uint64_t state = pi_seed((int)(mine - members));
    struct policy seen;
    int error = policy_set(&task->policy);
    if (!error) error = policy_get(&seen);
    if (!error && !policy_same(&task->policy, &seen)) error = EINVAL;
    if (error) give_up(mine, error);
    atomic_store(&mine->ready, 1);
    while (!atomic_load(let_go)) futex_wait(let_go, 0, NULL);
    int64_t plan = atomic_load(begin) - first->value + mine->number * first->value / task->count;
    for (;;) {
        struct run now = {.planned = 0};
        if (first->kind == PERIOD) {
            plan = now.planned = next_plan(mine, plan, first->value);
            if (plan >= atomic_load(end)) {
                atomic_store(&mine->current, LLONG_MAX);
                for (;;) pause();
            }
            now.slept = now_ns() < plan;
            sleep_until(plan);
        } else if (first->kind == WAIT) {
            for (long long i = 0; i < first->value; i++)
                now.planned = take(&inboxes[mine->task], &now.slept, i + 1 == first->value ? &mine->current : NULL);
        } else {
            take_steps(mine, task, 0, &state);
            continue;
        }
        now.woke = now_ns();
        take_steps(mine, task, 1, &state);
        now.done = now_ns();
        keep(mine, &now);
        if (first->kind == WAIT) atomic_store(&mine->current, LLONG_MAX);
    }
}

#endif
