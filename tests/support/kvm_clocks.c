/* The only process of a guest that takes turns under KVM: the longest time that passed at once by each of its clocks, in a step of
   five seconds by CLOCK_MONOTONIC, a line each; the TSC's by its rate before the step. */
#include <stdio.h>
#include <sys/reboot.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static const char *names[] = {"monotonic", "raw", "boottime", "realtime", "tsc"};
static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME};
enum { CLOCKS = 4, ALL = 5 };
static double ticks = 1;

static double look(int which) {
    struct timespec t;
    if (which == CLOCKS)
        return __rdtsc() / ticks;
    clock_gettime(clocks[which], &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void find_rate(void) {
    double began = look(0), from = __rdtsc(), now;
    while ((now = look(0)) - began < 0.5)
        ;
    ticks = (__rdtsc() - from) / (now - began);
}

int main(void) {
    double last[ALL], longest[ALL] = {0}, now, began;
    setvbuf(stdout, NULL, _IOLBF, 0);
    find_rate();
    puts("kduel: step 01-a");
    began = look(0);
    for (int i = 0; i < ALL; i++)
        last[i] = look(i);
    while (last[0] - began < 5)
        for (int i = 0; i < ALL; i++) {
            if ((now = look(i)) - last[i] > longest[i])
                longest[i] = now - last[i];
            last[i] = now;
        }
    for (int i = 0; i < ALL; i++)
        printf("longest %s %.3f\n", names[i], longest[i]);
    puts("kduel: step 01-a ended");
    reboot(RB_POWER_OFF);
    return 0;
}
