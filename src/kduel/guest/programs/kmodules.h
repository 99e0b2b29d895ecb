/* Kernel modules for kbench: those that the guest's initial RAM disk carries, or on other machines what modprobe finds. */
#ifndef KDUEL_KMODULES_H
#define KDUEL_KMODULES_H

#include "calls.h"

#define CARRIED "/kduel/carried/"
#define SMALL_MODULE "ts_kmp" /* needs no other one, nobody uses it unasked, and all of Debian's kernels since 5.10 have it */

#ifndef SYS_finit_module
#define SYS_finit_module __NR_finit_module
#endif
#ifndef SYS_init_module
#define SYS_init_module __NR_init_module
#endif
#ifndef SYS_delete_module
#define SYS_delete_module __NR_delete_module
#endif

static int load_file(const char *path, const char *options) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    int done = syscall(SYS_finit_module, fd, options, 0) == 0 || errno == EEXIST;
    close(fd);
    return done;
}

/* Whatever it needs is loaded before. What is built in, or is not there at all, shows when it is used. */
static void load_module(const char *name, const char *options) {
    char path[128], next[128] = "";
    snprintf(path, sizeof path, CARRIED "%s", name);
    FILE *list = fopen(path, "r");
    if (!list) {
        pid_t pid = (pid_t)need(fork(), "fork");
        if (pid == 0) {
            int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, 2);
            execlp("modprobe", "modprobe", name, *options ? options : NULL, NULL);
            _exit(1);
        }
        need(waitpid(pid, NULL, 0), "waitpid");
        return;
    }
    /* One that is for another CPU refuses to load; the last one is the module itself. */
    while (fscanf(list, "%127s", path) == 1) {
        if (*next) load_file(next, "");
        strcpy(next, path);
    }
    if (*next) load_file(next, options);
    fclose(list);
}

/* Loading a small module. It is unloaded unmeasured, as that waits until no CPU can be using it any more. Its signature is
 * taken off: checking one would be nine tenths of the call and more, depending on the distribution's kind of key. */

static char module_bytes[1 << 18];
static size_t module_size;

static size_t without_signature(const char *bytes, size_t size) {
    static const char magic[] = "~Module signature appended~\n";
    enum { MAGIC = sizeof magic - 1, TRAILER = 12 /* struct module_signature; its last four bytes are a length, big end first */ };
    if (size < MAGIC + TRAILER || memcmp(bytes + size - MAGIC, magic, MAGIC)) return size;
    const unsigned char *end = (const unsigned char *)bytes + size - MAGIC;
    size_t length = (size_t)end[-4] << 24 | (size_t)end[-3] << 16 | (size_t)end[-2] << 8 | end[-1];
    return length <= size - MAGIC - TRAILER ? size - MAGIC - TRAILER - length : size;
}
static void unload_small(long calls) {
    (void)calls;
    if (syscall(SYS_delete_module, SMALL_MODULE, O_NONBLOCK) < 0 && errno != ENOENT) die("unloading " SMALL_MODULE);
}
static void open_module(long argument) {
    int fd = open(CARRIED SMALL_MODULE ".ko", O_RDONLY | O_CLOEXEC);
    ssize_t got;
    (void)argument;
    if (fd < 0) errno = ENODEV, die("this kernel's module " SMALL_MODULE);
    module_size = 0;
    while ((got = need(read(fd, module_bytes + module_size, sizeof module_bytes - module_size), SMALL_MODULE)) > 0)
        module_size += (size_t)got;
    if (module_size == sizeof module_bytes) errno = EFBIG, die(SMALL_MODULE);
    module_size = without_signature(module_bytes, module_size);
    close(fd);
}
static void load_small(void) { need(syscall(SYS_init_module, module_bytes, module_size, ""), "loading " SMALL_MODULE); }
static void close_module(void) { unload_small(0); }

#endif
