/* kdelay: how long tasks were delayed while a program ran, by the kernel's account of each task (taskstats).
 *
 *   kdelay FILE PROGRAM [ARGUMENT...]
 *
 * It runs PROGRAM and ends with its status. FILE then has, in lines of words: the version of struct taskstats, the kernel's
 * release, the switch of delay accounting, how many tasks ran, the longest wait of one of them for CPUs, in all, and of each
 * kind of delay how often and how many nanoseconds. All tasks of the machine count but kdelay: those that ended meanwhile by
 * what the kernel sends as a task ends, and the others by what they have more than at the start. A kind that the kernel does
 * not have is left out. Where the kernel has no taskstats, or some were lost, FILE says that ("absent WHY") and no number.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/taskstats.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Versions whose fields lie where this header has them; 15 moved them, and who knows of later ones. */
enum { OLDEST = 8, MOVED = 15, NEWEST = 17, ROOM = 32 << 20, BETWEEN_LOOKS = 250 * 1000 * 1000 };

static const struct {
    const char *name;
    size_t count, total; /* where in struct taskstats */
    int since;
} kinds[] = {
#define KIND(name, field, since) {name, offsetof(struct taskstats, field##_count), offsetof(struct taskstats, field##_delay_total), since}
    KIND("cpu", cpu, 1),           KIND("io", blkio, 1),        KIND("swap", swapin, 1),  KIND("reclaim", freepages, 7),
    KIND("thrash", thrashing, 9), KIND("compact", compact, 11), KIND("copy", wpcopy, 13),
    /* The compiler's struct taskstats may end here. */
    {"irq", offsetof(struct taskstats, wpcopy_delay_total) + 8, offsetof(struct taskstats, wpcopy_delay_total) + 16, 14},
};
enum { CPU, KINDS = sizeof kinds / sizeof *kinds };

struct delays {
    int pid, ended;
    uint64_t count[KINDS], total[KINDS];
};

static struct list {
    struct delays *tasks;
    size_t count, room;
} before, after;
static struct delays sum;
static uint64_t ran, longest;
static int version, family, irqs_seen;
static char absent[200];

static void give_up(const char *why) {
    if (!*absent) snprintf(absent, sizeof absent, "%s%s%s", why, errno ? ": " : "", errno ? strerror(errno) : "");
}

static int by_pid(const void *a, const void *b) {
    return ((const struct delays *)a)->pid - ((const struct delays *)b)->pid;
}

static struct delays *find(const struct list *in, int pid) {
    struct delays wanted = {.pid = pid};
    return in->count ? bsearch(&wanted, in->tasks, in->count, sizeof wanted, by_pid) : NULL;
}

/* A task that ended: another may have its number from now on. */
static void forget(const struct list *in, int pid) {
    struct delays *task = find(in, pid);
    if (task) *task = (struct delays){.pid = pid, .ended = 1};
}

/* A task's figures, as they are in a message. */
static void read_figures(const char *stats, size_t size, struct delays *into) {
    uint16_t told;
    memcpy(&told, stats, sizeof told);
    version = told;
    errno = 0;
    if (version < OLDEST || version == MOVED || version > NEWEST) give_up("unknown version of taskstats");
    for (int k = 0; k < KINDS && !*absent; k++) {
        if (version < kinds[k].since) continue;
        if (kinds[k].total + 8 > size) return give_up("taskstats is too short");
        memcpy(&into->count[k], stats + kinds[k].count, 8);
        memcpy(&into->total[k], stats + kinds[k].total, 8);
    }
    irqs_seen |= into->count[KINDS - 1] != 0;
}

/* Add what a task has more than at the start. */
static void add_growth(const struct delays *task) {
    struct delays *first = find(&before, task->pid), none = {0};
    if (!first) first = &none;
    ran += task->count[CPU] != first->count[CPU];
    uint64_t waited = task->total[CPU] - first->total[CPU];
    if (waited > longest) longest = waited;
    for (int k = 0; k < KINDS; k++) {
        sum.count[k] += task->count[k] - first->count[k];
        sum.total[k] += task->total[k] - first->total[k];
    }
}

static void keep(struct list *in, const struct delays *task) {
    if (in->count == in->room) {
        in->room = in->room ? 2 * in->room : 256;
        in->tasks = realloc(in->tasks, in->room * sizeof *in->tasks);
        if (!in->tasks) exit(125);
    }
    in->tasks[in->count++] = *task;
}

struct message {
    struct nlmsghdr head;
    struct genlmsghdr genl;
    char body[4096];
};

