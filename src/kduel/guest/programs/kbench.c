/* kbench: what single kernel operations cost.
 *
 *   kbench [--exact] [--count N] [--time SECONDS] [--cpu N] OPERATION
 *   kbench --list
 *
 * One line of JSON on stdout. In exact mode (on a machine whose clock counts instructions) every operation is
 * measured alone, between two marker instructions that a QEMU plug-in knows. Else operations are repeated in batches
 * that are long enough for the clock to err by less than 1 %. An empty operation is measured alike and told.
 */
#define _GNU_SOURCE
#include "operations.h"

#include <sched.h>
#include <time.h>

enum { SAMPLES = 20000 };

struct operation {
    const char *name, *about;
    void (*open)(long);
    void (*run)(void);
    void (*close)(void);
    void (*rewind)(long);
    long argument, batch, count; /* `count`: how often in exact mode */
    int hops;
};

#define RING(n, k) .open = open_ring, .run = ring_round, .close = close_pair, .argument = ((long)(n) << 16) | (k), .hops = n

static const struct operation operations[] = {
    {"empty", "nothing: what measuring costs", .run = nothing},
    {"null-call", "getppid", .run = null_call},
    {"read", "one byte of /dev/zero", .open = open_zero, .run = read_one},
    {"write", "one byte to /dev/null", .open = open_null, .run = write_one},
    {"stat", "stat of a file", .open = open_file, .run = stat_it, .close = close_file},
    {"fstat", "fstat of an open file", .open = open_file, .run = fstat_it, .close = close_file},
    {"open-close", "open and close of a file", .open = open_file, .run = open_close, .close = close_file},
    {"create-delete", "create, close and delete an empty file", .run = create_delete, .count = 200},
    {"select-10", "select on 10 idle pipes", .open = open_many, .run = select_many, .argument = 10},
    {"select-100", "select on 100 idle pipes", .open = open_many, .run = select_many, .argument = 100, .count = 200},
    {"poll-10", "poll on 10 idle pipes", .open = open_many, .run = poll_many, .argument = 10},
    {"poll-100", "poll on 100 idle pipes", .open = open_many, .run = poll_many, .argument = 100, .count = 200},
    {"epoll-10", "epoll_wait, 10 ready pipes", .open = open_epoll, .run = epoll_many, .argument = 10},
    {"epoll-100", "epoll_wait, 100 ready pipes", .open = open_epoll, .run = epoll_many, .argument = 100, .count = 200},
    {"signal-install", "sigaction", .run = signal_install},
    {"signal-deliver", "kill oneself and return from the handler", .open = open_signal, .run = signal_deliver},
    {"fault-protection", "a write to a read-only page, caught", .open = open_protection, .run = protection_fault},
    {"pipe", "round trip of a byte through two pipes", .open = open_pipe, .run = round_trip, .close = close_pair},
    {"unix", "round trip through a UNIX stream socket", .open = open_unix, .run = round_trip, .close = close_pair},
    {"tcp", "round trip through TCP on lo", .open = open_tcp, .run = round_trip, .close = close_pair, .count = 200},
    {"udp", "round trip through UDP on lo", .open = open_udp, .run = round_trip, .close = close_pair, .count = 200},
    {"switch-2-0k", "a hop in a ring of 2 processes", RING(2, 0)},
    {"switch-2-16k", "a hop in a ring of 2 that use 16 KiB each", RING(2, 16)},
    {"switch-8-0k", "a hop in a ring of 8 processes", RING(8, 0), .count = 200},
    {"switch-8-16k", "a hop in a ring of 8 that use 16 KiB each", RING(8, 16), .count = 200},
    {"switch-16-64k", "a hop in a ring of 16 that use 64 KiB each", RING(16, 64), .count = 60},
    {"futex", "round trip between two threads by futex", .open = open_futex, .run = futex_round},
    {"fork-exit", "fork, exit, wait", .run = fork_exit, .count = 60},
    {"fork-exec", "fork, exec of a small static program, wait", .run = fork_exec, .count = 40},
    {"shell", "the same by /bin/sh -c", .run = shell, .count = 20},
    {"clone", "create and join a thread", .run = clone_join, .count = 200},
    {"mmap", "mmap and munmap of 64 KiB, untouched", .open = open_map, .run = map_unmap, .argument = 64},
    {"fault-anonymous", "first write to a page of anonymous memory", .open = open_anonymous, .run = fault_write,
     .close = close_area, .rewind = rewind_area, .batch = FAULTS, .count = FAULTS},
    {"fault-file", "first read of a mapped, cached file's page", .open = open_mapped, .run = fault_read,
     .close = close_mapped, .rewind = rewind_area, .batch = FAULTS, .count = FAULTS},
    {"timer", "arm a timerfd for now, read that it fired", .open = open_timer, .run = timer_fire},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static double samples[SAMPLES], empty_samples[SAMPLES];

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* In exact mode: a counter that goes up by one per instruction where the machine is set up so, and the markers. */
#if defined __x86_64__ || defined __i386__
static const char *const counter = "tsc";
static inline uint64_t ticks(void) { return __builtin_ia32_rdtsc(); }
static double per_tick(void) { return 1; }
#define MARK_BEGIN() __asm__ volatile("xchg %%bx, %%bx" ::: "memory")
#define MARK_END() __asm__ volatile("xchg %%cx, %%cx" ::: "memory")
#define MARK_SELECT() __asm__ volatile("xchg %%dx, %%dx" ::: "memory")
#define MARK_RESET() __asm__ volatile("xchg %%si, %%si" ::: "memory")
#elif defined __aarch64__
static const char *const counter = "cntvct";
static inline uint64_t ticks(void) {
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now)::"memory");
    return now;
}
static double per_tick(void) {
    uint64_t hertz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
    return 1e9 / (double)hertz;
}
#define MARK_BEGIN() __asm__ volatile("hint #42" ::: "memory")
#define MARK_END() __asm__ volatile("hint #43" ::: "memory")
#define MARK_SELECT() __asm__ volatile("hint #44" ::: "memory")
#define MARK_RESET() __asm__ volatile("hint #45" ::: "memory")
#else
static const char *const counter = "clock";
static inline uint64_t ticks(void) { return nanoseconds(); }
static double per_tick(void) { return 1; }
#define MARK_BEGIN() __asm__ volatile("" ::: "memory")
#define MARK_END() __asm__ volatile("" ::: "memory")
#define MARK_SELECT() MARK_BEGIN()
#define MARK_RESET() MARK_BEGIN()
#endif

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double quantile(const double *sorted, long count, double share) {
    double at = share * (double)(count - 1);
    long low = (long)at;
    return low + 1 < count ? sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low]) : sorted[low];
}

