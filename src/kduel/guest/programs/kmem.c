/* kmem: how much memory a program can have.
 *
 *   kmem [--most MIB]
 *
 * A child takes memory page by page, writing to each, until it is refused, killed, or has MIB. The parent watches: it
 * is the last that the kernel would kill, keeps its own pages in memory, and knows from a page that both share how
 * many the child surely had. One line of JSON on stdout. Ends with 0 however the child ended, 1 where it was not able
 * to try.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP = 256 << 10 }; /* asked for at once, bytes */

struct account {
    volatile unsigned long pages; /* that the child has written to */
    volatile int refused;         /* errno */
};

static void die(const char *what) {
    fprintf(stderr, "kmem: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* -1000: never kill me, 1000: me first. Kernels before 2.6.36 have -17 to 15 instead, 2.4 has neither. */
static void killed(const char *score, const char *old) {
    FILE *file = fopen("/proc/self/oom_score_adj", "w");
    if (!file) {
        file = fopen("/proc/self/oom_adj", "w");
        score = old;
    }
    if (!file) return;
    fputs(score, file);
    fclose(file);
}

static void take(struct account *account, unsigned long page, unsigned long most) {
    killed("1000", "15");
    /* A huge page would be had whole for one write. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    for (;;) {
        char *area = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (area == MAP_FAILED) {
            account->refused = errno;
            _exit(0);
        }
        for (unsigned long at = 0; at < STEP; at += page) {
            if (most && account->pages >= most) _exit(0);
            /* Not the same in any two pages, or they might be kept as one. */
            *(volatile unsigned long *)(area + at) = account->pages + 1;
            account->pages++;
        }
    }
}

int main(int count, char **words) {
    unsigned long mib = 0, page = (unsigned long)sysconf(_SC_PAGESIZE);
    if (count == 3 && !strcmp(words[1], "--most")) mib = strtoul(words[2], NULL, 10);
    if ((count != 1 && count != 3) || (count == 3 && !mib)) {
        fputs("usage: kmem [--most MIB]\n", stderr);
        return 2;
    }
    struct account *account = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (account == MAP_FAILED) die("mmap");
    memset(account, 0, sizeof *account);
    killed("-1000", "-17");
    mlockall(MCL_CURRENT | MCL_FUTURE);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (!child) take(account, page, mib * ((1UL << 20) / page));
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) die("waitpid");
    const char *end = WIFSIGNALED(status) ? "killed" : account->refused ? "refused" : mib ? "most" : "ended";
    printf("{\"page\":%lu,\"pages\":%lu,\"kib\":%lu,\"end\":\"%s\",\"signal\":%d,\"errno\":%d,\"pid\":%d}\n", page,
           account->pages, account->pages * (page >> 10), end, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
           account->refused, (int)child);
    return 0;
}
