/* A QEMU plug-in that counts the cache lines that move between vCPUs, in marked operations.
 *
 * Arguments: out=FILE (a line of JSON for each region, in the order of time), linear=on (the kernel's addresses are not random, and
 * those of its linear mapping and of its image are translated without asking QEMU), details=REGION (adds the lines and places of
 * this region's first visit), snapshot=FILE (with details: writes the guest's memory there as that visit ends), memory=BYTES.
 *
 * Caches are as large as memory, coherent (MSI), one for each vCPU, and see the accesses of kernel code: no code fetches, page-table
 * walks or user code, and no memory of the program's own. A line of 64 bytes *moves* where a vCPU reads what another one wrote last, or writes what another
 * one holds; it counts once in an operation. The move is *true* sharing where this vCPU, until the line moves on, touches bytes that
 * another one wrote while it had the line, or writes bytes that it touched; else *false*: only the line is common.
 *
 * The weight of the lines that move inside an operation: the loads and stores by which its vCPU uses them in it, before they move
 * and afterwards, and the locked operations among these (a locked instruction is a load and a store, and one operation).
 *
 * A guest program selects a region by as many SELECT markers; caches are empty then. Operations lie between BEGIN and END; those
 * before the next SELECT warm up, those from there to RESET are counted.
 *
 * The vCPUs take turns in one thread of QEMU: vcpus.h.
 */
#include "code.h"
#include "vcpus.h"

enum { TURN = 20000 /* blocks that a vCPU executes before it is another's turn */, PAGE = 4096 };

struct insn {
    uint64_t pc;
    bool call, locked;
};
/* How often a line moved at one place of the code, coming from another. */
struct site {
    struct site *next;
    uint64_t line, pc, via, target, from, from_via, from_target;
    char kind;
    uint8_t cpu, from_cpu, inside;
    uint32_t times, untrue;
};
struct place {
    uint64_t pc, via, target;
};
struct cache_line {
    struct cache_line *next;
    uint64_t line, address;
    uint64_t reads[CPUS], writes[CPUS];       /* bytes, since the line came to the vCPU */
    uint64_t others_touched, others_wrote;    /* bytes, of those that had it before its last move */
    uint64_t shared, moving;                  /* bytes that were found in true sharing; that were accessed when it moved */
    struct place last[CPUS], wrote[CPUS];
    struct site *untrue;                      /* of its last move, while that is not known to be true sharing */
    uint64_t used;                            /* bytes, by the vCPU of an operation in it */
    uint32_t moved, operation, sharers;
    uint32_t used_in, accesses, locked;       /* the last operation whose vCPU used it, and how often in it */
    uint32_t operations;                      /* whose vCPU used it */
    bool inside;                              /* whether that move was in what the operation's vCPU did */
    int8_t owner, latest;
};
struct counts {
    uint8_t cpu;
    uint32_t inside, outside, untrue, accesses, locked;
};

static FILE *out;
static const char *snapshot_path;
static uint64_t memory_bytes;
static uint32_t details_region;
static bool linear, details_done;
static struct cache_line *table[TABLE];
static struct site *sites[TABLE];
static struct counts *counted_operations;
static size_t operations_room;
static uint64_t unknown_addresses;
static uint32_t selected, operation_number, first_counted; /* `first_counted`: 0 while it warms up */
static int operating = -1;                                 /* the vCPU that is in an operation */
static struct place calls[CPUS];
static bool called[CPUS];
static void (*read_memory)(uint64_t, void *, uint64_t, bool);

/* Turns */

static void on_turn_block(unsigned vcpu, void *data) {
    static void *last;
    static uint32_t blocks_run;
    (void)vcpu;
    if (last != running()) last = running(), blocks_run = 0;
    int cpu = running_number();
    /* At a function's entry, where flags mean nothing: QEMU 7.2 may lose them there (a kernel's oops shows it). */
    if (++blocks_run >= TURN && (called[cpu] || blocks_run >= 2 * TURN)) {
        blocks_run = 0;
        end_turn(last);
    }
    if (called[cpu]) {
        called[cpu] = false;
        calls[cpu].target = (uint64_t)(uintptr_t)data;
    }
}

/* The caches */

static bool detailed(void) { return details_region == selected && !details_done; }

static struct counts *count_of(uint32_t number) {
    uint32_t at = number - first_counted;
    return first_counted && number >= first_counted && at < operations_room ? counted_operations + at : NULL;
}

