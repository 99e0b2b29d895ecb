/* What programs of several tasks share: memory of all, and measurements as exact percentiles with a histogram. */
#ifndef KDUEL_DISTRIBUTION_H
#define KDUEL_DISTRIBUTION_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Zeroed memory that a process shares with those it forks, in place: no page is missing later. */
static inline void *shared_memory(const char *program, size_t size) {
    void *got = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (got == MAP_FAILED) {
        fprintf(stderr, "%s: no memory: %s\n", program, strerror(errno));
        exit(1);
    }
    return got;
}

static inline int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Percentile by nearest rank; there is none where fewer than one sample would lie above it. */
static inline void put_percentile(const char *name, const int64_t *sorted, long long count, double share) {
    if (!count || (double)count * (1 - share) < 1 - 1e-9) printf(",\"%s\":null", name);
    else {
        long long rank = (long long)(share * (double)count - 1e-9);
        printf(",\"%s\":%lld", name, (long long)sorted[rank < count ? rank : count - 1]);
    }
}

/* The lower end of a value's bucket: 32 buckets to each doubling, so 3 % wide at most. */
static inline int64_t bucket(int64_t value) {
    int shift = 0;
    while (value >> shift >= 64) shift++;
    return value >> shift << shift;
}

static inline void put_distribution(const char *name, int64_t *samples, long long count) {
    qsort(samples, (size_t)count, sizeof *samples, by_size);
    printf(",\n \"%s_ns\":{\"n\":%lld", name, count);
    if (count) printf(",\"min\":%lld,\"max\":%lld", (long long)samples[0], (long long)samples[count - 1]);
    put_percentile("p50", samples, count, .5);
    put_percentile("p99", samples, count, .99);
    put_percentile("p999", samples, count, .999);
    printf(",\"histogram\":[");
    for (long long i = 0, from = 0; i < count; i++)
        if (i + 1 == count || bucket(samples[i + 1]) != bucket(samples[i])) {
            printf("%s[%lld,%lld]", from ? "," : "", (long long)bucket(samples[i]), i + 1 - from);
            from = i + 1;
        }
    printf("]}");
}

#endif
