/* kpress: memory that is touched in a fixed order, for a control group that has too little of it.
 *
 *   kpress --mib N --touches N --pattern skewed|random|sequential --seed N [--file PATH] [--writes PERCENT] [--huge 1]
 *          [--read-every N] COUNTERS...
 *
 * It fills N MiB, of anonymous memory or of a mapped file, half of each page with bytes that do not compress. Then it
 * touches pages: nine of ten touches go to a quarter of them (skewed), or to all alike (random), or round and round
 * (sequential). Every touch checks what the page holds. Pattern and content follow from the seed alone. Huge pages are kept out,
 * unless --huge 1: how many there are depends on the address that a boot draws, and a kernel reclaims one as 512 pages.
 *
 * COUNTERS are files of lines "NAME NUMBER", such as memory.stat: how much each grew while pages were touched is left in
 * ./counters as "FILE NAME GROWTH". They are read after every N touches, too: a kernel adds a group's counters up when
 * they are read. One line of JSON on stdout. Ends with 1 where it was not able to, or a page came back wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, TEXT = 16 << 10, FILES = 2 };

static char before[FILES][TEXT], after[FILES][TEXT]; /* written to at the start, so that reading counters faults nothing in */

static void die(const char *what) {
    fprintf(stderr, "kpress: %s: %s\n", what, errno ? strerror(errno) : "wrong");
    exit(1);
}

/* splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t draw(uint64_t *state) { return mixed(*state += 0x9e3779b97f4a7c15u); }

static void read_counters(char (*into)[TEXT], char **paths, int count) {
    for (int i = 0; i < count; i++) {
        int file = open(paths[i], O_RDONLY);
        ssize_t got = 0, size = 0;
        while (file >= 0 && size < TEXT - 1 && (got = read(file, into[i] + size, (size_t)(TEXT - 1 - size))) > 0) size += got;
        if (file < 0 || got < 0 || size == TEXT - 1) die(paths[i]);
        into[i][size] = 0;
        close(file);
    }
}

static void write_growth(char **paths, int count) {
    FILE *out = fopen("counters", "w");
    if (!out) die("counters");
    for (int i = 0; i < count; i++) {
        char *end, *rest = before[i], name[128];
        const char *slash = strrchr(paths[i], '/'), *called = slash ? slash + 1 : paths[i];
        unsigned long long was, is;
        for (char *line = strtok_r(after[i], "\n", &end); line; line = strtok_r(NULL, "\n", &end)) {
            if (sscanf(line, "%127s %llu", name, &is) != 2) continue;
            /* The same lines in the same order, but for what came up meanwhile. */
            size_t length = strlen(name);
            char *found = rest;
            while ((found = strstr(found, name)) && !((found == before[i] || found[-1] == '\n') && found[length] == ' ')) found++;
            if (!found || sscanf(found + length, " %llu", &was) != 1) continue;
            fprintf(out, "%s %s %lld\n", called, name, (long long)(is - was));
            rest = found;
        }
    }
    if (fclose(out)) die("counters");
}

static uint64_t option(const char *name, char **words, int count, uint64_t otherwise) {
    for (int i = 1; i + 1 < count; i += 2)
        if (!strcmp(words[i], name)) {
            char *end;
            uint64_t value = strtoull(words[i + 1], &end, 10);
            if (!*words[i + 1] || *end) die(name);
            return value;
        }
    return otherwise;
}

static const char *word(const char *name, char **words, int count) {
    for (int i = 1; i + 1 < count; i += 2)
        if (!strcmp(words[i], name)) return words[i + 1];
    return "";
}

int main(int count, char **words) {
    int options = 1;
    while (options + 1 < count && !strncmp(words[options], "--", 2)) options += 2;
    uint64_t pages = option("--mib", words, options, 0) << 8, touches = option("--touches", words, options, 0);
    uint64_t every = option("--read-every", words, options, 0);
    uint64_t seed = option("--seed", words, options, 0), writes = option("--writes", words, options, 0);
    const char *pattern = word("--pattern", words, options), *path = word("--file", words, options);
    int files = count - options, skewed = !strcmp(pattern, "skewed"), sequential = !strcmp(pattern, "sequential");
    if (!pages || !touches || files < 0 || files > FILES || (!skewed && !sequential && strcmp(pattern, "random"))) {
        fputs("usage: kpress --mib N --touches N --pattern skewed|random|sequential --seed N [--file PATH] [--writes PERCENT] [--huge 1] [--read-every N] COUNTERS...\n", stderr);
        return 2;
    }
    int file = -1;
    if (*path && ((file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600)) < 0 || ftruncate(file, (off_t)(pages * PAGE)))) die(path);
    uint64_t *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) die("mmap");
    /* EINVAL: a kernel that has none. */
    if (!option("--huge", words, options, 0) && madvise(memory, pages * PAGE, MADV_NOHUGEPAGE) && errno != EINVAL) die("madvise");
    memset(before, 1, sizeof before);
    memset(after, 1, sizeof after);
    for (uint64_t page = 0; page < pages; page++) {
        uint64_t state = mixed(seed) + page * WORDS;
        for (int i = 0; i < WORDS / 2; i++) memory[page * WORDS + (unsigned)i] = draw(&state);
    }
    if (file >= 0 && fsync(file)) die(path);

    struct rusage own, now;
    struct timespec begin, end;
    uint64_t state = mixed(~seed), written = 0;
    read_counters(before, words + options, files);
    getrusage(RUSAGE_SELF, &own);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint64_t touch = 0; touch < touches; touch++) {
        if (every && touch && touch % every == 0) read_counters(after, words + options, files);
        uint64_t drawn = draw(&state), page = sequential ? touch : drawn >> 8;
        page %= skewed && (drawn & 255) < 230 ? (pages + 3) / 4 : pages;
        volatile uint64_t *first = memory + page * WORDS;
        uint64_t expected = mixed(seed) + page * WORDS;
        if (*first != draw(&expected)) {
            errno = 0;
            die("a page's content");
        }
        if (writes && draw(&state) % 100 < writes) first[1] = touch, written++;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    getrusage(RUSAGE_SELF, &now);
    read_counters(after, words + options, files);
    write_growth(words + options, files);
    printf("{\"pages\":%llu,\"touches\":%llu,\"writes\":%llu,\"major_faults\":%ld,\"minor_faults\":%ld,\"ns\":%lld}\n",
           (unsigned long long)pages, (unsigned long long)touches, (unsigned long long)written, now.ru_majflt - own.ru_majflt,
           now.ru_minflt - own.ru_minflt,
           (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
    return 0;
}