static struct site *site_of(struct cache_line *l, int cpu, int from, const struct place *now, const struct place *before, char kind,
                            bool inside) {
    struct site **slot = &sites[mix(l->line ^ now->pc, before->pc ^ now->via) % TABLE], *s;
    for (s = *slot; s; s = s->next)
        if (s->line == l->line && s->pc == now->pc && s->via == now->via && s->from == before->pc && s->from_via == before->via &&
            s->kind == kind && s->cpu == cpu && s->from_cpu == from && s->inside == inside)
            return s;
    s = fresh(sizeof *s);
    *s = (struct site){.next = *slot, .line = l->line, .pc = now->pc, .via = now->via, .target = now->target, .from = before->pc,
                       .from_via = before->via, .from_target = before->target, .kind = kind, .cpu = (uint8_t)cpu,
                       .from_cpu = (uint8_t)from, .inside = inside};
    return *slot = s;
}

static void move(struct cache_line *l, int cpu, int from, const struct place *now, const struct place *before, char kind,
                 uint64_t bytes) {
    struct counts *c = count_of(operation_number);
    l->untrue = NULL;
    l->others_touched = l->others_wrote = 0;
    for (int i = 0; i < vcpus; i++)
        if (i != cpu && (i == l->owner || l->sharers >> i & 1)) {
            l->others_touched |= l->reads[i] | l->writes[i];
            l->others_wrote |= l->writes[i];
        }
    l->reads[cpu] = l->writes[cpu] = 0;
    if (!c || l->operation == operation_number) return; /* a line counts once in an operation */
    l->operation = operation_number;
    l->moving |= bytes;
    bool inside = cpu == operating;
    if (inside) c->inside++, c->untrue++, c->accesses += l->accesses, c->locked += l->locked;
    else c->outside++;
    l->moved++;
    l->inside = inside;
    l->untrue = detailed() ? site_of(l, cpu, from, now, before, kind, inside) : (struct site *)l; /* what is not NULL */
    if (detailed()) l->untrue->times++, l->untrue->untrue++;
}

/* This access shows that the line's last move was for bytes that both use. */
static void prove_true(struct cache_line *l, uint64_t bytes) {
    struct counts *c = count_of(l->operation);
    l->shared |= bytes;
    if (!l->untrue) return;
    if (c && l->inside) c->untrue--;
    if (detailed()) l->untrue->untrue--;
    l->untrue = NULL;
}

static int other_sharer(const struct cache_line *l, int cpu) {
    uint32_t others = l->sharers & ~(1u << cpu);
    return l->latest != cpu && l->latest >= 0 ? l->latest : others ? __builtin_ctz(others) : cpu;
}

/* An access of the operation's vCPU: weighs at once where the line has moved in it, else as it moves. */
static void weigh(struct cache_line *l, bool locked, uint64_t bytes) {
    struct counts *c = count_of(operation_number);
    if (!c) return;
    if (l->used_in != operation_number) l->used_in = operation_number, l->accesses = l->locked = 0, l->operations++;
    l->used |= bytes;
    l->accesses++, l->locked += locked;
    if (l->operation == operation_number && l->inside) c->accesses++, c->locked += locked;
}

static void touch(int cpu, uint64_t physical, uint64_t address, unsigned size, bool store, const struct insn *insn) {
    unsigned at = physical & 63;
    if (at + size > 64) {
        touch(cpu, (physical | 63) + 1, (address | 63) + 1, at + size - 64, store, insn);
        size = 64 - at;
    }
    uint64_t bytes = (size >= 64 ? ~0ull : (1ull << size) - 1) << at;
    struct cache_line **slot = &table[mix(physical >> 6, 0) % TABLE], *l;
    for (l = *slot; l && l->line != physical >> 6;) l = l->next;
    if (!l) {
        l = fresh(sizeof *l);
        l->next = *slot, l->line = physical >> 6, l->address = address & ~63ull, l->owner = l->latest = -1;
        *slot = l;
    }
    struct place now = {insn->pc, calls[cpu].via, calls[cpu].target};
    if (cpu == operating) weigh(l, store && insn->locked, bytes);
    if (store && l->owner != cpu) {
        if (l->owner >= 0) move(l, cpu, l->owner, &now, &l->wrote[l->owner], 'W', bytes);
        else if (l->sharers & ~(1u << cpu)) {
            int from = other_sharer(l, cpu);
            move(l, cpu, from, &now, &l->last[from], 'I', bytes);
        }
        l->owner = (int8_t)cpu;
        l->sharers = 1u << cpu;
    } else if (!store) {
        if (!(l->sharers >> cpu & 1) && l->owner >= 0) {
            move(l, cpu, l->owner, &now, &l->wrote[l->owner], 'R', bytes);
            l->owner = -1;
        }
        l->sharers |= 1u << cpu;
    }
    uint64_t common = bytes & (store ? l->others_touched : l->others_wrote);
    l->latest = (int8_t)cpu;
    if (common) prove_true(l, common);
    if (store) l->writes[cpu] |= bytes, l->wrote[cpu] = now;
    else l->reads[cpu] |= bytes;
    l->last[cpu] = now;
}


