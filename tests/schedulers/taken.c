/* Two wakers and two takers of an inbox of ktasks. The first waker is held where it has its ticket and has stored nothing,
 * until the second one's wake-up has been heard, and the taker sleeps again. Prints how many have taken when nobody moves. */
#define _GNU_SOURCE
#include "work.h"

static int64_t held_now_ns(void);
#define now_ns held_now_ns
#include "ktasks_work.h"
#undef now_ns

#include "distribution.h"

#include <sched.h>

static struct {
    struct inbox inbox;
    atomic_int hold, held, taken;
} *all;
static int is_first;

static int64_t held_now_ns(void) {
    if (is_first) atomic_store(&all->held, 1);
    while (is_first && atomic_load(&all->hold)) sched_yield();
    return now_ns();
}

static pid_t started(void (*what)(void)) {
    pid_t child = fork();
    if (child) return child;
    what();
    _exit(0);
}

static void take_once(void) {
    int slept;
    take(&all->inbox, &slept, NULL);
    atomic_fetch_add(&all->taken, 1);
    for (;;) pause();
}

static void post_once(void) {
    struct member mine = {.pid = 0};
    post(&mine, &all->inbox);
}

static void post_first(void) {
    is_first = 1;
    post_once();
}

/* How often both have gone to sleep; -1 while one is awake. */
static long count_sleeps(const pid_t *takers) {
    long sum = 0;
    for (int i = 0; i < 2; i++) {
        char path[64], text[4096];
        snprintf(path, sizeof path, "/proc/%d/status", (int)takers[i]);
        FILE *file = fopen(path, "r");
        size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
        if (file) fclose(file);
        text[got] = 0;
        const char *count = strstr(text, "\nvoluntary_ctxt_switches:");
        if (!count || !strstr(text, "\nState:\tS")) return -1;
        sum += atol(count + strlen("\nvoluntary_ctxt_switches:"));
    }
    return sum;
}

/* The same once both sleep: two equal readings, since one may be woken between those of a reading. */
static long wait_for_sleep(const pid_t *takers, long more_than) {
    for (long last = -1, sum;; last = sum) {
        sched_yield();
        sum = count_sleeps(takers);
        if (sum > more_than && sum == last) return sum;
    }
}

int main(void) {
    all = shared_memory("taken", sizeof *all);
    pid_t takers[2] = {started(take_once), started(take_once)};
    long slept = wait_for_sleep(takers, 0);
    atomic_store(&all->hold, 1);
    pid_t first = started(post_first);
    while (!atomic_load(&all->held)) sched_yield();
    post_once();
    slept = wait_for_sleep(takers, slept);
    atomic_store(&all->hold, 0);
    waitpid(first, NULL, 0);
    wait_for_sleep(takers, slept);
    printf("%d\n", atomic_load(&all->taken));
    fflush(stdout);
    for (int i = 0; i < 2; i++) kill(takers[i], SIGKILL);
    return 0;
}
