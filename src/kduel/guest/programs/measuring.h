/* Measuring an operation: call by call on a machine whose clock counts instructions, under conditions, or in batches, by the clock. */
#ifndef KDUEL_MEASURING_H
#define KDUEL_MEASURING_H

#include "apart.h"
#include "randomness.h"

#include <math.h>
#include <sys/resource.h>

#ifndef FIRST
#define FIRST operations /* the operation that is region 1 of the plug-in */
#endif

enum { SAMPLES = 20000, EMPTIES = 200, PER_CONDITION = 5 /* under several conditions, each needs so many times fewer calls */ };

static double samples[SAMPLES], empty_samples[SAMPLES];

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
    for (long i = 0; i < count; i++) {
        double value = samples[i] * scale;
        if (i) putchar(',');
        if (value == (double)(long)value) printf("%ld", (long)value); /* a tenth of the work, for the emulator */
        else printf("%.12g", value);
    }
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

static void carry_out_before(const char *name) {
    const struct operation *what = operation_called(name);
    if (what->open) what->open(what->argument);
    measure_each(what, BEFORE_CALLS, samples);
    if (what->close) what->close();
}

enum { ROUNDS_MAX = 6 };
static const double settled_ticks = 24e6; /* six timer interrupts of 4 ms: by then the scheduler has formed its opinion */

/* Rounds, unmeasured, until two in a row have the same median and mean; where tasks are woken again and again, for some
 * timer interrupts at least. Gives the number of rounds, negative where they never agreed. */
static int warm_up(const struct operation *what, long count) {
    double median = -1, mean = -1, sum, least = what->wakes > NEW_TASKS ? settled_ticks * (what->slow ? 1.5 : 1) : 0;
    uint64_t begin = ticks();
    for (int round = 1;; round++) {
        measure_each(what, count, samples);
        sum = 0;
        for (long i = 0; i < count; i++) sum += samples[i];
        qsort(samples, (size_t)count, sizeof *samples, by_value);
        double now = quantile(samples, count, .5), now_mean = sum / (double)count;
        int same = fabs(now - median) <= .001 * now && fabs(now_mean - mean) <= .01 * now_mean;
        double took = (double)(ticks() - begin);
        if (same && took >= least) return round;
        if (round >= ROUNDS_MAX && took >= 2 * least) return -round;
        median = now, mean = now_mean;
    }
}

/* Counts under one condition, or in one situation, in this process. */
static void exact(const struct operation *what, long count, const struct condition *c, const char *situation) {
    long calls = count * c->times, empties;
    if (calls > SAMPLES) calls = SAMPLES;
    empties = calls < EMPTIES ? calls : EMPTIES;
    if (*situation) enter_situation(situation);
    if (c->before) carry_out_before(befores[c->before - 1]);
    spin(c->phase); /* before there is a partner: a task that runs alone loses its turn to whom it wakes for long afterwards */
    if (what->open) what->open(what->argument);
    measure_each(operations, empties, empty_samples);
    qsort(empty_samples, (size_t)empties, sizeof *empty_samples, by_value);
    int rounds = warm_up(what, count < calls ? count : calls);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    MARK_RESET();
    for (const struct operation *o = FIRST; o <= what && !*situation; o++) MARK_SELECT();
    measure_each(what, calls, samples);
    MARK_RESET();
    getrusage(RUSAGE_SELF, &after);
    printf("{\"operation\":\"%s\",\"mode\":\"exact\",\"unit\":\"instructions\",\"counter\":\"%s\",\"count\":%ld", what->name,
           counter, calls);
    printf(",\"condition\":{\"number\":%u,\"phase\":%ld,\"times\":%ld,\"environment\":%ld,\"layout\":%ld,\"held\":%ld,\"before\":\"%s\"}",
           c->number, c->phase, c->times, c->environment, c->layout, c->held, c->before ? befores[c->before - 1] : "");
    printf(",\"situation\":\"%s\",\"rounds\":%d,\"steady\":%s", situation, abs(rounds), rounds > 0 ? "true" : "false");
    printf(",\"sleeps\":%ld,\"preemptions\":%ld,\"faults\":%ld", after.ru_nvcsw - before.ru_nvcsw,
           after.ru_nivcsw - before.ru_nivcsw, after.ru_minflt - before.ru_minflt);
    print_number("region", *situation ? 0 : (double)(what - FIRST + 1));
    print_number("resolution", per_tick());
    print_result(what, quantile(empty_samples, empties, .5), calls, per_tick());
    if (what->close) what->close();
    end_children();
}

static void exact_under_conditions(const struct operation *what, long count, unsigned conditions, uint64_t seed) {
#ifdef AGAIN
    char *const *again = AGAIN; /* what a program says to itself */
#else
    static char *const again[] = {"--exact", NULL};
#endif
    for (unsigned i = 0; i < conditions; i++) {
        struct condition c = condition_of(seed, i, BEFORES);
        int status = run_apart(again, what, count, &c, "");
        if (status) exit(status);
    }
    struct condition plain = condition_of(seed, 0, BEFORES);
    for (int i = 0; i < SITUATIONS; i++) {
        if (!what->situated || (what->wakes != PROCESSES && !strcmp(situations[i], "session"))) continue;
        int status = run_apart(again, what, count, &plain, situations[i]);
        if (status && status != SITUATION_MISSING) exit(status);
    }
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

#endif
