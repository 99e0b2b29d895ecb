/* kload: N processes, each with the same fixed work, under one scheduling policy; what the kernel accounts for them.
 *
 * The driver creates the processes, waits until each has its policy and stands at a gate, opens the gate, and waits
 * for the last one to finish its work. It stays above its processes (FIFO 99, where it may), and a deadline ends all.
 * Output: one JSON document. `voluntary`, `involuntary`, `user`, `system` and the times of each process are of its
 * work alone (getrusage between gate and end); `life` is all of each process, from fork to exit (wait4).
 */
#define _GNU_SOURCE
#include "accounts.h"
#include "policy.h"
#include "work.h"

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { CPU, IO, MIXED, BLOCKS };
enum { BUFFERED, DIRECT, DSYNC };
enum { MOST_PROCESSES = 100000, MOST_OUTPUTS = 64, QUIET_NS = 200000000 };
static const char *kinds[] = {"cpu", "io", "mixed", "blocks"};
static const char *modes[] = {"buffered", "direct", "dsync"};

/* What a process leaves in memory shared with the driver. Times in ns of CLOCK_MONOTONIC. */
struct slot {
    pid_t pid;
    int error; /* an errno, with what was being done in `doing` */
    char doing[80];
    struct policy seen;
    int64_t started, ended;
    struct rusage before, after;
    struct status_counts status_before, status_after;
    uint64_t inside; /* points inside the quarter circle */
};

struct shared {
    atomic_int ready, finished;
    _Atomic uint32_t over; /* futex: 1 when the last process has finished */
    struct slot slots[];
};

static struct {
    int kind, mode, processes, outputs, verify;
    long long iterations, transfers, block, size;
    double deadline;
    const char *policy_text, *directory, *cgroup;
    struct policy policy;
} want = {.kind = -1, .processes = 10, .outputs = 4, .iterations = 500000, .transfers = 256, .block = 4096,
          .size = 262144, .deadline = 600, .directory = ".", .policy_text = "other"};

static struct shared *shared;
static pid_t driver;

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static void kill_all(void) {
    for (int i = 0; i < want.processes; i++) {
        pid_t child = shared->slots[i].pid;
        if (child <= 0) continue;
        policy_set_of(child, &policy_plain);
        kill(child, SIGKILL);
    }
}

