/* The clocks of kbench, and the instructions that mark a region for the counting plug-in. */
#ifndef KDUEL_COUNTER_H
#define KDUEL_COUNTER_H

#include <stdint.h>
#include <time.h>

static inline uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* In exact mode: a counter that goes up by one per instruction where the machine is set up so, and the markers. */
#if defined __x86_64__ || defined __i386__
static const char *const counter = "tsc";
static inline uint64_t ticks(void) { return __builtin_ia32_rdtsc(); }
static inline double per_tick(void) { return 1; }
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
static inline double per_tick(void) {
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
static inline double per_tick(void) { return 1; }
#define MARK_BEGIN() __asm__ volatile("" ::: "memory")
#define MARK_END() __asm__ volatile("" ::: "memory")
#define MARK_SELECT() MARK_BEGIN()
#define MARK_RESET() MARK_BEGIN()
#endif

#endif