static int send_message(int to, int type, int flags, int command, int attribute, const void *data, size_t size) {
    struct message out = {{0, (uint16_t)type, (uint16_t)(NLM_F_REQUEST | flags), 0, 0}, {(uint8_t)command, 1, 0}, {0}};
    struct nlattr attr = {(uint16_t)(NLA_HDRLEN + size), (uint16_t)attribute};
    memcpy(out.body, &attr, sizeof attr);
    memcpy(out.body + NLA_HDRLEN, data, size);
    out.head.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + GENL_HDRLEN + NLA_HDRLEN + NLA_ALIGN(size));
    return send(to, &out, out.head.nlmsg_len, 0) < 0 ? -1 : 0;
}

/* The attribute of that type, its size in *size; NULL where there is none. */
static const char *find_attribute(const char *at, size_t left, int type, size_t *size) {
    while (left >= NLA_HDRLEN) {
        struct nlattr attr;
        memcpy(&attr, at, sizeof attr);
        if (attr.nla_len < NLA_HDRLEN || attr.nla_len > left) return NULL;
        if ((attr.nla_type & NLA_TYPE_MASK) == type) {
            *size = attr.nla_len - NLA_HDRLEN;
            return at + NLA_HDRLEN;
        }
        size_t step = NLA_ALIGN(attr.nla_len);
        if (step > left) return NULL;
        at += step, left -= step;
    }
    return NULL;
}

/* Receive a message: 1, 0 where there is none to be had without waiting, -1 with errno. An answer of the kernel's that is an
 * error is one. */
static int receive(int from, int flags, struct message *in, size_t *size) {
    ssize_t got;
    do got = recv(from, in, sizeof *in, flags);
    while (got < 0 && errno == EINTR);
    if (got < 0) return errno == EAGAIN ? 0 : -1;
    *size = (size_t)got < NLMSG_HDRLEN + GENL_HDRLEN ? 0 : (size_t)got - NLMSG_HDRLEN - GENL_HDRLEN;
    if (in->head.nlmsg_type != NLMSG_ERROR) return 1;
    int code;
    memcpy(&code, &in->genl, sizeof code);
    errno = -code;
    return code ? -1 : 1;
}

/* What a message says of one task, 0 where it says nothing; what it adds of the whole process of a last thread is left alone. */
static int read_task(const struct message *in, size_t size, struct delays *into) {
    size_t inner, length;
    const char *task = NULL, *part;
    *into = (struct delays){0};
    if (in->head.nlmsg_type == family) task = find_attribute(in->body, size, TASKSTATS_TYPE_AGGR_PID, &inner);
    if (!task || !(part = find_attribute(task, inner, TASKSTATS_TYPE_PID, &length)) || length < 4) return 0;
    memcpy(&into->pid, part, 4);
    if (into->pid == getpid() || !(part = find_attribute(task, inner, TASKSTATS_TYPE_STATS, &length)) || length < 2) return 0;
    read_figures(part, length, into);
    return !*absent;
}

static void look_at_ended(int listener, int counted) {
    struct message in;
    struct delays task;
    size_t size;
    int got;
    while ((got = receive(listener, MSG_DONTWAIT, &in, &size)) > 0) {
        if (!read_task(&in, size, &task)) continue;
        if (counted) add_growth(&task);
        forget(&before, task.pid), forget(&after, task.pid);
    }
    if (got < 0) give_up("some tasks ended unseen");
}

/* True for a task that ended and that nobody waited for yet: its message was sent before, and it can still be asked for. */
static int is_zombie(const char *process, const char *thread) {
    char path[600], text[200] = "", *state;
    snprintf(path, sizeof path, "/proc/%s/task/%s/stat", process, thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, text, sizeof text - 1) < 0) *text = 0;
    close(file);
    /* Its name is in parentheses, and may have some. */
    state = strrchr(text, ')');
    return state && (state[2] == 'Z' || state[2] == 'X');
}

