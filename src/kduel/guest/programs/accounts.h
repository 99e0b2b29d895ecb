/* What the kernel accounts for beside getrusage: /proc/self/status, a cgroup's cpu.stat, its log of throttling. */
#ifndef KDUEL_ACCOUNTS_H
#define KDUEL_ACCOUNTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ABSENT = -2 };

struct status_counts {
    long long voluntary, involuntary;
};

struct cgroup {
    char home[2048], own[2200]; /* where the driver came from, and the group made there */
    long long user_us, system_us;
};

/* A small file as text; 0 where it cannot be read. */
static inline int read_text(const char *path, char *into, size_t room) {
    int file = open(path, O_RDONLY);
    ssize_t got = file < 0 ? -1 : read(file, into, room - 1);
    if (file >= 0) close(file);
    if (got <= 0) return 0;
    into[got] = 0;
    return 1;
}

static inline long long number_after(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at ? atoll(at + strlen(name)) : ABSENT;
}

static inline long long number_in(const char *path) {
    char text[64];
    return read_text(path, text, sizeof text) ? atoll(text) : ABSENT;
}

/* The calling process's context switches by procfs; 0 where it does not tell. */
static inline int own_status(struct status_counts *found) {
    static char text[8192];
    if (!read_text("/proc/self/status", text, sizeof text)) return 0;
    found->voluntary = number_after(text, "\nvoluntary_ctxt_switches:");
    found->involuntary = number_after(text, "\nnonvoluntary_ctxt_switches:");
    return found->voluntary >= 0 && found->involuntary >= 0;
}

/* How often the kernel's log says that it throttled real-time tasks; -1 where the log may not be read. */
static inline int throttle_lines(void) {
    int room = klogctl(10, NULL, 0), found = 0;
    char *log = room > 0 ? malloc((size_t)room + 1) : NULL;
    int got = log ? klogctl(3, log, room) : -1;
    if (got >= 0) {
        log[got] = 0;
        for (const char *at = log; (at = strstr(at, "RT throttling activated")); at += 10) found++;
    }
    free(log);
    return got < 0 ? -1 : found;
}

/* Move the calling process into a group. Returns 0, or an errno. */
static inline int cgroup_join(const char *group) {
    char path[2300], pid[32];
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    int length = snprintf(pid, sizeof pid, "%d", getpid()), file = open(path, O_WRONLY);
    if (file < 0) return errno;
    int error = write(file, pid, (size_t)length) == length ? 0 : errno;
    close(file);
    return error;
}

/* A group of the caller's own below `home`: what it forks is born there, so no migration is measured. */
static inline int cgroup_enter(struct cgroup *group, const char *home) {
    group->user_us = group->system_us = ABSENT;
    snprintf(group->home, sizeof group->home, "%s", home);
    snprintf(group->own, sizeof group->own, "%s/kload-%d", group->home, getpid());
    return mkdir(group->own, 0755) ? errno : cgroup_join(group->own);
}

/* Read the account, go home, remove the group. */
static inline int cgroup_leave(struct cgroup *group) {
    char path[2300], text[4096];
    snprintf(path, sizeof path, "%s/cpu.stat", group->own);
    if (read_text(path, text, sizeof text)) {
        group->user_us = number_after(text, "user_usec ");
        group->system_us = number_after(text, "system_usec ");
    }
    int error = cgroup_join(group->home);
    if (error) return error;
    /* The kernel lets go of processes that have been waited for a little later: a thousand of them, seconds later. */
    for (int tries = 0; rmdir(group->own); tries++) {
        if (errno != EBUSY || tries == 5000) return errno;
        usleep(1000);
    }
    return 0;
}

#endif
