/* The work of one process of kload. */
#ifndef KDUEL_KLOAD_WORK_H
#define KDUEL_KLOAD_WORK_H

#include "kload.h"

#include <sys/socket.h>

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

static void take_buffer(struct slot *mine, struct files *files) {
    if (posix_memalign((void **)&files->buffer, 4096, (size_t)want.block)) stop(mine, ENOMEM, "taking a buffer");
    memset(files->buffer, 0, (size_t)want.block);
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
    take_buffer(mine, files);
}

/* One block from the input to the next output; both wrap around at `size`. */
static void transfer(struct slot *mine, struct files *files, long long number) {
    off_t from = number * want.block % want.size, to = number / want.outputs * want.block % want.size;
    if (pread(files->input, files->buffer, (size_t)want.block, from) != want.block) stop(mine, errno, "reading");
    if (pwrite(files->outputs[number % want.outputs], files->buffer, (size_t)want.block, to) != want.block)
        stop(mine, errno, "writing");
}

/* The first half of the processes sends to each of the others as many messages as there are transfers. */
static void pass_messages(struct slot *mine, int index, char *buffer) {
    int senders = want.processes / 2;
    if (index < senders) {
        for (long long i = 0; i < want.transfers; i++)
            for (int to = 0; to < want.processes - senders; to++)
                if (write(lanes[to][1], buffer, (size_t)want.block) != want.block) stop(mine, errno, "sending");
        return;
    }
    for (long long left = senders * want.transfers * want.block; left;) {
        ssize_t got = read(lanes[index - senders][0], buffer, (size_t)want.block);
        if (got <= 0) stop(mine, errno, "receiving");
        left -= got;
    }
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
    if (want.kind == MESSAGES) take_buffer(mine, &files);
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
    case MESSAGES:
        pass_messages(mine, index, files.buffer);
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

#endif
