/* ktasks: tasks that repeat steps given as data, as rt-app has them; how late each begins, and how long it takes.
 *
 *   ktasks [--time MS] [--speed POINTS] [--policy POLICY] task=NAME [count=N] [policy=POLICY] STEP... [task=...]
 *   period=NS     to the next multiple of so long, planned beforehand; one that is over is skipped, late. The first step only
 *   wait=N        until it has been woken N times; a wake-up is for one of the task's processes
 *   run=POINTS    points of pi; fork=POINTS has a child of its own do it, and waits for its end
 *   sleep=NS      wake=TASK:N wakes the task of that number, from 0, N times      lock=L, unlock=L: one of 16 mutexes
 *
 * A task that begins with a period or a wait is measured from that plan or wake-up on:
 *   latency   to its next instruction: with a period also where it was still busy then, or has skipped it
 *   response  to the end of its steps
 * Others have what they got done. With --speed, points of pi in a millisecond, a CPU that is less than a quarter as fast is
 * refused: its work would not be what it was meant to be. All processes are let go at once; a fifth of a second later the time begins. It ends
 * when all that was begun in it has been done, under the same load.
 */
#define _GNU_SOURCE
#include "accounts.h"
#include "distribution.h"
#include "policy.h"
#include "work.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
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
    _Atomic uint32_t posted, tickets, taken;
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

static void post(struct member *mine, struct inbox *to) {
    _Atomic int64_t *place = &to->sent[atomic_fetch_add(&to->tickets, 1) % RING];
    if (atomic_load(place)) give_up(mine, EOVERFLOW);
    atomic_store(place, now_ns());
    atomic_fetch_add(&to->posted, 1);
    futex_wake(&to->posted);
}

