/* Keeps QEMU's main loop from reading the virtual clock while the vCPU is between halting and accounting. Preloaded.
 *
 * The fault that it avoids (QEMU 7.2 to 10, -icount sleep=off): a vCPU that executes `hlt` is marked as halted at once,
 * and what it executed before is added to the instruction count a moment later. Where the main loop wakes up in
 * between, it finds all vCPUs idle and moves the virtual clock on to the next timer, by a distance that it computed
 * from the old count. The instructions that are then added come on top: the clock has slipped by as many.
 * A main loop that is woken often (a monitor that is polled, a process that is stopped and continued) meets that
 * moment now and then.
 *
 * How: the counting plug-in says when a vCPU is about to halt (guard_halt). From then until the vCPU has accounted, which
 * is when it releases QEMU's big lock or waits on it, the main thread does not leave ppoll; and it is not halted while
 * the main thread is outside of ppoll. Nobody waits longer than LONGEST: a thread that waits for the other in
 * another way is let go, and the slip is possible again, no more.
 *
 * It also keeps a vCPU's turn from ending at PAUSE, where the plug-in `turns` says that the turn is not over: QEMU leaves the
 * loop in which it executes the vCPU by a long jump, and is sent back into that loop.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { LONGEST_MS = 200 };
typedef void (*jump)(struct __jmp_buf_tag *, int) __attribute__((noreturn));

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool has_turn;

static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_unlock)(pthread_mutex_t *);
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

/* Of several versions of a function the newest, which is what programs are linked to. */
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }
static void *next_condition(const char *name) {
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2"); /* x86_64: there is an older one */
    return found ? found : next(name);
}

/* Other libraries' constructors call these functions before ours may have run. */
static void find(void) {
    if (real_timedwait) return;
    real_ppoll = next("ppoll");
    real_unlock = next("pthread_mutex_unlock");
    real_wait = next_condition("pthread_cond_wait");
    real_timedwait = next_condition("pthread_cond_timedwait");
}

static inline bool is_main_thread(void) { return syscall(SYS_gettid) == getpid(); }

static void take_turn(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LONGEST_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    has_turn = pthread_mutex_timedlock(&turn, &until) == 0;
}

static inline void give_turn(void) {
    if (!has_turn) return;
    has_turn = false;
    real_unlock(&turn);
}

/* Called in the vCPU's thread, before it halts. */
EXPORT void kduel_guard_halt(void) {
    if (!has_turn) take_turn();
}

EXPORT int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    find();
    if (!is_main_thread()) return real_ppoll(files, count, timeout, mask);
    give_turn();
    int found = real_ppoll(files, count, timeout, mask);
    take_turn();
    return found;
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    find();
    int result = real_unlock(mutex);
    if (has_turn && !is_main_thread()) give_turn();
    return result;
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    find();
    if (!is_main_thread()) give_turn();
    return real_wait(condition, mutex);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    find();
    if (!is_main_thread()) give_turn();
    return real_timedwait(condition, mutex, until);
}

static _Thread_local void *pausing;

/* Called in the vCPU's thread, before it executes PAUSE; the vCPU is to go on. */
EXPORT void kduel_guard_pausing(void *vcpu) { pausing = vcpu; }

static void jump_unless_pausing(const char *name, jump *real, struct __jmp_buf_tag *to, int value) {
    static void (*go_on)(void *);
    void *vcpu = pausing;
    if (!*real) *real = (jump)next(name);
    if (vcpu) {
        pausing = NULL;
        if (!go_on) go_on = dlsym(RTLD_DEFAULT, "cpu_loop_exit_noexc");
        go_on(vcpu);
    }
    (*real)(to, value);
}

EXPORT void __longjmp_chk(struct __jmp_buf_tag *to, int value) {
    static jump real;
    jump_unless_pausing("__longjmp_chk", &real, to, value);
    __builtin_unreachable();
}

EXPORT void siglongjmp(sigjmp_buf to, int value) {
    static jump real;
    jump_unless_pausing("siglongjmp", &real, to, value);
    __builtin_unreachable();
}