static const uint64_t linear_begin = 0xffff888000000000u, linear_end = 0xffffc88000000000u;
static const uint64_t image_begin = 0xffffffff80000000u, image_end = 0xffffffffa0000000u;

static void on_kernel_access(unsigned vcpu, uint32_t info, uint64_t address, void *data) {
    const struct insn *i = data;
    bool store = qemu_plugin_mem_is_store(info);
    uint64_t physical;
    (void)vcpu;
    if (!selected || !(address >> 63)) return;
    int cpu = running_number();
    if (linear && address >= linear_begin && address < linear_end) physical = address - linear_begin;
    else if (linear && address >= image_begin && address < image_end) physical = address - image_begin;
    else {
        struct qemu_plugin_hwaddr *found = qemu_plugin_get_hwaddr(info, address);
        if (!found || qemu_plugin_hwaddr_is_io(found)) {
            unknown_addresses++;
            return;
        }
        physical = qemu_plugin_hwaddr_phys_addr(found);
    }
    touch(cpu, physical, address, 1u << qemu_plugin_mem_size_shift(info), store, i);
    if (i->call && store) {
        calls[cpu].via = i->pc;
        called[cpu] = true;
    }
}

/* What is written */

static void write_snapshot(void) {
    static char page[PAGE];
    FILE *file = fopen(snapshot_path, "w");
    for (uint64_t at = 0; file && at < memory_bytes; at += PAGE) {
        bool empty = true, device = at >= 0xa0000 && at < 0x100000;
        if (!device) read_memory(at, page, PAGE, false);
        for (int i = 0; i < PAGE && empty && !device; i++) empty = !page[i];
        if (fseek(file, (long)at, SEEK_SET) || (!empty && fwrite(page, PAGE, 1, file) != 1)) break;
    }
    if (!file || fclose(file) || truncate(snapshot_path, (long)memory_bytes)) {
        perror(snapshot_path);
        abort();
    }
}

#define HEX(x) ((unsigned long long)(x))
static void write_details(void) {
    const char *comma = "";
    fprintf(out, ",\"lines\":[");
    for (int slot = 0; slot < TABLE; slot++)
        for (struct cache_line *l = table[slot]; l; l = l->next) {
            if (!l->moved && !l->operations) continue;
            fprintf(out, "%s[%llu,%llu,%llu,%llu,%llu,%u]", comma, HEX(l->line << 6), HEX(l->address), HEX(l->shared),
                    HEX(l->moving), HEX(l->used), l->operations);
            comma = ",";
        }
    fprintf(out, "],\"sites\":[");
    comma = "";
    for (int slot = 0; slot < TABLE; slot++)
        for (struct site *s = sites[slot]; s; s = s->next) {
            fprintf(out, "%s[%llu,[%llu,%llu,%llu],[%llu,%llu,%llu],\"%c\",%d,%d,%s,%u,%u]", comma, HEX(s->line << 6), HEX(s->pc),
                    HEX(s->via), HEX(s->target), HEX(s->from), HEX(s->from_via), HEX(s->from_target), s->kind, s->cpu, s->from_cpu,
                    s->inside ? "true" : "false", s->times, s->untrue);
            comma = ",";
        }
    fprintf(out, "]");
}

static void write_region(void) {
    fprintf(out, "{\"region\":%u,\"cpus\":%d,\"unknown\":%llu,\"operations\":[", selected, vcpus, HEX(unknown_addresses));
    for (uint32_t i = first_counted; first_counted && i <= operation_number; i++) {
        struct counts *c = count_of(i);
        fprintf(out, "%s[%d,%u,%u,%u,%u,%u]", i > first_counted ? "," : "", c->cpu, c->inside, c->untrue, c->outside, c->accesses,
                c->locked);
    }
    fprintf(out, "]");
    if (detailed()) {
        write_details();
        if (snapshot_path) write_snapshot();
        details_done = true;
    }
    fprintf(out, "}\n");
    if (fflush(out)) abort(); /* QEMU may have to be killed in the end */
}