/* The next wake-up's time; `slept` is set where it had to be waited for. `current` has it before it is taken. */
static int64_t take(struct inbox *from, int *slept, _Atomic int64_t *current) {
    for (;;) {
        uint32_t posted = atomic_load(&from->posted), taken = atomic_load(&from->taken);
        int64_t sent = atomic_load(&from->sent[taken % RING]);
        if (!sent) {
            *slept = 1;
            futex_wait(&from->posted, posted, NULL);
            continue;
        }
        if (current) atomic_store(current, sent);
        if (atomic_compare_exchange_strong(&from->taken, &taken, taken + 1)) {
            atomic_store(&from->sent[taken % RING], 0);
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

static void stop(int status, const char *what, const struct member *which) {
    fprintf(stderr, "ktasks: process %d of task %s %s\n", which->number + 1, tasks[which->task].name, what);
    end_all();
    exit(status);
}

static void check_errors(void) {
    for (int i = 0; i < member_count; i++) {
        int error = atomic_load(&members[i].error);
        if (!error) continue;
        if (atomic_load(&members[i].ready))
            stop(1, error == EOVERFLOW ? "has or gives more wake-ups than are kept: 4096 at once, 16384 in all" : "could not fork",
                 &members[i]);
        fprintf(stderr, "ktasks: the kernel refused the policy %s: %s\n", tasks[members[i].task].policy_text, strerror(error));
        end_all();
        exit(3);
    }
}

static void wait_until_ready(void) {
    int64_t until = now_ns() + (int64_t)GRACE_S * 1000000000;
    for (int i = 0; i < member_count; i++)
        while (!atomic_load(&members[i].ready)) {
            check_errors();
            if (now_ns() > until) stop(124, "did not get to run", &members[i]);
            usleep(1000);
        }
}

/* True if it does what was begun in the time. */
static int is_due(const struct member *which) {
    const struct inbox *own = &inboxes[which->task];
    if (tasks[which->task].step->kind == WAIT) {
        int64_t sent = atomic_load(&own->sent[atomic_load(&own->taken) % RING]);
        if (sent && sent < atomic_load(end)) return 1;
    }
    return atomic_load(&which->current) < atomic_load(end);
}

static void wait_for_the_last(void) {
    int64_t until = now_ns() + (int64_t)GRACE_S * 1000000000;
    for (int i = 0; i < member_count; i++)
        while (is_due(&members[i])) {
            check_errors();
            if (now_ns() > until) stop(124, "did not end what it had begun within 20 s", &members[i]);
            usleep(1000);
        }
    check_errors();
}

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

static void start_all(void) {
    struct member *mine = members;
    for (int t = 0; t < task_count; t++)
        for (int i = 0; i < tasks[t].count; i++, mine++) {
            int kind = tasks[t].step->kind;
            char name[16];
            mine->task = t, mine->number = i;
            atomic_store(&mine->current, kind == PERIOD ? 0 : LLONG_MAX);
            mine->room = kind == PERIOD ? (uint64_t)(time_ms * 1000000 / tasks[t].step->value) + 2 : kind == WAIT ? RUNS : 0;
            mine->run = shared_memory("ktasks", mine->room * sizeof *mine->run);
            pid_t child = fork();
            if (child < 0) stop(1, "could not be made", mine);
            if (child) {
                mine->pid = child; /* the child's own copy is the same memory */
                continue;
            }
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            snprintf(name, sizeof name, "%s %d", tasks[t].name, i + 1);
            prctl(PR_SET_NAME, name);
            run_member(mine);
        }
}

/* Points of pi that this CPU calculates in a millisecond, undisturbed. */
static long long own_speed(void) {
    enum { POINTS = 2000, TRIES = 5 };
    uint64_t state = pi_seed(0), sink = 0;
    int64_t least = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        int64_t before = now_ns();
        sink += pi_points(&state, POINTS);
        int64_t took = now_ns() - before;
        if (took < least) least = took;
    }
    return sink ? POINTS * 1000000LL / (least + 1) : 0;
}

static void check_speed(void) {
    long long own = own_speed();
    if (own * 4 >= speed) return;
    fprintf(stderr, "ktasks: a CPU calculates %.1f points of pi in a microsecond, not %.1f: run 1ms would take %lld ms. Give speed = %.1f\n",
            (double)own / 1e3, (double)speed / 1e3, speed / (own + 1), (double)own / 1e3);
    exit(2);
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

int main(int count, char **words) {
    read_words(count, words);
    members = shared_memory("ktasks", (size_t)member_count * sizeof *members);
    inboxes = shared_memory("ktasks", (size_t)task_count * sizeof *inboxes);
    locks = shared_memory("ktasks", LOCKS * sizeof *locks);
    let_go = shared_memory("ktasks", sizeof *let_go);
    begin = shared_memory("ktasks", 2 * sizeof *begin);
    end = begin + 1;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct policy above = {.size = 48, .policy = FIFO, .priority = 98, .flags = RESET_ON_FORK};
    int raised = policy_set(&above) == 0;
    check_speed();
    fflush(stdout);
    start_all();
    wait_until_ready();

    MARK_CLOCK();
    int64_t clock = now_ns();
    atomic_store(begin, clock + 200000000);
    atomic_store(end, clock + 200000000 + time_ms * 1000000);
    atomic_store(let_go, 1);
    for (int i = 0; i < member_count; i++) futex_wake(let_go);
    sleep_until(atomic_load(begin) - 20000000); /* what reading the accounts takes is not measured */
    for (int i = 0; i < member_count; i++) read_accounts(members[i].pid, &members[i].before);
    sleep_until(atomic_load(begin));
    for (int i = 0; i < member_count; i++) members[i].points_before = atomic_load(&members[i].points);
    sleep_until(atomic_load(end));
    for (int i = 0; i < member_count; i++) members[i].points_after = atomic_load(&members[i].points);
    wait_for_the_last();
    for (int i = 0; i < member_count; i++) read_accounts(members[i].pid, &members[i].after);
    end_all();

    printf("{\"ktasks\":1,\"time_ms\":%lld,\"controller_policy\":\"%s\",\"tasks\":[", time_ms, raised ? "fifo:98" : "other");
    for (int t = 0; t < task_count; t++) put_task(t);
    printf("],\n \"clock\":%lld,\"slowest\":[", (long long)clock);
    put_slowest();
    puts("]}");
    return fflush(stdout) ? 1 : 0;
}
