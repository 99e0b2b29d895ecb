/* kbandwidth: how many bytes a second go through the kernel's channels, and through memory.
 *
 *   kbandwidth [--time SECONDS] [--mib N] OPERATION       N: size of the file and of the memory, 8 by default
 *
 * One line of JSON on stdout, in MB/s (1e6 bytes). A batch moves N MiB; the median of at least five batches counts.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 64 << 10, SAMPLES = 10000 };

static size_t size = 8 << 20;
static char *one, *other;
static int fd = -1;
static pid_t child;
static double samples[SAMPLES];
static volatile unsigned long sink;

static void die(const char *what) {
    fprintf(stderr, "kbandwidth: %s: %s\n", what, strerror(errno));
    if (child > 0) kill(child, SIGKILL);
    exit(errno == EAFNOSUPPORT || errno == ENOSYS ? 4 : 1);
}
static long need(long result, const char *what) {
    if (result < 0) die(what);
    return result;
}

/* A child writes blocks for ever; it ends with the channel. */
static void writer(int to) {
    for (;;)
        if (write(to, one, BLOCK) <= 0) _exit(0);
}
static void start_writer(int from, int to) {
    signal(SIGPIPE, SIG_IGN);
    child = (pid_t)need(fork(), "fork");
    if (!child) {
        close(from);
        writer(to);
    }
    close(to);
    fd = from;
}
static void open_pipe(void) {
    int ends[2];
    need(pipe(ends), "pipe");
    start_writer(ends[0], ends[1]);
}
static void open_unix(void) {
    int ends[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    start_writer(ends[0], ends[1]);
}
static void open_tcp(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof here;
    int listening = (int)need(socket(AF_INET, SOCK_STREAM, 0), "socket");
    need(bind(listening, (struct sockaddr *)&here, length), "bind");
    need(listen(listening, 1), "listen");
    need(getsockname(listening, (struct sockaddr *)&here, &length), "getsockname");
    int near = (int)need(socket(AF_INET, SOCK_STREAM, 0), "socket");
    need(connect(near, (struct sockaddr *)&here, sizeof here), "connect to 127.0.0.1");
    int far = (int)need(accept(listening, NULL, NULL), "accept");
    close(listening);
    start_writer(near, far);
}
static void drain(void) {
    for (size_t left = size; left;) {
        ssize_t got = read(fd, other, left < BLOCK ? left : BLOCK);
        if (got <= 0) die("read");
        left -= (size_t)got;
    }
}

static void open_file(void) {
    char name[] = "kbandwidth-XXXXXX";
    fd = (int)need(mkstemp(name), "mkstemp");
    unlink(name);
    for (size_t done = 0; done < size; done += BLOCK)
        if (write(fd, one, BLOCK) != BLOCK) die("write");
}
static void reread(void) {
    need(lseek(fd, 0, SEEK_SET), "lseek");
    drain();
}
static unsigned long sum_of(const char *area) {
    const unsigned long *words = (const unsigned long *)area;
    unsigned long sum = 0;
    for (size_t i = 0; i < size / sizeof *words; i++) sum += words[i];
    return sum;
}
static void map_reread(void) {
    char *area = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (area == MAP_FAILED) die("mmap");
    sink = sum_of(area);
    munmap(area, size);
}
static void copy(void) {
    memcpy(other, one, size);
    __asm__ volatile("" ::: "memory");
}
static void mem_read(void) { sink = sum_of(one); }
static void mem_write(void) {
    volatile unsigned long *words = (volatile unsigned long *)(void *)other;
    for (size_t i = 0; i < size / sizeof *words; i++) words[i] = i;
}

static const struct operation {
    const char *name;
    void (*open)(void), (*run)(void);
} operations[] = {
    {"pipe", open_pipe, drain},        {"unix", open_unix, drain},        {"tcp", open_tcp, drain},
    {"file-reread", open_file, reread}, {"mmap-reread", open_file, map_reread}, {"bcopy", NULL, copy},
    {"mem-read", NULL, mem_read},      {"mem-write", NULL, mem_write},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **words) {
    double budget = 1;
    int at = 1;
    for (; at + 1 < count && words[at][0] == '-'; at += 2) {
        if (!strcmp(words[at], "--time")) budget = strtod(words[at + 1], NULL);
        else if (!strcmp(words[at], "--mib")) size = strtoul(words[at + 1], NULL, 10) << 20;
        else break;
    }
    const struct operation *what = NULL;
    for (int i = 0; i < OPERATIONS && at + 1 == count; i++)
        if (!strcmp(operations[i].name, words[at])) what = operations + i;
    if (!what || !(budget > 0) || !size) {
        fputs("usage: kbandwidth [--time SECONDS] [--mib N] OPERATION, of:", stderr);
        for (int i = 0; i < OPERATIONS; i++) fprintf(stderr, " %s", operations[i].name);
        fputc('\n', stderr);
        return 2;
    }
    one = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    other = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (one == MAP_FAILED || other == MAP_FAILED) die("mmap");
    memset(one, 1, size);
    memset(other, 2, size);
    if (what->open) what->open();
    what->run(); /* warms up */
    long taken = 0;
    double began = seconds();
    do {
        double from = seconds();
        what->run();
        double took = seconds() - from;
        if (took > 0) samples[taken++] = (double)size / 1e6 / took;
    } while (taken < SAMPLES && (taken < 5 || seconds() - began < budget));
    if (child > 0) kill(child, SIGKILL), waitpid(child, NULL, 0);
    qsort(samples, (size_t)taken, sizeof *samples, by_value);
    printf("{\"operation\":\"%s\",\"unit\":\"MB/s\",\"bytes\":%lu,\"count\":%ld,\"median\":%.9g,\"min\":%.9g,\"max\":%.9g}\n",
           what->name, (unsigned long)size, taken, samples[taken / 2], samples[0], samples[taken - 1]);
    return 0;
}
