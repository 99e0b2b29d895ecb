/* kload: N processes, each with the same fixed work, under one scheduling policy; what the kernel accounts for them.
 *
 * The driver creates the processes, waits until each has its policy and stands at a gate, opens the gate, and waits
 * for the last one to finish its work. It stays above its processes (FIFO 99, where it may), and a deadline ends all.
 * Output: one JSON document. `voluntary`, `involuntary`, `user`, `system` and the times of each process are of its
 * work alone (getrusage between gate and end); `life` is all of each process, from fork to exit (wait4).
 *
 * Here is the driver; kload.h has what it shares with its processes, kload_work.h their work.
 */
#define _GNU_SOURCE
#include "kload_options.h"
#include "kload_output.h"
#include "kload_work.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void on_child(int signal) { (void)signal; }

static void make_input(void) {
    char path[4096], *block = malloc((size_t)want.block);
    snprintf(path, sizeof path, "%s/kload.input", want.directory);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || !block) fail(1, "cannot make %s: %s", path, strerror(errno));
    for (long long i = 0; i < want.block; i++) block[i] = (char)(i * 131);
    for (long long at = 0; at < want.size; at += want.block)
        if (write(file, block, (size_t)want.block) != want.block) fail(1, "cannot fill %s: %s", path, strerror(errno));
    if (fsync(file)) fail(1, "cannot write %s: %s", path, strerror(errno));
    close(file);
    free(block);
}

static void make_lanes(void) {
    int count = want.processes - want.processes / 2;
    lanes = calloc((size_t)count, sizeof *lanes);
    for (int i = 0; i < count; i++)
        if (!lanes || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lanes[i]))
            fail(1, "no socket for process %d of %d: %s", i + 1, count, strerror(errno));
}

static void remove_files(void) {
    char path[4096];
    for (int i = 0; i < want.processes; i++)
        for (int j = 0; j < want.outputs; j++) {
            path_of(path, sizeof path, i, j);
            unlink(path);
        }
    snprintf(path, sizeof path, "%s/kload.input", want.directory);
    unlink(path);
}

/* Reaps what has ended; adds up its whole life. Returns how many ended other than by exit 0. */
static int reap(int options, int *left, double life[2], long long switches[2]) {
    int bad = 0, status;
    struct rusage usage;
    while (*left && (wait4(-1, &status, options, &usage)) > 0) {
        --*left;
        if (!WIFEXITED(status) || WEXITSTATUS(status)) bad++;
        life[0] += seconds(usage.ru_utime), life[1] += seconds(usage.ru_stime);
        switches[0] += usage.ru_nvcsw, switches[1] += usage.ru_nivcsw;
    }
    return bad;
}

static void explain_death(void) {
    for (int i = 0; i < want.processes; i++)
        if (shared->slots[i].error)
            fail(3, "process %d: %s: %s", i, shared->slots[i].doing, strerror(shared->slots[i].error));
    fail(1, "a process was killed before it had finished (memory?)");
}

/* Whether all finished; 0 where the deadline came first. */
static int wait_for_all(int64_t until, int *left, double life[2], long long switches[2]) {
    while (!atomic_load(&shared->over)) {
        int64_t remains = until - now_ns();
        if (remains <= 0) return 0;
        struct timespec t = {remains / 1000000000, remains % 1000000000};
        futex_wait(&shared->over, 0, &t);
        if (reap(WNOHANG, left, life, switches)) explain_death();
    }
    return 1;
}

static void wait_until_ready(int ready, int64_t until, int *left, double life[2], long long switches[2]) {
    for (int told = 0; told < want.processes;) {
        char bytes[4096];
        struct pollfd one = {ready, POLLIN, 0};
        int64_t remains = until - now_ns();
        if (remains <= 0) fail(124, "the deadline came while the processes were being made ready");
        int found = poll(&one, 1, (int)(remains / 1000000) + 1);
        if (found > 0) {
            ssize_t got = read(ready, bytes, sizeof bytes);
            if (got > 0) told += (int)got;
        }
        if (reap(WNOHANG, left, life, switches)) explain_death();
    }
}