static void fail(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("kload: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    if (shared && getpid() == driver) kill_all();
    exit(status);
}

/* ---- the work of one process ---------------------------------------------------------------------------------- */

struct files {
    int input, outputs[MOST_OUTPUTS];
    char *buffer;
};

static void stop(struct slot *mine, int error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(mine->doing, sizeof mine->doing, format, arguments);
    va_end(arguments);
    mine->error = error ? error : EIO;
    _exit(3);
}

static void path_of(char *into, size_t room, int process, int output) {
    snprintf(into, room, "%s/kload-%d-%d.out", want.directory, process, output);
}

static void open_files(struct slot *mine, struct files *files, int index) {
    int extra = want.mode == DIRECT ? O_DIRECT : want.mode == DSYNC ? O_DSYNC : 0;
    char path[4096];
    snprintf(path, sizeof path, "%s/kload.input", want.directory);
    files->input = open(path, O_RDONLY | (want.mode == DIRECT ? O_DIRECT : 0));
    if (files->input < 0) stop(mine, errno, "opening the input (%s)", modes[want.mode]);
    for (int i = 0; i < want.outputs; i++) {
        path_of(path, sizeof path, index, i);
        files->outputs[i] = open(path, O_WRONLY | O_CREAT | O_TRUNC | extra, 0600);
        if (files->outputs[i] < 0) stop(mine, errno, "opening output %d (%s)", i, modes[want.mode]);
    }
    if (posix_memalign((void **)&files->buffer, 4096, (size_t)want.block)) stop(mine, ENOMEM, "taking a buffer");
    memset(files->buffer, 0, (size_t)want.block);
}

/* One block from the input to the next output; both wrap around at `size`. */
static void transfer(struct slot *mine, struct files *files, long long number) {
    off_t from = number * want.block % want.size, to = number / want.outputs * want.block % want.size;
    if (pread(files->input, files->buffer, (size_t)want.block, from) != want.block) stop(mine, errno, "reading");
    if (pwrite(files->outputs[number % want.outputs], files->buffer, (size_t)want.block, to) != want.block)
        stop(mine, errno, "writing");
}

static void sleep_once(void) {
    struct timespec t = {0, 2000000};
    nanosleep(&t, NULL);
}

/* getrusage and /proc/self/status at one moment: again, as long as a switch fell in between. */
static void account(struct slot *mine, struct rusage *usage, struct status_counts *status) {
    getrusage(RUSAGE_SELF, usage);
    while (want.verify) {
        struct rusage again;
        if (!own_status(status)) stop(mine, EIO, "reading /proc/self/status");
        getrusage(RUSAGE_SELF, &again);
        int still = again.ru_nvcsw == usage->ru_nvcsw && again.ru_nivcsw == usage->ru_nivcsw;
        *usage = again;
        if (still) return;
    }
}

static void process(int index, int ready, int gate, int leave) {
    struct slot *mine = &shared->slots[index];
    struct files files;
    struct status_counts unused;
    uint64_t state = pi_seed(index);
    char byte;

    mine->pid = getpid();
    if (want.kind == IO || want.kind == MIXED) open_files(mine, &files, index);
    /* What is needed below is brought into memory now, so that the work has no page fault of its own. */
    if (want.kind == CPU || want.kind == MIXED) mine->inside = pi_points(&state, 64);
    if (want.kind == BLOCKS) sleep_once();
    account(mine, &mine->before, &mine->status_before);
    account(mine, &mine->after, &unused);
    mine->inside = 0;

    int error = policy_set(&want.policy);
    if (!error) error = policy_get(&mine->seen);
    if (error) stop(mine, error, "taking the policy %s", want.policy_text);
    if (!policy_same(&want.policy, &mine->seen)) stop(mine, EINVAL, "the policy %s did not last", want.policy_text);
    atomic_fetch_add(&shared->ready, 1);
    if (write(ready, "r", 1) != 1) stop(mine, errno, "telling that it is ready");
    while (read(gate, &byte, 1) < 0 && errno == EINTR) {}

    account(mine, &mine->before, &mine->status_before);
    mine->started = now_ns();
    switch (want.kind) {
    case CPU:
        mine->inside = pi_points(&state, want.iterations);
        break;
    case IO:
        for (long long i = 0; i < want.transfers; i++) transfer(mine, &files, i);
        break;
    case MIXED:
        for (long long i = 0; i < want.transfers; i++) {
            long long from = want.iterations * i / want.transfers, to = want.iterations * (i + 1) / want.transfers;
            mine->inside += pi_points(&state, to - from);
            transfer(mine, &files, i);
        }
        break;
    default:
        for (long long i = 0; i < want.iterations; i++) sleep_once();
    }
    mine->ended = now_ns();
    account(mine, &mine->after, &mine->status_after);
    if (policy_get(&mine->seen) || !policy_same(&want.policy, &mine->seen))
        stop(mine, EINVAL, "the policy %s did not last", want.policy_text);
    policy_set(&policy_plain);

    /* The last one tells the driver, which so is not woken while others still work; all leave together. */
    if (atomic_fetch_add(&shared->finished, 1) + 1 == want.processes) {
        atomic_store(&shared->over, 1);
        futex_wake(&shared->over);
    }
    while (read(leave, &byte, 1) < 0 && errno == EINTR) {}
    _exit(0);
}

/* ---- the driver ------------------------------------------------------------------------------------------------ */

static void on_child(int signal) { (void)signal; }

static void put_number(const char *name, long long value) {
    if (value == ABSENT) printf("\"%s\":null", name);
    else printf("\"%s\":%lld", name, value);
}

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

static void usage_error(void) {
    fputs("usage: kload --kind cpu|io|mixed|blocks [--processes N] [--iterations N] [--policy POLICY]\n"
          "  --iterations  points of pi per process (cpu, mixed), or sleeps of 2 ms (blocks)\n"
          "  --transfers N --block BYTES --size BYTES --outputs N --io buffered|direct|dsync --dir DIR\n"
          "                blocks that each process reads from one file and writes to its outputs in turn (io, mixed)\n"
          "  --policy      other batch idle ext fifo:P rr:P deadline:R,D,P (ns), nice:N slice:NS, joined by '+';\n"
          "                by default what KDUEL_POLICY says\n"
          "  --deadline S  kill all after so many seconds, exit status 124\n"
          "  --cgroup DIR  a cgroup2 directory to make a group in, for the kernel's second account\n"
          "  --verify      read /proc/self/status too, beside getrusage\n", stderr);
    exit(2);
}

static int one_of(const char *word, const char **names, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(word, names[i])) return i;
    usage_error();
    return -1;
}

