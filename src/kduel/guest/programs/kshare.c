/* kshare: one kernel operation on several CPUs in turn, for the plug-in that counts the cache lines which move between them.
 *
 *   kshare [--workers processes|threads] [--objects own|directory|common] [--with OTHER] [--cpus N] [--count ROUNDS]
 *          [--conditions K] [--seed N] OPERATION
 *
 * The operations are those of kbench. A worker on each CPU calls the operation when it is its turn; nothing runs at the same
 * time, so that nothing depends on how calls interleave. Objects: `own`, each worker opens its own, and its files lie in a
 * directory of its own; `directory`, the same in one directory; `common`, all use what was opened once. With OTHER, every
 * second worker calls that operation instead. One line of JSON for each condition says what was called; what was counted, the
 * plug-in writes on the host.
 *
 * Threads share the variables of the operations, which were written for a process each: these lie in sections of their own,
 * and each worker brings in its copy before its call.
 */
#define _GNU_SOURCE
#pragma clang section bss = "operations_bss" data = "operations_data"
#include "apart.h"
#pragma clang section bss = "" data = ""
#include "randomness.h"

enum { CPUS_MAX = 16, WARM_UP = 24, ROUNDS = 40, ALL_COPIED = 4 /* turns in which variables that ever change are found */, BLOCK = 64 };
enum { OWN, DIRECTORY, COMMON, OBJECTS };
static const char *const objects_names[OBJECTS] = {"own", "directory", "common"};

struct shared {
    _Atomic unsigned long turn, ready;
    _Atomic int failed;
};
static struct shared *shared;
static const struct operation *called[2]; /* by even and odd workers */
static int cpus = 2, threads, objects, done;
static long warm_up = WARM_UP, rounds = ROUNDS;

/* The variables of the operations */

extern char __start_operations_bss[], __stop_operations_bss[], __start_operations_data[], __stop_operations_data[];
struct part {
    char *at;
    size_t size;
    char *first;             /* as it was at the beginning */
    char *copies[CPUS_MAX];
    unsigned char *changing; /* by block of BLOCK bytes */
};
static struct part parts[2];

static char *room(size_t size) {
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    return memory;
}
static void prepare_copies(void) {
    parts[0].at = __start_operations_bss, parts[0].size = (size_t)(__stop_operations_bss - __start_operations_bss);
    parts[1].at = __start_operations_data, parts[1].size = (size_t)(__stop_operations_data - __start_operations_data);
    for (struct part *p = parts; p < parts + 2; p++) {
        p->changing = (unsigned char *)room(p->size / BLOCK + 1);
        p->first = memcpy(room(p->size), p->at, p->size);
        for (int i = 0; i < cpus; i++) p->copies[i] = memcpy(room(p->size), p->at, p->size);
    }
}
/* With a size that the compiler knows, these are a few instructions each. */
static void copy_block(char *to, const char *from, size_t at, size_t size) {
    if (size - at < BLOCK) memcpy(to + at, from + at, size - at);
    else memcpy(to + at, from + at, BLOCK);
}
static int differs(const char *one, const char *other, size_t at, size_t size) {
    return size - at < BLOCK ? memcmp(one + at, other + at, size - at) : memcmp(one + at, other + at, BLOCK);
}
static void bring_in(int id, int all) {
    for (struct part *p = parts; threads && p < parts + 2; p++)
        for (size_t at = 0; at < p->size; at += BLOCK)
            if (all || p->changing[at / BLOCK]) copy_block(p->at, p->copies[id], at, p->size);
}
static void put_back(int id, int all) {
    for (struct part *p = parts; threads && p < parts + 2; p++)
        for (size_t at = 0; at < p->size; at += BLOCK) {
            if (all && differs(p->first, p->at, at, p->size)) p->changing[at / BLOCK] = 1;
            if (all || p->changing[at / BLOCK]) copy_block(p->copies[id], p->at, at, p->size);
        }
}

/* Workers */

static inline void relax(void) {
#if defined __x86_64__ || defined __i386__
    __asm__ volatile("pause" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}
static void note_failure(void) {
    if (!done) shared->failed = 1;
}
static void await(_Atomic unsigned long *what, unsigned long value) {
    while (*what != value) {
        if (shared->failed) {
            int status = 0;
            done = 1;
            if (!threads) wait(&status); /* the other worker's reason, where it is a child */
            exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
        }
        relax();
    }
}
static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    need(sched_setaffinity(0, sizeof set, &set), "pinning a worker to its CPU");
}

static int is_mounted(const struct operation *what) { return what->open == open_mount; }
/* Whether it leaves something in the system that ends with no process. */
static int outlives(const struct operation *what) { return what->open == open_attach || what->open == open_module; }

