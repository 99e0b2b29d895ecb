/* What our programs share: the clock, and a work that is the same on every machine. */
#ifndef KDUEL_WORK_H
#define KDUEL_WORK_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* On 32-bit machines a libc with 64-bit times needs the newer call. */
#if defined(SYS_futex_time64) && __SIZEOF_LONG__ == 4
#define WORK_FUTEX SYS_futex_time64
#else
#define WORK_FUTEX SYS_futex
#endif

/* Known to QEMU's plug-in `turns` alone: there the clock is read next. */
#if defined __x86_64__ || defined __i386__
#define MARK_CLOCK() __asm__ volatile("xchg %%di, %%di" ::: "memory")
#else
#define MARK_CLOCK() (void)0
#endif

/* Sleep while the word has that value, at most so long (NULL: for ever). Returns early on any signal. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t value, const struct timespec *most) {
    syscall(WORK_FUTEX, word, FUTEX_WAIT, value, most, NULL, 0);
}

static inline void futex_wake(_Atomic uint32_t *word) { syscall(WORK_FUTEX, word, FUTEX_WAKE, 1, NULL, NULL, 0); }

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Points of a fixed pseudo-random sequence, counted inside the quarter circle: pi by brute force, the same always. */
static inline uint64_t pi_points(uint64_t *state, long long count) {
    uint64_t inside = 0, s = *state;
    for (long long i = 0; i < count; i++) {
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        double x = (double)(uint32_t)s / 4294967296.0, y = (double)(uint32_t)(s >> 32) / 4294967296.0;
        inside += x * x + y * y < 1.0;
    }
    *state = s;
    return inside;
}

/* The sequence's beginning for one of many: never 0, which would stay 0. */
static inline uint64_t pi_seed(int index) { return 0x9E3779B97F4A7C15u * (uint64_t)(index + 1); }

#endif
