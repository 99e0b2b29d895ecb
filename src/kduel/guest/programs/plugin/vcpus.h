/* Several vCPUs in one thread of QEMU (icount): which one runs, and the end of its turn.
 *
 * That takes two things of QEMU's own, which it exports unless it was built otherwise: which vCPU runs (QEMU 9 and 10 pass
 * callbacks the number of the vCPU that translated the code), and ending a vCPU's turn (before 8.1 one that neither halts nor
 * pauses has all the time that there is).
 */
#ifndef KDUEL_VCPUS_H
#define KDUEL_VCPUS_H

#include "tables.h"

#include <dlfcn.h>
#include <unistd.h>

enum { CPUS = 16 };

static int vcpus;
static void *(*get_cpu)(int);
static void (*end_turn)(void *);
static void (*guard_halt)(void);

/* Of this thread, in which all vCPUs run. */
static inline void *running(void) {
    static void **here;
    if (!here) here = need(dlsym(RTLD_DEFAULT, "current_cpu"));
    return *here;
}
static inline int running_number(void) {
    static void *known[CPUS], *last;
    static int number;
    void *now = running();
    if (now == last) return number;
    for (int i = 0; i < vcpus; i++) {
        if (!known[i]) known[i] = get_cpu(i);
        if (known[i] == now) {
            last = now;
            return number = i;
        }
    }
    fprintf(stderr, "kduel: a vCPU runs that QEMU does not list\n");
    abort();
}

/* What QEMU exports, or says so. */
static void *exported(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) fprintf(stderr, "kduel: this QEMU does not export %s, which several exact vCPUs take\n", name);
    return found;
}

/* False where QEMU lacks something, which is then said. */
static bool find_vcpus(const qemu_info_t *info) {
    vcpus = info->system.smp_vcpus;
    guard_halt = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "kduel_guard_halt");
    get_cpu = (void *(*)(int))(uintptr_t)exported("qemu_get_cpu");
    end_turn = (void (*)(void *))(uintptr_t)exported("cpu_exit");
    if (!get_cpu || !end_turn || !exported("current_cpu")) return false;
    if (info->system_emulation && vcpus >= 2 && vcpus <= CPUS && !strcmp(info->target_name, "x86_64")) return true;
    fprintf(stderr, "kduel: needs a whole machine of x86_64 with 2 to %d vCPUs\n", CPUS);
    return false;
}

#endif
