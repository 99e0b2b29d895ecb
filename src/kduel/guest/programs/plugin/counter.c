/* A QEMU plug-in that counts the instructions of marked regions, by call chain and block of code, exactly.
 *
 * Arguments: out=FILE (written when QEMU ends), disassemble=on (adds every block's text), lines=on (adds which instructions
 * were the first to touch a cache line in an operation, from BEGIN to END, and how often), shares=FILE (how many instructions
 * of user code and of the kernel each operation took, as lines of JSON, in the order of time), footprint=FILE (how many lines and
 * pages operations touched, as lines of JSON, in the order of time), boot=ADDRESS (instead of all
 * else: count from the first block at ADDRESS to the first of user code, write that, and end QEMU; with functions=on the
 * boot is region 1, counted like others, and QEMU goes on). Without any, nothing is
 * counted. In all cases a preloaded guard (guard.c) is told when the vCPU is about to halt.
 *
 * A guest program selects a region by number, with as many SELECT markers, and measures between BEGIN and END
 * markers; RESET leaves the region. Each visit of a region, up to its RESET, is counted apart: its id is the region's number
 * and, from bit VISIT_SHIFT on, how often the region was left before. Markers are instructions without effect, and are
 * not counted.
 *
 * How it counts. QEMU adds one to a counter at every instruction, in generated code. When a block begins, what was
 * added since the last one began belongs to that one; so a block that an exception cut short is counted as far as
 * it came. An instruction that faulted is executed again later, and counts once, as it does for QEMU's own clock.
 *
 * How it knows call chains (x86_64). Every call and return of the kernel accesses its stack: the address says which
 * stack (16 KiB, aligned) and how deep. Frames are kept per stack, so a task that sleeps finds its chain again. A
 * switch to an empty stack by a call (interrupt stacks) continues the chain, one by a return (a new task) begins one.
 * Where user code enters the kernel a chain begins; those addresses are known from then on, and others by what their
 * code looks like, so that an exception or interrupt in kernel mode is seen too: its frames go below those of what it
 * interrupted, until an iret.
 *
 * tables.h has what is kept, chains.h call chains, counting.h counts, code.h the reading of code. Here is what is done when QEMU
 * translates a block, the boot alone, and what is written at the end.
 */
#include "code.h"
#include "counting.h"

#include <dlfcn.h>
#include <unistd.h>

/* The boot alone */

/* `data` is the block's address, odd where its last instruction may return to user code. */
static void on_boot_block(unsigned vcpu, void *data) {
    static uint64_t entered;
    static bool has_entered, may_return;
    uint64_t pc = (uint64_t)(uintptr_t)data >> 1;
    bool in_high_half = pc >> 62;
    (void)vcpu;
    if (pc == boot_entry && !has_entered) {
        has_entered = true;
        entered = counter_now();
    }
    if (in_high_half || !may_return || !has_entered) {
        may_return = in_high_half && (uintptr_t)data & 1;
        return;
    }
    FILE *out = fopen(out_path, "w");
    if (!out || fprintf(out, "%llu\n", (unsigned long long)(counter_now() - entered)) < 0 || fclose(out)) abort();
    _exit(0);
}

/* Halting */

static void (*guard_halt)(void);

static void on_halt(unsigned vcpu, void *data) {
    (void)vcpu, (void)data;
    guard_halt();
}

/* Translation */

static struct block *block_of(uint64_t pc, const uint8_t *bytes, size_t size, uint32_t insns) {
    uint64_t hash = insns;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    struct block **slot = &blocks[mix(pc, 0) % TABLE], *block;
    bool entry = false;
    for (block = *slot; block; block = block->next) {
        if (block->pc == pc && block->hash == hash) return block;
        if (block->pc == pc) entry |= block->entry;
    }
    block = fresh(sizeof *block);
    *block = (struct block){
        .next = *slot, .pc = pc, .hash = hash, .insns = insns, .id = block_count++, .entry = entry};
    block->kernel = pc >> 63;
    block->entry |= x86 && block->kernel && is_entry_x86(bytes, size);
    block->ends = fresh(insns * sizeof *block->ends);
    return *slot = block;
}

static void on_each_access(struct qemu_plugin_insn *insn, on_memory callback, void *data) {
    qemu_plugin_register_vcpu_mem_cb(insn, callback, NO_REGISTERS, READS_AND_WRITES, data);
}

