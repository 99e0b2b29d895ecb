/* What a guest finds of its CPU under KVM, a line each: counts and yes (1) or no (0), and nanoseconds of single operations. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void read_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
}

static void identify(void) {
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
}

static void measure(const char *name, void (*operation)(void)) {
    double began = now(), passed;
    long count = 0;
    do {
        for (int i = 0; i < 20; i++)
            operation();
        count += 20;
    } while ((passed = now() - began) < 2e8);
    printf("%s %.0f\n", name, passed / count);
}

/* Errno of opening a counter, 0 where there is one. */
static int counter(int type, long which) {
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = which};
    int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    return fd < 0 ? errno : (close(fd), 0);
}

static void choose_clock(const char *name) {
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "w");
    if (file != NULL) {
        fputs(name, file);
        fclose(file);
    }
}

static double stolen(void) {
    char line[200];
    long long steal = -1;
    FILE *file = fopen("/proc/stat", "r");
    if (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "cpu %*s %*s %*s %*s %*s %*s %*s %lld", &steal);
    fclose(file);
    return steal / (double)sysconf(_SC_CLK_TCK);
}

/* Seconds that were stolen while as many processes as `busy` kept CPUs busy for some seconds. */
static double stolen_from(int busy) {
    pid_t others[64];
    double before = stolen(), end = now() + 4e9;
    for (int i = 1; i < busy; i++)
        if ((others[i] = fork()) == 0)
            for (;;)
                ;
    while (now() < end)
        ;
    for (int i = 1; i < busy; i++)
        kill(others[i], SIGKILL);
    return stolen() - before;
}

int main(void) {
    unsigned a, b, c, d;
    char hypervisor[13] = "";
    __cpuid(0x40000000, a, b, c, d);
    memcpy(hypervisor, &b, 4), memcpy(hypervisor + 4, &c, 4), memcpy(hypervisor + 8, &d, 4);
    printf("is-kvm %d\n", strcmp(hypervisor, "KVMKVMKVM") == 0);
    __cpuid(0x40000001, a, b, c, d);
    printf("steal-told %u\n", a >> 5 & 1);
    printf("cpuid-faulting %d\n", syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1) == 0);
    printf("counter-cycles-errno %d\n", counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES));
    printf("counter-task-clock-errno %d\n", counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK));
    measure("ns-cpuid", identify);
    const char *clocks[] = {"tsc", "kvm-clock"};
    for (int i = 0; i < 2; i++) {
        choose_clock(clocks[i]);
        printf("%s ", clocks[i]);
        measure("ns-clock", read_clock);
    }
    printf("stolen %.2f\n", stolen_from(sysconf(_SC_NPROCESSORS_ONLN)));
    return 0;
}