/* `count` calls, each measured alone, in ticks. */
__attribute__((noinline)) static void measure_each(const struct operation *what, long count, double *into) {
    void (*volatile run)(void) = what->run;
    for (long i = 0; i < count; i++) {
        if (what->rewind && i % what->batch == 0) what->rewind(count - i);
        void (*call)(void) = run;
        MARK_BEGIN();
        uint64_t begin = ticks();
        call();
        uint64_t end = ticks();
        MARK_END();
        into[i] = (double)(end - begin);
    }
}

/* `calls` calls as one batch, in ns. */
__attribute__((noinline)) static double measure_batch(const struct operation *what, long calls) {
    void (*volatile run)(void) = what->run;
    void (*call)(void) = run;
    if (what->rewind) what->rewind(calls);
    uint64_t begin = nanoseconds();
    for (long i = 0; i < calls; i++) call();
    return (double)(nanoseconds() - begin);
}

/* The smallest step of the clock between two reads that differ, or one read's cost where that is larger. */
static double clock_error(void) {
    double worst = 1;
    for (int i = 0; i < 200; i++) {
        uint64_t first = nanoseconds(), next;
        do next = nanoseconds();
        while (next == first);
        samples[i] = (double)(next - first);
    }
    qsort(samples, 200, sizeof *samples, by_value);
    if (samples[100] > worst) worst = samples[100];
    return worst;
}

/* A batch so long that an error of the clock at both ends is below half a per cent, and hardly anything happens
 * between batches; or the largest that can be. The best of three tells, so that a slow first call misleads nobody. */
static long batch_size(const struct operation *what, double error) {
    long calls = 1;
    double enough = 400 * error > 100e3 ? 400 * error : 100e3;
    for (;;) {
        if (what->batch && calls >= what->batch) return what->batch;
        double took = measure_batch(what, calls);
        for (int i = 0; i < 2; i++) {
            double again = measure_batch(what, calls);
            if (again < took) took = again;
        }
        if (took >= enough) return calls;
        double wanted = took > 0 ? 1.2 * enough / took * (double)calls : (double)calls * 10;
        calls = wanted > (double)calls * 10 ? calls * 10 : (long)wanted + 1;
    }
}

static void print_number(const char *name, double value) { printf(",\"%s\":%.12g", name, value); }

