/* What conditions that must not matter have in common: numbers drawn from a seed, and where a process has its memory. */
#ifndef KDUEL_DRAWN_H
#define KDUEL_DRAWN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { ENVIRONMENT_MAX = 4000, LAYOUT_MAX = 1 << 18 };

/* splitmix64 (Steele, Lea and Flood, 2014): the n-th number of a seed. */
static uint64_t drawn(uint64_t seed, uint64_t n) {
    uint64_t x = seed + (n + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* For the program that this process executes next: so many bytes more of environment, and mappings so many pages lower. */
static int move_addresses(long environment, long layout) {
    static char padding[ENVIRONMENT_MAX + 1];
    struct rlimit limit;
    memset(padding, 'x', (size_t)environment);
    if (environment) setenv("KBENCH_PADDING", padding, 1);
    if (!layout) return 0;
    /* The kernel leaves at least 128 MiB for the stack, and mappings begin below. */
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = ((rlim_t)128 << 20) + (rlim_t)layout * 4096;
    if (limit.rlim_max < limit.rlim_cur) limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_STACK, &limit);
}

#endif