static void guard(struct qemu_plugin_insn *insn, const uint8_t *code, size_t length) {
    if (guard_halt && x86 && is_halt_x86(code, length))
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_halt, NO_REGISTERS, NULL);
}

/* Without anything to count. A halt ends its block. */
static void on_guarded_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1);
    uint8_t code[INSN_MAX];
    (void)id;
    size_t length = bytes_of(last, code, sizeof code);
    guard(last, code, length);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    static uint8_t bytes[4096 * INSN_MAX];
    static uint32_t starts[4096];
    uint32_t insns = (uint32_t)qemu_plugin_tb_n_insns(tb);
    size_t size = 0;
    (void)id;
    if (insns > 4096) abort();
    for (uint32_t i = 0; i < insns; i++) {
        starts[i] = (uint32_t)size;
        size += bytes_of(qemu_plugin_tb_get_insn(tb, i), bytes + size, INSN_MAX);
    }
    struct block *block = block_of(qemu_plugin_tb_vaddr(tb), bytes, size, insns);
    if (disassemble && !block->text) {
        block->text = fresh(insns * sizeof *block->text);
        for (uint32_t i = 0; i < insns; i++) block->text[i] = qemu_plugin_insn_disas(qemu_plugin_tb_get_insn(tb, i));
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, block);
    for (uint32_t i = 0; i < insns; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const uint8_t *code = bytes + starts[i];
        size_t length = (i + 1 < insns ? starts[i + 1] : size) - starts[i];
        block->ends[i] = block->pc + starts[i] + length;
        int what = block->kernel ? NO_MARKER : x86 ? marker_x86(code, length) : marker_aarch64(code, length);
        if (what != NO_MARKER) {
            struct marker *marker = fresh(sizeof *marker);
            *marker = (struct marker){block, i, what};
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker, NO_REGISTERS, marker);
            continue;
        }
        count_executions(insn);
        guard(insn, code, length);
        if (footprint_path) on_each_access(insn, on_footprint, NULL);
        if (count_lines) on_each_access(insn, on_data, (void *)(uintptr_t)(block->pc + starts[i]));
        int kind = x86 && block->kernel ? kind_x86(code, length) : OTHER;
        if (kind == CALL) on_each_access(insn, on_call, (void *)(uintptr_t)block->ends[i]);
        if (kind == RETURN) on_each_access(insn, on_return, NULL);
        if (i + 1 < insns) continue;
        char *text = qemu_plugin_insn_disas(insn);
        int access = access_of(text);
        free(text);
        block->ends_in_access = access;
        block->ends_in_interrupt_return = kind == INTERRUPT_RETURN;
        block->ends_in_repetition = x86 && is_repetition_x86(code, length);
        if (access && kind == OTHER) on_each_access(insn, on_access, (void *)(uintptr_t)access);
    }
}

static void on_boot_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t insns = qemu_plugin_tb_n_insns(tb);
    uint8_t bytes[INSN_MAX];
    size_t size = bytes_of(qemu_plugin_tb_get_insn(tb, insns - 1), bytes, sizeof bytes);
    bool returns = kind_x86(bytes, size) == INTERRUPT_RETURN || (size >= 2 && bytes[size - 2] == 0x0f && bytes[size - 1] == 0x07);
    uintptr_t data = (uintptr_t)(qemu_plugin_tb_vaddr(tb) << 1 | returns);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_boot_block, NO_REGISTERS, (void *)data);
    for (size_t i = 0; i < insns; i++) count_executions(qemu_plugin_tb_get_insn(tb, i));
    on_guarded_translation(id, tb);
}

/* Writing down: lines of words, see kduel.explain.profile */

