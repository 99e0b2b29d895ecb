/* scx_plain: the least that a sched_ext scheduler can be: none of its operations is given, so that the kernel does what
 * it does by default, one queue for all CPUs, first come first served. It has no BPF code, so nothing compiles it.
 *
 * It stays until it is told to end (SIGTERM, SIGINT); with its last descriptor the kernel's own scheduler takes over.
 * Types are found by name in the kernel's own description, /sys/kernel/btf/vmlinux (Documentation/bpf/btf.rst).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPS "sched_ext_ops"

enum { MAGIC = 0xeb9f, STRUCT = 4 };
/* As of Linux 6.4, newer than the compiler's headers. */
enum { LINK = 1 << 13, ATTACH_STRUCT_OPS = 44 };

struct header {
    uint16_t magic;
    uint8_t version, flags;
    uint32_t length, types_at, types_length, strings_at, strings_length;
};

struct type {
    uint32_t name, info, size;
};

struct member {
    uint32_t name, type, offset;
};

/* The kernel's types. */
struct btf {
    const char *types, *types_end, *strings;
    uint32_t strings_length;
};

__attribute__((noreturn)) static void fail(const char *what, int error) {
    fprintf(stderr, "scx_plain: %s%s%s\n", what, error ? ": " : "", error ? strerror(error) : "");
    exit(1);
}

static long bpf(int command, union bpf_attr *attributes, size_t size) {
    return syscall(SYS_bpf, command, attributes, size);
}

static struct btf read_btf(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || fstat(file, &about)) fail("the kernel does not tell its types (CONFIG_DEBUG_INFO_BTF)", errno);
    size_t size = (size_t)about.st_size, have = 0;
    char *text = malloc(size);
    for (ssize_t got; text && have < size && (got = read(file, text + have, size - have)) > 0;) have += (size_t)got;
    close(file);
    struct header head;
    if (!text || have < size || size < sizeof head) fail("the kernel's types cannot be read", EIO);
    memcpy(&head, text, sizeof head);
    uint64_t types = (uint64_t)head.length + head.types_at, strings = (uint64_t)head.length + head.strings_at;
    if (head.magic != MAGIC || types + head.types_length > size || strings + head.strings_length > size)
        fail("the kernel's types are not in the form that is known", 0);
    return (struct btf){text + types, text + types + head.types_length, text + strings, head.strings_length};
}

/* What follows a type's three words, in bytes, by kind; -1 for a kind that is not known. */
static long rest_of(uint32_t kind, uint32_t count) {
    static const signed char fixed[] = {0, 4, 0, 12, -1, -1, -1, 0, 0, 0, 0, 0, 0, -1, 4, -1, 0, 4, 0, -1};
    static const signed char each[] = {0, 0, 0, 0, 12, 12, 8, 0, 0, 0, 0, 0, 0, 8, 0, 12, 0, 0, 0, 12};
    if (kind >= sizeof fixed) return -1;
    return fixed[kind] < 0 ? (long)each[kind] * count : fixed[kind];
}

static int named(const struct btf *btf, uint32_t at, const char *name) {
    return at < btf->strings_length && !strncmp(btf->strings + at, name, btf->strings_length - at);
}

/* The number of the structure of that name, with its size, and where its member `inside` begins; 0 without one. */
static uint32_t find(const struct btf *btf, const char *name, const char *inside, uint32_t *size, uint32_t *offset) {
    uint32_t number = 1;
    for (const char *at = btf->types; at + sizeof(struct type) <= btf->types_end; number++) {
        struct type type;
        memcpy(&type, at, sizeof type);
        at += sizeof type;
        uint32_t kind = type.info >> 24 & 31, count = type.info & 0xffff;
        long rest = rest_of(kind, count);
        if (rest < 0 || rest > btf->types_end - at) fail("the kernel's types are not in the form that is known", 0);
        for (uint32_t i = 0; kind == STRUCT && named(btf, type.name, name) && i < count; i++) {
            struct member member;
            memcpy(&member, at + i * sizeof member, sizeof member);
            if (!named(btf, member.name, inside)) continue;
            *size = type.size;
            /* With the top bit, a bit field's width is kept above the offset. */
            *offset = (type.info >> 31 ? member.offset & 0xffffff : member.offset) / 8;
            return number;
        }
        at += rest;
    }
    return 0;
}

/* Types of the map's own, which the kernel asks for: a single integer. */
static int own_types(void) {
    struct {
        struct header head;
        struct type type;
        uint32_t bits;
        char strings[5];
    } own = {{MAGIC, 1, 0, sizeof(struct header), 0, 16, 16, 5}, {1, 1u << 24, 4}, 32, "\0int"};
    union bpf_attr attributes = {0};
    attributes.btf = (uint64_t)(uintptr_t)&own;
    attributes.btf_size = sizeof own.head + 16 + 5;
    long file = bpf(BPF_BTF_LOAD, &attributes, sizeof attributes);
    if (file < 0) fail("the kernel does not take types", errno);
    return (int)file;
}

/* Set the operations, none but the name, and hand them to the kernel. Returns what holds them. */
static int attach(const struct btf *btf) {
    uint32_t size, ops_size, data, name;
    uint32_t value_type = find(btf, "bpf_struct_ops_" OPS, "data", &size, &data);
    if (!value_type || !find(btf, OPS, "name", &ops_size, &name) || data + name + sizeof "plain" > size)
        fail("this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT)", 0);

    union bpf_attr map = {0};
    map.map_type = BPF_MAP_TYPE_STRUCT_OPS;
    map.key_size = 4, map.value_size = size, map.max_entries = 1, map.map_flags = LINK;
    map.btf_fd = (uint32_t)own_types(), map.btf_vmlinux_value_type_id = value_type;
    strcpy(map.map_name, "plain");
    long ops = bpf(BPF_MAP_CREATE, &map, sizeof map);
    if (ops < 0) fail("the kernel makes no room for a scheduler", errno);

    char *value = calloc(1, size);
    uint32_t key = 0;
    if (!value) fail("no memory", ENOMEM);
    strcpy(value + data + name, "plain");
    union bpf_attr set = {0};
    set.map_fd = (uint32_t)ops, set.key = (uint64_t)(uintptr_t)&key, set.value = (uint64_t)(uintptr_t)value;
    if (bpf(BPF_MAP_UPDATE_ELEM, &set, sizeof set)) fail("the kernel does not take the scheduler", errno);

    union bpf_attr link = {0};
    link.link_create.prog_fd = (uint32_t)ops; /* the map's place is the program's */
    link.link_create.attach_type = ATTACH_STRUCT_OPS;
    long held = bpf(BPF_LINK_CREATE, &link, sizeof link);
    if (held < 0) fail("the kernel does not start the scheduler (is another one at work?)", errno);
    return (int)held;
}

int main(int count, char **words) {
    if (count == 2 && !strcmp(words[1], "--version")) {
        puts("scx_plain 1");
        return 0;
    }
    if (count > 1) {
        fprintf(stderr, "scx_plain: unknown argument %s\nusage: scx_plain [--version]\n", words[1]);
        return 2;
    }
    sigset_t ends;
    int signal;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    struct btf btf = read_btf("/sys/kernel/btf/vmlinux");
    int held = attach(&btf);
    while (sigwait(&ends, &signal)) {}
    close(held);
    return 0;
}