static void name_files(int id) {
    char place[32] = "", mark[32] = "";
    if (objects == OWN) snprintf(place, sizeof place, "worker-%d/", id);
    if (objects == DIRECTORY) snprintf(mark, sizeof mark, ".%d", id);
    for (int i = 0; i < 2 && objects != COMMON; i++)
        snprintf(attach_groups[i], sizeof attach_groups[i], GROUPS "/kbench-%c.%d", 'a' + i, id);
    snprintf(file_name, sizeof file_name, "%skbench.file%s", place, mark);
    snprintf(other_name, sizeof other_name, "%skbench.other%s", place, mark);
    snprintf(directory_name, sizeof directory_name, "%skbench.dir%s", place, mark);
    snprintf(mounted_file, sizeof mounted_file, "%s/%sfile%s", mount_point, place, mark);
}

/* Of a common area each worker has a part. */
static void take_part(const struct operation *what, int id) {
    if (what->rewind != rewind_area) return;
    fault_bytes = fault_bytes / fault_step / (size_t)cpus * fault_step;
    fault_area += fault_bytes * (size_t)id;
}

/* Where kernels lay a thread's area next to another one's, they join both, and not all of them lay areas alike: each thread's goes to
 * addresses of its own. */
static void move_apart(char **area, size_t size, int id) {
    char *own = (char *)(uintptr_t)(0x100000000000u + ((uint64_t)id << 30));
    if (!*area || *area == own) return;
    if (mremap(*area, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, own) == MAP_FAILED) die("mremap");
    *area = own;
}
static void move_areas_apart(const struct operation *what, int id) {
    if (what->open == open_page) move_apart(&one_page, PAGE_MAX, id);
    if (what->open == open_protection) move_apart(&fault_page, PAGE_MAX, id);
    if (what->rewind == rewind_area) move_apart(&fault_area, fault_bytes, id);
}

static void work(int id) {
    const struct operation *what = called[id % 2];
    void (*volatile run)(void) = what->run;
    long turns = warm_up + rounds, batch = what->batch > cpus ? what->batch / cpus : 1;
    pin(id);
    await(&shared->ready, (unsigned long)id);
    bring_in(id, 1);
    name_files(id);
    if (objects != COMMON && !threads) {
        int own = (int)need(open("/dev/null", O_RDWR), "/dev/null"); /* what dup duplicates */
        dup2(own, 0);
        close(own);
    }
    if (objects == COMMON) take_part(what, id);
    if (objects != COMMON && what->open && !is_mounted(what)) what->open(what->argument);
    if (objects != COMMON && threads) move_areas_apart(what, id);
    put_back(id, 1);
    shared->ready++;
    await(&shared->ready, (unsigned long)cpus);
    for (long i = 0; i < turns; i++) {
        await(&shared->turn, (unsigned long)(i * cpus + id));
        bring_in(id, i < ALL_COPIED);
        if (what->rewind && i % batch == 0) what->rewind(turns - i);
        void (*call)(void) = run;
        if (i == warm_up && id == 0) MARK_SELECT();
        MARK_BEGIN();
        call();
        MARK_END();
        if (i == turns - 1 && id == cpus - 1) MARK_RESET();
        put_back(id, i < ALL_COPIED);
        shared->turn++;
    }
    await(&shared->turn, (unsigned long)(turns * cpus));
    await(&shared->ready, (unsigned long)(cpus + id)); /* one after the other ends those who wake it */
    bring_in(id, 0);
    end_children();
    if (objects != COMMON && outlives(what)) what->close();
    put_back(id, 0);
    shared->ready++;
    await(&shared->ready, (unsigned long)(2 * cpus));
}
static void *thread_work(void *id) {
    work((int)(intptr_t)id);
    return NULL;
}

/* In a file system of their own, which goes with this process. */
static const char *const place_name = "kshare.mount";
static void make_place(void) {
    need(unshare(CLONE_NEWNS), "a mount namespace");
    need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "a private mount namespace");
    if (mkdir(place_name, 0700) < 0 && errno != EEXIST) die(place_name);
    need(mount("kshare", place_name, "tmpfs", 0, NULL), "mounting tmpfs");
    need(chdir(place_name), place_name);
}
static void make_directories(const char *below) {
    char path[64];
    for (int i = 0; i < cpus; i++) {
        snprintf(path, sizeof path, "%sworker-%d", below, i);
        if (mkdir(path, 0700) < 0 && errno != EEXIST) die(path);
    }
}

static unsigned number_of(const struct operation *what) { return (unsigned)(what - operations); }