/* Ask for every task that lives. */
static void look_at_living(int asker, struct list *into) {
    DIR *all = opendir("/proc");
    struct dirent *process, *thread;
    while (all && (process = readdir(all))) {
        char path[300];
        if (process->d_name[0] < '1' || process->d_name[0] > '9') continue;
        snprintf(path, sizeof path, "/proc/%s/task", process->d_name);
        DIR *threads = opendir(path);
        while (threads && (thread = readdir(threads))) {
            uint32_t pid = (uint32_t)atoi(thread->d_name);
            struct message in;
            struct delays task;
            size_t size;
            if (!pid || is_zombie(process->d_name, thread->d_name)) continue;
            if (send_message(asker, family, 0, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_PID, &pid, sizeof pid)) give_up("taskstats");
            else if (receive(asker, 0, &in, &size) > 0) {
                if (read_task(&in, size, &task)) keep(into, &task);
            } else if (errno != ESRCH) give_up("taskstats");
        }
        if (threads) closedir(threads);
    }
    if (all) closedir(all);
    if (into->count) qsort(into->tasks, into->count, sizeof *into->tasks, by_pid);
}

static int open_socket(void) {
    struct sockaddr_nl own = {.nl_family = AF_NETLINK};
    int made = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
    return made < 0 || bind(made, (struct sockaddr *)&own, sizeof own) ? -1 : made;
}

/* The socket that hears of each task that ends; -1 where the kernel has no taskstats. */
static int listen_to_ends(int asker) {
    struct message in;
    size_t size, length;
    const char *id;
    char cpus[100] = "";
    int room = ROOM, file = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC), listener = open_socket();
    if (file < 0 || read(file, cpus, sizeof cpus - 1) < 1 || listener < 0 || asker < 0) return -1;
    cpus[strcspn(cpus, "\n")] = 0;
    if (send_message(asker, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, TASKSTATS_GENL_NAME, sizeof TASKSTATS_GENL_NAME) ||
        receive(asker, 0, &in, &size) < 1 || !(id = find_attribute(in.body, size, CTRL_ATTR_FAMILY_ID, &length)) || length < 2)
        return -1;
    uint16_t number;
    memcpy(&number, id, sizeof number);
    family = number;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    if (send_message(listener, family, NLM_F_ACK, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, cpus, strlen(cpus) + 1) ||
        receive(listener, 0, &in, &size) < 1)
        return -1;
    return listener;
}

static void write_result(const char *path) {
    char state[8] = "-";
    FILE *knob = fopen("/proc/sys/kernel/task_delayacct", "re"), *out = fopen(path, "we");
    if (knob && fscanf(knob, "%7s", state) != 1) strcpy(state, "-");
    struct utsname kernel;
    if (!out) return;
    if (version) fprintf(out, "version %d\n", version);
    if (!uname(&kernel)) fprintf(out, "release %s\n", kernel.release);
    if (*absent) fprintf(out, "absent %s\n", absent);
    else {
        fprintf(out, "switch %s\ntasks %llu\nlongest %llu\n", state, (unsigned long long)ran, (unsigned long long)longest);
        /* Without CONFIG_IRQ_TIME_ACCOUNTING no task ever had one, and 0 would be no number. */
        for (int k = 0; k < KINDS; k++)
            if (version >= kinds[k].since && (k < KINDS - 1 || irqs_seen))
                fprintf(out, "%s %llu %llu\n", kinds[k].name, (unsigned long long)sum.count[k], (unsigned long long)sum.total[k]);
    }
    fclose(out);
}

int main(int count, char **words) {
    if (count < 3) {
        fputs("usage: kdelay FILE PROGRAM [ARGUMENT...]\n", stderr);
        return 2;
    }
    int asker = open_socket(), listener = listen_to_ends(asker), status = 0;
    if (listener < 0) give_up("this kernel has no taskstats");
    else look_at_living(asker, &before), look_at_ended(listener, 0);
    sigset_t ends;
    sigemptyset(&ends), sigaddset(&ends, SIGCHLD), sigprocmask(SIG_BLOCK, &ends, NULL);
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_UNBLOCK, &ends, NULL);
        execvp(words[2], words + 2);
        fprintf(stderr, "kdelay: %s: %s\n", words[2], strerror(errno));
        _exit(127);
    }
    if (child < 0) {
        perror("kdelay: fork");
        return 125;
    }
    /* Above all others, or it could not listen while they have all CPUs. It wakes up four times a second. */
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 99});
    for (struct timespec wait = {0, BETWEEN_LOOKS}; waitpid(child, &status, WNOHANG) == 0;) {
        if (!*absent) look_at_ended(listener, 1);
        sigtimedwait(&ends, NULL, &wait);
    }
    /* Who ended during the last look counts by its message alone. */
    if (!*absent) look_at_living(asker, &after);
    if (!*absent) look_at_ended(listener, 1);
    for (size_t i = 0; i < after.count; i++)
        if (!after.tasks[i].ended) add_growth(&after.tasks[i]);
    write_result(words[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