static void write_all(FILE *out) {
    fprintf(out, "kduel-counter 1 %s\n", x86 ? "x86_64" : "aarch64");
    for (const struct visit *v = visits; v; v = v->next)
        fprintf(out, "R %u %llu\n", v->id, (unsigned long long)v->begins);
    for (int slot = 0; slot < TABLE; slot++)
        for (struct node *n = nodes[slot]; n; n = n->next)
            if (n->used) fprintf(out, "N %u %u %c %llx\n", n->id, n->parent->id, n->entry ? 'e' : 'c',
                                 (unsigned long long)n->site);
    for (int slot = 0; slot < TABLE; slot++)
        for (struct block *b = blocks[slot]; b; b = b->next) {
            if (!b->used) continue;
            fprintf(out, "B%s %u %llx ", b->ends_in_repetition ? "r" : "", b->id, (unsigned long long)b->pc);
            for (uint32_t i = 0; i < b->insns; i++)
                fprintf(out, "%s%llu", i ? "," : "", (unsigned long long)(b->ends[i] - (i ? b->ends[i - 1] : b->pc)));
            fputc('\n', out);
            for (uint32_t i = 0; b->text && i < b->insns; i++) fprintf(out, "T %u %u %s\n", b->id, i, b->text[i]);
        }
    for (int slot = 0; slot < TALLIES; slot++)
        for (struct tally *t = tallies[slot]; t; t = t->next)
            fprintf(out, "C %u %u %u %u %u %llu\n", t->region, t->node->id, t->block->id, t->from, t->insns,
                    (unsigned long long)t->times);
    for (int slot = 0; slot < TABLE; slot++)
        for (struct touch *t = touches[slot]; t; t = t->next)
            fprintf(out, "L %u %llx %llu\n", t->region, (unsigned long long)t->pc, (unsigned long long)t->times);
    fprintf(out, "end\n");
}

/* The newest visit is the first of the list. */
static void write_shares(FILE *out, const struct visit *v) {
    if (!v) return;
    write_shares(out, v->next);
    fprintf(out, "{\"region\":%u,\"operations\":[", v->id % REGIONS);
    for (uint64_t i = 0; i < v->begins; i++)
        fprintf(out, "%s[%llu,%llu]", i ? "," : "", (unsigned long long)v->shares[i][0], (unsigned long long)v->shares[i][1]);
    fputs("]}\n", out);
}

static void write_shares_of_all(FILE *out) { write_shares(out, visits); }

/* Of each visit: how many operations, their instructions together, and how many touched how much. */
static void write_footprints(FILE *out, const struct visit *v) {
    if (!v) return;
    write_footprints(out, v->next);
    fprintf(out, "{\"region\":%u,\"count\":%llu,\"user\":%llu,\"kernel\":%llu,\"touched\":[", v->id % REGIONS,
            (unsigned long long)v->begins, (unsigned long long)v->total[0], (unsigned long long)v->total[1]);
    for (size_t i = 0; i < v->prints_used; i++) {
        fprintf(out, "%s[%llu", i ? "," : "", (unsigned long long)v->prints[i].times);
        for (int kind = 0; kind < KINDS; kind++) fprintf(out, ",%u", v->prints[i].of[kind]);
        fputc(']', out);
    }
    fputs("]}\n", out);
}

static void write_footprints_of_all(FILE *out) { write_footprints(out, visits); }

static void write_file(const char *path, void (*write)(FILE *)) {
    if (!path) return;
    FILE *out = fopen(path, "w");
    if (out) write(out);
    if (!out || fclose(out)) {
        perror(path);
        abort();
    }
}

static void on_exit_(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    write_file(out_path, write_all);
    write_file(shares_path, write_shares_of_all);
    write_file(footprint_path, write_footprints_of_all);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **words) {
    for (int i = 0; i < count; i++) {
        if (!strncmp(words[i], "out=", 4)) out_path = words[i] + 4;
        else if (!strncmp(words[i], "shares=", 7)) shares_path = words[i] + 7;
        else if (!strncmp(words[i], "footprint=", 10)) footprint_path = words[i] + 10;
        else if (!strcmp(words[i], "disassemble=on")) disassemble = true;
        else if (!strcmp(words[i], "lines=on")) count_lines = true;
        else if (!strcmp(words[i], "functions=on")) boot_functions = true;
        else if (!strncmp(words[i], "boot=", 5)) boot_entry = strtoull(words[i] + 5, NULL, 0);
    }
    x86 = !strcmp(info->target_name, "x86_64");
    guard_halt = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "kduel_guard_halt");
    if ((boot_entry && !out_path) || !info->system_emulation || info->system.smp_vcpus != 1 ||
        (!x86 && strcmp(info->target_name, "aarch64"))) {
        fprintf(stderr, "kduel counter: needs a whole machine, one vCPU, x86_64 or aarch64\n");
        return 1;
    }
    if (footprint_path && (count_lines || boot_entry)) {
        fprintf(stderr, "kduel counter: footprint= goes with neither lines= nor boot=\n");
        return 1;
    }
    if (!out_path && !shares_path && !footprint_path) {
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_guarded_translation);
        return 0;
    }
    counter_new();
    if (count_lines || footprint_path) lines = need(calloc(LINES, sizeof *lines));
    if (boot_entry && !boot_functions) {
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_boot_translation);
        return 0;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
    return 0;
}