/* Under one condition, in this process. */
static void share(const struct condition *c) {
    unsigned region = 1 + ((number_of(called[0]) * 2 + (unsigned)threads) * OBJECTS + (unsigned)objects) * 128 + number_of(called[1]);
    pthread_t others[CPUS_MAX];
    pid_t pids[CPUS_MAX];
    int status = 0, worst = 0;
    warm_up *= c->times;
    make_place();
    make_directories("");
    if (c->before) {
        const struct operation *before = operation_called(befores[c->before - 1]);
        if (before->open) before->open(before->argument);
        for (int i = 0; i < BEFORE_CALLS; i++) before->run();
        if (before->close) before->close();
    }
    spin(c->phase);
    for (int i = 0; i < 2; i++)
        if (called[i]->open && (objects == COMMON || is_mounted(called[i])) && !(i && called[1] == called[0])) {
            called[i]->open(called[i]->argument);
            if (is_mounted(called[i])) make_directories("kbench.mount/");
        }
    if (threads) prepare_copies();
    MARK_RESET();
    for (unsigned i = 0; i < region; i++) MARK_SELECT();
    atexit(note_failure);
    for (int i = 1; i < cpus; i++) {
        if (threads) {
            if ((errno = pthread_create(&others[i], NULL, thread_work, (void *)(intptr_t)i))) die("pthread_create");
        } else if ((pids[i] = (pid_t)need(fork(), "fork")) == 0) {
            work(i);
            _exit(0);
        }
    }
    work(0);
    done = 1;
    for (int i = 1; i < cpus; i++) {
        if (threads) pthread_join(others[i], NULL);
        else need(waitpid(pids[i], &status, 0), "waitpid");
        if (!WIFEXITED(status) || WEXITSTATUS(status)) worst = 1;
    }
    for (int i = 0; i < 2; i++)
        if (objects == COMMON && outlives(called[i])) called[i]->close();
    if (worst) exit(worst);
    printf("{\"operation\":\"%s\",\"other\":\"%s\",\"workers\":\"%s\",\"objects\":\"%s\",\"cpus\":%d,\"warm_up\":%ld,\"rounds\":%ld,\"region\":%u",
           called[0]->name, called[1]->name, threads ? "threads" : "processes", objects_names[objects], cpus, warm_up, rounds, region);
    printf(",\"condition\":{\"number\":%u,\"phase\":%ld,\"times\":%ld,\"environment\":%ld,\"layout\":%ld,\"held\":%ld,\"before\":\"%s\"}}\n",
           c->number, c->phase, c->times, c->environment, c->layout, c->held, c->before ? befores[c->before - 1] : "");
}

static int choice(const char *text, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (text && !strcmp(text, names[i])) return i;
    fprintf(stderr, "kshare: %s is none of the words that this option takes\n", text ? text : "(nothing)");
    exit(2);
}

int main(int count, char **words) {
    static const char *const workers[] = {"processes", "threads"};
    struct condition condition = {.times = 1};
    unsigned conditions = 0;
    uint64_t seed = 0;
    int apart = 0, at = 1;
    if (count == 2 && !strcmp(words[1], "--nothing")) _exit(0);
    for (; at + 1 < count && words[at][0] == '-'; at += 2) {
        const char *value = words[at + 1];
        if (!strcmp(words[at], "--workers")) threads = choice(value, workers, 2);
        else if (!strcmp(words[at], "--objects")) objects = choice(value, objects_names, OBJECTS);
        else if (!strcmp(words[at], "--with")) called[1] = operation_called(value);
        else if (!strcmp(words[at], "--cpus")) cpus = (int)number(value, 2, CPUS_MAX);
        else if (!strcmp(words[at], "--count")) rounds = (long)number(value, 1, 10000);
        else if (!strcmp(words[at], "--conditions")) conditions = (unsigned)number(value, 1, 1000);
        else if (!strcmp(words[at], "--seed")) seed = (uint64_t)number(value, 0, 1e15);
        else if (!strcmp(words[at], "--part")) read_part(value, &condition), apart = 1;
        else break;
    }
    called[0] = at < count ? operation_called(words[at]) : NULL;
    if (!called[0] || at + 1 != count) {
        fprintf(stderr, "usage: kshare [--workers processes|threads] [--objects own|directory|common] [--with OTHER] [--cpus N] "
                        "[--count ROUNDS] [--conditions K] [--seed N] OPERATION\n");
        return 2;
    }
    if (!called[1]) called[1] = called[0];
    if (readlink("/proc/self/exe", own_path, sizeof own_path - 1) < 0) snprintf(own_path, sizeof own_path, "%s", words[0]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) die("mmap");
    if (apart) {
        share(&condition);
        return 0;
    }
    char number_of_cpus[16];
    snprintf(number_of_cpus, sizeof number_of_cpus, "%d", cpus);
    char *again[] = {"--workers", (char *)(uintptr_t)workers[threads], "--objects", (char *)(uintptr_t)objects_names[objects], "--with",
                     (char *)(uintptr_t)called[1]->name, "--cpus", number_of_cpus, NULL};
    seed_randomness();
    for (unsigned i = 0; i < (conditions ? conditions : 1); i++) {
        struct condition c = condition_of(seed, i, BEFORES);
        int status = run_apart(again, called[0], rounds, &c, "");
        rmdir(place_name);
        if (status) return status;
    }
    return 0;
}