static long long count_of(const char *word, long long least, long long most) {
    long long value;
    if (!policy_number(word, word + strlen(word), &value) || value < least || value > most) usage_error();
    return value;
}

static void read_options(int count, char **words) {
    static const struct option options[] = {
        {"kind", 1, 0, 'k'},      {"processes", 1, 0, 'n'}, {"iterations", 1, 0, 'i'}, {"policy", 1, 0, 'p'},
        {"transfers", 1, 0, 't'}, {"block", 1, 0, 'b'},     {"size", 1, 0, 's'},       {"outputs", 1, 0, 'o'},
        {"io", 1, 0, 'm'},        {"dir", 1, 0, 'd'},       {"deadline", 1, 0, 'e'},   {"cgroup", 1, 0, 'c'},
        {"verify", 0, 0, 'v'},    {0, 0, 0, 0}};
    if (getenv("KDUEL_POLICY") && *getenv("KDUEL_POLICY")) want.policy_text = getenv("KDUEL_POLICY");
    for (int c; (c = getopt_long(count, words, "", options, NULL)) != -1;) {
        if (c == 'k') want.kind = one_of(optarg, kinds, 4);
        else if (c == 'n') want.processes = (int)count_of(optarg, 1, MOST_PROCESSES);
        else if (c == 'i') want.iterations = count_of(optarg, 0, 1LL << 50);
        else if (c == 'p') want.policy_text = optarg;
        else if (c == 't') want.transfers = count_of(optarg, 1, 1LL << 40);
        else if (c == 'b') want.block = count_of(optarg, 1, 1 << 26);
        else if (c == 's') want.size = count_of(optarg, 1, 1LL << 40);
        else if (c == 'o') want.outputs = (int)count_of(optarg, 1, MOST_OUTPUTS);
        else if (c == 'm') want.mode = one_of(optarg, modes, 3);
        else if (c == 'd') want.directory = optarg;
        else if (c == 'e') want.deadline = (double)count_of(optarg, 1, 1000000);
        else if (c == 'c') want.cgroup = optarg;
        else if (c == 'v') want.verify = 1;
        else usage_error();
    }
    if (want.kind < 0 || optind != count || want.size % want.block) usage_error();
    if (policy_parse(want.policy_text, &want.policy)) usage_error();
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

/* All of a run that is not the processes' own. */
struct run {
    int left, in_time, finished, raised, throttled_before, throttled_after;
    int64_t opened, closed;
    double life[2];
    long long life_switches[2];
    struct rusage own_before, own; /* the driver's, over the same time as the cgroup's account */
    struct cgroup group;
};

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

static double used(struct timeval before, struct timeval after) { return seconds(after) - seconds(before); }

static void print_work(int64_t opened) {
    double user = 0, system = 0, wall = 0;
    long long voluntary = 0, involuntary = 0, status_voluntary = 0, status_involuntary = 0;
    uint64_t inside = 0;
    for (int i = 0; i < want.processes; i++) {
        struct slot *s = &shared->slots[i];
        user += used(s->before.ru_utime, s->after.ru_utime);
        system += used(s->before.ru_stime, s->after.ru_stime);
        voluntary += s->after.ru_nvcsw - s->before.ru_nvcsw;
        involuntary += s->after.ru_nivcsw - s->before.ru_nivcsw;
        status_voluntary += s->status_after.voluntary - s->status_before.voluntary;
        status_involuntary += s->status_after.involuntary - s->status_before.involuntary;
        inside += s->inside;
        double took = (double)(s->ended - opened) / 1e9;
        if (took > wall) wall = took;
    }
    printf(" \"wall_s\":%.9f,\"user_s\":%.6f,\"system_s\":%.6f,\"voluntary\":%lld,\"involuntary\":%lld,\n", wall, user,
           system, voluntary, involuntary);
    if ((want.kind == CPU || want.kind == MIXED) && want.iterations)
        printf(" \"pi\":%.9f,\n", 4.0 * (double)inside / (double)want.iterations / want.processes);
    if (want.verify)
        printf(" \"status\":{\"voluntary\":%lld,\"involuntary\":%lld},\n", status_voluntary, status_involuntary);
}

static void print_each(int64_t opened) {
    puts(",\n \"each\":{\"columns\":[\"start_us\",\"end_us\",\"user_us\",\"system_us\",\"voluntary\",\"involuntary\"],\"rows\":[");
    for (int i = 0; i < want.processes; i++) {
        struct slot *s = &shared->slots[i];
        printf("[%lld,%lld,%.0f,%.0f,%ld,%ld]%s\n", (long long)(s->started - opened) / 1000,
               (long long)(s->ended - opened) / 1000, used(s->before.ru_utime, s->after.ru_utime) * 1e6,
               used(s->before.ru_stime, s->after.ru_stime) * 1e6, s->after.ru_nvcsw - s->before.ru_nvcsw,
               s->after.ru_nivcsw - s->before.ru_nivcsw, i + 1 < want.processes ? "," : "");
    }
    printf("]}");
}

static void print(const struct run *run) {
    printf("{\"kload\":1,\"kind\":\"%s\",\"processes\":%d,\"iterations\":%lld,\"transfers\":%lld,\"io\":\"%s\",\n",
           kinds[want.kind], want.processes, want.iterations, want.transfers, modes[want.mode]);
    printf(" \"policy_wanted\":\"%s\",\"policy\":", want.policy_text);
    policy_print(stdout, &shared->slots[0].seen);
    printf(",\n \"finished\":%d,\"in_time\":%s,\"deadline_s\":%.0f,\"driver_policy\":\"%s\",\n", run->finished,
           run->in_time ? "true" : "false", want.deadline, run->raised ? "fifo:99" : "other");
    if (run->in_time) print_work(run->opened);
    printf(" \"life\":{\"user_s\":%.6f,\"system_s\":%.6f,\"voluntary\":%lld,\"involuntary\":%lld},\n", run->life[0],
           run->life[1], run->life_switches[0], run->life_switches[1]);
    printf(" \"driver\":{\"user_s\":%.6f,\"system_s\":%.6f},\"ended_s\":%.9f,\n",
           used(run->own_before.ru_utime, run->own.ru_utime), used(run->own_before.ru_stime, run->own.ru_stime),
           (double)(run->closed - run->opened) / 1e9);
    printf(" \"cgroup\":{"), put_number("user_us", run->group.user_us), putchar(',');
    put_number("system_us", run->group.system_us);
    printf("},\n \"rt\":{"), put_number("runtime_us", number_in("/proc/sys/kernel/sched_rt_runtime_us")), putchar(',');
    put_number("period_us", number_in("/proc/sys/kernel/sched_rt_period_us"));
    printf(",\"log_before\":%d,\"log_after\":%d}", run->throttled_before, run->throttled_after);
    if (run->in_time) print_each(run->opened);
    puts("}");
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