static void start_processes(int ready, int gate, int leave, const int unused[3]) {
    fflush(stdout);
    for (int i = 0; i < want.processes; i++) {
        pid_t child = fork();
        if (child < 0) fail(1, "process %d of %d could not be made: %s", i + 1, want.processes, strerror(errno));
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing outlives a driver that was killed */
            for (int j = 0; j < 3; j++) close(unused[j]);
            process(i, ready, gate, leave);
        }
        shared->slots[i].pid = child;
    }
}

static void carry_out(struct run *run, int64_t until) {
    int ready[2], gate[2], leave[2];
    if (pipe2(ready, O_CLOEXEC) || pipe2(gate, O_CLOEXEC) || pipe2(leave, O_CLOEXEC))
        fail(1, "no pipe: %s", strerror(errno));
    start_processes(ready[1], gate[0], leave[0], (int[]){ready[0], gate[1], leave[1]});
    run->left = want.processes;
    wait_until_ready(ready[0], until, &run->left, run->life, run->life_switches);
    /* What forks, and the benchmark before, left to the kernel (RCU callbacks, say) is done by an idle CPU. */
    nanosleep(&(struct timespec){.tv_nsec = QUIET_NS}, NULL);
    run->opened = now_ns();
    close(gate[1]);
    run->in_time = wait_for_all(until, &run->left, run->life, run->life_switches);
    run->closed = now_ns();
    run->finished = atomic_load(&shared->finished);
    if (!run->in_time) kill_all();
    close(leave[1]);
    if (reap(0, &run->left, run->life, run->life_switches) && run->in_time) explain_death();
}

int main(int count, char **words) {
    struct run run = {.group = {.user_us = ABSENT, .system_us = ABSENT}};
    read_options(count, words);
    driver = getpid();
    int64_t until = now_ns() + (int64_t)(want.deadline * 1e9);
    size_t room = sizeof *shared + (size_t)want.processes * sizeof(struct slot);
    shared = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (shared == MAP_FAILED) {
        shared = NULL;
        fail(1, "no memory for %d processes", want.processes);
    }
    mlockall(MCL_CURRENT); /* a page that is not there would be fetched below processes that never yield */
    struct sigaction on = {.sa_handler = on_child};
    sigaction(SIGCHLD, &on, NULL);

    if (want.kind == IO || want.kind == MIXED) make_input();
    if (want.kind == MESSAGES) make_lanes();
    run.throttled_before = throttle_lines();
    /* RESET_ON_FORK: the processes begin as OTHER, whatever the driver is. */
    struct policy above = {.size = 48, .policy = FIFO, .priority = 99, .flags = RESET_ON_FORK};
    run.raised = policy_set(&above) == 0;
    if (!run.raised && (want.policy.policy == FIFO || want.policy.policy == RR || want.policy.policy == DEADLINE))
        fail(3, "the driver may not rise above its processes (FIFO 99): run it as root");
    int error = want.cgroup ? cgroup_enter(&run.group, want.cgroup) : 0;
    if (error) fail(1, "cannot make a cgroup in %s: %s", want.cgroup, strerror(error));
    getrusage(RUSAGE_SELF, &run.own_before);
    carry_out(&run, until);
    getrusage(RUSAGE_SELF, &run.own);
    error = want.cgroup ? cgroup_leave(&run.group) : 0;
    if (error) fail(1, "cannot remove the cgroup %s: %s", run.group.own, strerror(error));
    if (want.kind == IO || want.kind == MIXED) remove_files();
    run.throttled_after = throttle_lines();

    print(&run);
    if (fflush(stdout)) return 1;
    if (run.in_time) return 0;
    fprintf(stderr, "kload: the deadline of %.0f s came: %d of %d processes had finished; all were killed\n",
            want.deadline, run.finished, want.processes);
    return 124;
}