static void empty_caches(void) {
    for (int slot = 0; slot < TABLE; slot++) {
        for (struct cache_line *l = table[slot], *next; l; l = next) next = l->next, free(l);
        for (struct site *s = sites[slot], *next; s; s = next) next = s->next, free(s);
        table[slot] = NULL, sites[slot] = NULL;
    }
    operation_number = first_counted = 0;
    unknown_addresses = 0;
}

static void on_region_marker(unsigned vcpu, void *data) {
    int what = (int)(intptr_t)data, cpu = running_number();
    (void)vcpu;
    if (what == RESET) {
        if (selected && first_counted) write_region();
        selected = 0;
        operating = -1;
        empty_caches();
    } else if (what == SELECT && !operation_number) {
        selected++;
    } else if (what == SELECT && selected) {
        first_counted = operation_number + 1;
    } else if (what == BEGIN && selected) {
        operation_number++;
        operating = cpu;
        if (!first_counted) return;
        if (operation_number - first_counted >= operations_room) {
            operations_room = operations_room ? 2 * operations_room : 1024;
            counted_operations = need(realloc(counted_operations, operations_room * sizeof *counted_operations));
        }
        *count_of(operation_number) = (struct counts){.cpu = (uint8_t)cpu};
    } else if (what == END && cpu == operating) {
        operating = -1;
    }
}

/* With a lock prefix, or an exchange with memory, which needs none. */
static bool is_locked(const uint8_t *b, size_t size) {
    static const char prefixes[] = {'\xf0', '\xf2', '\xf3', '\x66', '\x2e', '\x3e', '\x64', '\x65'};
    bool locked = false;
    size_t i = 0;
    for (; i < size && (memchr(prefixes, b[i], sizeof prefixes) || (b[i] & 0xf0) == 0x40); i++) locked |= b[i] == 0xf0;
    return locked || (i + 1 < size && (b[i] & 0xfe) == 0x86 && b[i + 1] < 0xc0);
}

static void on_halting(unsigned vcpu, void *data) {
    (void)vcpu, (void)data;
    guard_halt();
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    uint64_t pc = qemu_plugin_tb_vaddr(tb);
    bool kernel = pc >> 63;
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_turn_block, NO_REGISTERS, (void *)(uintptr_t)pc);
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t code[INSN_MAX];
        size_t size = bytes_of(insn, code, sizeof code);
        int marker = kernel ? NO_MARKER : marker_x86(code, size);
        if (kernel) {
            struct insn *what = fresh(sizeof *what);
            *what = (struct insn){pc, kind_x86(code, size) == CALL, is_locked(code, size)};
            qemu_plugin_register_vcpu_mem_cb(insn, on_kernel_access, NO_REGISTERS, READS_AND_WRITES, what);
        }
        if (marker != NO_MARKER)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_region_marker, NO_REGISTERS, (void *)(intptr_t)marker);
        if (guard_halt && is_halt_x86(code, size)) qemu_plugin_register_vcpu_insn_exec_cb(insn, on_halting, NO_REGISTERS, NULL);
        pc += size;
    }
}

static void on_exit_(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    if (fclose(out)) abort();
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **words) {
    const char *path = NULL;
    for (int i = 0; i < count; i++) {
        if (!strncmp(words[i], "out=", 4)) path = words[i] + 4;
        else if (!strncmp(words[i], "snapshot=", 9)) snapshot_path = words[i] + 9;
        else if (!strncmp(words[i], "memory=", 7)) memory_bytes = strtoull(words[i] + 7, NULL, 0);
        else if (!strncmp(words[i], "details=", 8)) details_region = (uint32_t)strtoul(words[i] + 8, NULL, 0);
        else if (!strcmp(words[i], "linear=on")) linear = true;
    }
    if (!find_vcpus(info)) return 1;
    if (snapshot_path) read_memory = (void (*)(uint64_t, void *, uint64_t, bool))(uintptr_t)exported("cpu_physical_memory_rw");
    if (snapshot_path && !read_memory) return 1;
    if (!path) {
        fprintf(stderr, "kduel sharing: needs a file to write\n");
        return 1;
    }
    if (!(out = fopen(path, "w"))) {
        perror(path);
        return 1;
    }
    (void)counter_now, (void)count_executions, (void)counter_new;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
    return 0;
}