static void print_result(const struct operation *what, double empty, long count, double scale) {
    double sum = 0;
    int hops = what->hops ? what->hops : 1;
    for (long i = 0; i < count; i++) sum += samples[i];
    printf(",\"samples\":[");
    for (long i = 0; i < count; i++) printf("%s%.12g", i ? "," : "", samples[i] * scale);
    printf("]");
    qsort(samples, (size_t)count, sizeof *samples, by_value);
    print_number("empty", empty * scale);
    print_number("hops", hops);
    print_number("median", (quantile(samples, count, .5) - empty) * scale / hops);
    print_number("mean", (sum / (double)count - empty) * scale / hops);
    print_number("min", (samples[0] - empty) * scale / hops);
    print_number("max", (samples[count - 1] - empty) * scale / hops);
    printf("}\n");
}

static void exact(const struct operation *what, long count) {
    measure_each(operations, count, empty_samples);
    qsort(empty_samples, (size_t)count, sizeof *empty_samples, by_value);
    measure_each(what, count, samples); /* the first round warms up, unseen by the plug-in */
    MARK_RESET();
    for (const struct operation *o = operations; o <= what; o++) MARK_SELECT();
    measure_each(what, count, samples);
    MARK_RESET();
    printf("{\"operation\":\"%s\",\"mode\":\"exact\",\"unit\":\"instructions\",\"counter\":\"%s\",\"count\":%ld", what->name,
           counter, count);
    print_number("region", (double)(what - operations + 1));
    print_number("resolution", per_tick());
    print_result(what, quantile(empty_samples, count, .5), count, per_tick());
}

static void timed(const struct operation *what, double seconds) {
    double error = clock_error(), empty, begin;
    long count = 0, calls = batch_size(operations, error);
    for (int i = 0; i < 101; i++) empty_samples[i] = measure_batch(operations, calls) / (double)calls;
    qsort(empty_samples, 101, sizeof *empty_samples, by_value);
    empty = empty_samples[50];
    calls = batch_size(what, error);
    measure_batch(what, calls);
    begin = (double)nanoseconds();
    do samples[count++] = measure_batch(what, calls) / (double)calls;
    while (count < SAMPLES && (count < 5 || (double)nanoseconds() - begin < seconds * 1e9));
    printf("{\"operation\":\"%s\",\"mode\":\"time\",\"unit\":\"ns\",\"count\":%ld", what->name, count);
    print_number("batch", (double)calls);
    print_number("clock_error", error);
    print_number("clock_error_pct", 200 * error / (samples[count / 2] * (double)calls));
    print_result(what, empty, count, 1);
}

static double number(const char *text, double low, double high) {
    char *end;
    double value = text ? strtod(text, &end) : -1;
    if (!text || end == text || *end || !(value >= low && value <= high)) {
        fprintf(stderr, "kbench: %s is not a number from %g to %g\n", text ? text : "(nothing)", low, high);
        exit(2);
    }
    return value;
}

int main(int count, char **words) {
    int is_exact = 0, cpu = -1;
    long times = 0;
    double seconds = 1;
    if (count == 2 && !strcmp(words[1], "--nothing")) _exit(0);
    if (count == 2 && !strcmp(words[1], "--list")) {
        for (int i = 0; i < OPERATIONS; i++) printf("%s\t%s\n", operations[i].name, operations[i].about);
        return 0;
    }
    int at = 1;
    for (; at < count && words[at][0] == '-'; at++) {
        if (!strcmp(words[at], "--exact")) is_exact = 1;
        else if (!strcmp(words[at], "--count")) times = (long)number(words[++at], 1, SAMPLES);
        else if (!strcmp(words[at], "--time")) seconds = number(words[++at], 0, 3600);
        else if (!strcmp(words[at], "--cpu")) cpu = (int)number(words[++at], 0, CPU_SETSIZE - 1);
        else break;
    }
    const struct operation *what = NULL;
    for (int i = 0; i < OPERATIONS && at < count; i++)
        if (!strcmp(operations[i].name, words[at])) what = operations + i;
    if (!what || at + 1 != count) {
        fprintf(stderr, "usage: kbench [--exact] [--count N] [--time SECONDS] [--cpu N] OPERATION; kbench --list\n");
        return 2;
    }
    if (readlink("/proc/self/exe", own_path, sizeof own_path - 1) < 0) snprintf(own_path, sizeof own_path, "%s", words[0]);
    if (cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        need(sched_setaffinity(0, sizeof set, &set), "--cpu");
    }
    memset(samples, 0, sizeof samples); /* no page of these faults in while measuring */
    memset(empty_samples, 0, sizeof empty_samples);
    if (what->open) what->open(what->argument);
    if (is_exact) exact(what, times ? times : what->count ? what->count : 1000);
    else timed(what, seconds);
    if (what->close) what->close();
    end_children();
    return 0;
}
