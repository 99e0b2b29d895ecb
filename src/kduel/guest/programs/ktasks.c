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
 *
 * Here is the driver; ktasks.h has what it shares with its processes, ktasks_work.h what they do.
 */
#define _GNU_SOURCE
#include "ktasks_options.h"
#include "ktasks_output.h"
#include "ktasks_work.h"

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
    int64_t clock = now_ns(), marks[2];
    atomic_store(begin, clock + 200000000);
    atomic_store(end, clock + 200000000 + time_ms * 1000000);
    atomic_store(let_go, 1);
    for (int i = 0; i < member_count; i++) futex_wake(let_go);
    sleep_until(atomic_load(begin) - 20000000); /* what reading the accounts takes is not measured */
    for (int i = 0; i < member_count; i++) read_accounts(members[i].pid, &members[i].before);
    sleep_until(atomic_load(begin));
    MARK_CLOCK();
    marks[0] = now_ns();
    for (int i = 0; i < member_count; i++) members[i].points_before = atomic_load(&members[i].points);
    sleep_until(atomic_load(end));
    MARK_CLOCK();
    marks[1] = now_ns();
    for (int i = 0; i < member_count; i++) members[i].points_after = atomic_load(&members[i].points);
    wait_for_the_last();
    for (int i = 0; i < member_count; i++) read_accounts(members[i].pid, &members[i].after);
    end_all();

    printf("{\"ktasks\":1,\"time_ms\":%lld,\"controller_policy\":\"%s\",\"tasks\":[", time_ms, raised ? "fifo:98" : "other");
    for (int t = 0; t < task_count; t++) put_task(t);
    printf("],\n \"marks\":[%lld,%lld,%lld],\"slowest\":[", (long long)clock, (long long)marks[0], (long long)marks[1]);
    put_slowest();
    puts("]}");
    return fflush(stdout) ? 1 : 0;
}
