/* A QEMU plug-in that gives all vCPUs the same speed: each executes a turn of so many instructions, one after the other.
 *
 * Arguments: out=FILE (a line of JSON when QEMU ends: what each vCPU executed), quantum=N (instructions in a turn);
 * switches=FILE, pid=OFFSET, comm=OFFSET (a line for each switch: instructions of all vCPUs so far, the vCPU, number and name
 * of the task that it goes on with, which lie there in the kernel's task_struct; `TIME clock` where a program reads the clock).
 *
 * With QEMU's instruction-counting clock time is the sum of what all vCPUs execute. Where none of them halts (the guest's
 * idle=poll) and each executes as much as the others, it goes by evenly: of N vCPUs each executes one instruction in N
 * nanoseconds. QEMU itself ends turns early where a timer is set or due, or passes over a vCPU, and a turn may be a block of
 * code too long: all that is made up for in the vCPU's next turn. A turn also ends at PAUSE, which an idle or spinning vCPU
 * executes all the time: preloaded, the guard has QEMU go on with the same vCPU instead (guard.c).
 *
 * A guest program that selects a region (SELECT markers) has turns half as long by each, until RESET: how fine turns are must
 * not matter.
 *
 * A vCPU that is behind by more than LAG turns has all others wait: they execute a block or two, which is made up for, too. The count
 * begins when the last vCPU comes online, and ends when the first one halts (the guest switches off).
 */
#include "code.h"
#include "vcpus.h"

enum { LAG = 16, MORE = 3, SWITCHING_OFF = 50000000 /* instructions that a guest may take once the first vCPU has halted */ };

static const char *out_path;
static int64_t quantum = 10000, turn; /* instructions */
static int64_t left[CPUS];            /* of this turn, or beyond what the last one had */
static bool online[CPUS], halted, waits; /* the vCPU whose turn it is, for one that is behind */
static int at, granted, coming; /* the vCPU that executes; that had the last turn; how many have executed the kernel, not only the firmware */
static uint64_t executed[CPUS], turns[CPUS], passed_over, waited, after;
static int64_t longest, behind;
static void (*keep_turn)(void *);

static FILE *switches;
static long pid_at = -1, comm_at = -1;
static uint64_t all; /* instructions of all vCPUs */
static int (*read_memory)(void *cpu, uint64_t address, void *into, size_t size, bool is_write);

static void grant(int cpu, bool counts) {
    left[cpu] += turn;
    if (!counts && left[cpu] > LAG * turn) left[cpu] = LAG * turn;
    if (counts && left[cpu] > behind) behind = left[cpu];
}

static int furthest_behind(void) {
    int cpu = 0;
    for (int other = 1; other < vcpus; other++)
        if (left[other] > left[cpu]) cpu = other;
    return cpu;
}

/* Where a timer is due, QEMU begins with the first vCPU again: those that it passed over get their turn later. With many CPUs
 * timers end turns so often that some vCPU falls behind: nobody gets another turn until it is at most LAG turns behind. */
static void begin_turn(int cpu) {
    bool counts = coming == vcpus && !halted;
    int last = furthest_behind();
    if (counts && left[last] > LAG * turn) {
        waits = cpu != last;
        waited += waits;
        at = cpu;
        return;
    }
    waits = false;
    for (int next = (granted + 1) % vcpus; next != cpu; next = (next + 1) % vcpus) {
        grant(next, counts);
        passed_over += counts;
    }
    grant(cpu, counts);
    turns[cpu] += counts;
    at = granted = cpu;
}

static void on_block(unsigned vcpu, void *data) {
    static void *last;
    static int ended;
    int64_t insns = (int64_t)((uintptr_t)data >> 1);
    (void)vcpu;
    /* After the end of a turn QEMU may execute a block or two more; if it is more, it has come round to the same vCPU. */
    if (last != running() || ended > MORE) last = running(), ended = 0, begin_turn(running_number());
    if ((uintptr_t)data & 1 && !online[at]) {
        online[at] = true, coming++;
        memset(left, 0, sizeof left);
        left[at] = turn;
    }
    left[at] -= insns;
    all += (uint64_t)insns;
    if (halted) after += (uint64_t)insns;
    else if (coming == vcpus) executed[at] += (uint64_t)insns;
    if (left[at] > 0 && !waits) return;
    if (-left[at] > longest) longest = -left[at];
    /* Once: QEMU 7.2 loses the vCPU's flags where it is to leave several blocks in a row (a kernel's oops shows it). */
    if (!ended++) end_turn(last);
}

static void on_pause(unsigned vcpu, void *data) {
    (void)vcpu, (void)data;
    if (left[at] > 0 && !waits) keep_turn(running());
}

static void on_halting(unsigned vcpu, void *data) {
    (void)vcpu, (void)data;
    left[at] = 0;
    if (coming == vcpus) halted = true;
    if (guard_halt) guard_halt();
}

static void on_region_marker(unsigned vcpu, void *data) {
    int what = (int)(intptr_t)data;
    (void)vcpu;
    if (what == SELECT && turn > 1) turn /= 2;
    if (what == RESET) turn = quantum;
}

/* __switch_to_asm leaves the stack of one task, and takes that of the next: mov %rsp,OFFSET(%rdi); mov OFFSET(%rsi),%rsp. */
static bool is_switch_x86(const uint8_t *before, const uint8_t *b) {
    static const uint8_t leave[] = {0x48, 0x89, 0xa7}, take[] = {0x48, 0x8b, 0xa6};
    return !memcmp(before, leave, 3) && !memcmp(b, take, 3) && !memcmp(before + 3, b + 3, 4);
}

static void on_switch(unsigned vcpu, uint32_t info, uint64_t address, void *offset) {
    uint64_t task = address - (uintptr_t)offset;
    int32_t pid;
    char comm[16] = "";
    (void)vcpu, (void)info;
    if (coming < vcpus || halted) return;
    if (read_memory(running(), task + (uint64_t)pid_at, &pid, sizeof pid, false) ||
        read_memory(running(), task + (uint64_t)comm_at, comm, sizeof comm - 1, false))
        fprintf(switches, "%llu %d unreadable\n", (unsigned long long)all, at);
    else fprintf(switches, "%llu %d %d %s\n", (unsigned long long)all, at, pid, comm);
}

static void on_clock(unsigned vcpu, void *data) {
    (void)vcpu, (void)data;
    fprintf(switches, "%llu clock\n", (unsigned long long)all);
}

static void watch_switches(struct qemu_plugin_insn *insn, const uint8_t *before, const uint8_t *code, size_t size, bool kernel) {
    static const uint8_t clock[] = {0x66, 0x87, 0xff};
    uint32_t offset;
    memcpy(&offset, code + 3, 4);
    if (kernel && size == 7 && is_switch_x86(before, code))
        qemu_plugin_register_vcpu_mem_cb(insn, on_switch, NO_REGISTERS, READS_AND_WRITES, (void *)(uintptr_t)offset);
    if (!kernel && size == 3 && !memcmp(code, clock, 3))
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_clock, NO_REGISTERS, NULL);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    size_t insns = qemu_plugin_tb_n_insns(tb);
    bool kernel = qemu_plugin_tb_vaddr(tb) >> 63;
    uint8_t before[INSN_MAX] = {0};
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, (void *)(uintptr_t)(insns << 1 | kernel));
    for (size_t i = 0; i < insns; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t code[INSN_MAX] = {0};
        size_t size = bytes_of(insn, code, sizeof code);
        int marker = kernel ? NO_MARKER : marker_x86(code, size);
        if (marker == SELECT || marker == RESET)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_region_marker, NO_REGISTERS, (void *)(intptr_t)marker);
        if (switches) watch_switches(insn, before, code, size, kernel);
        memcpy(before, code, sizeof before);
        if (is_halt_x86(code, size)) qemu_plugin_register_vcpu_insn_exec_cb(insn, on_halting, NO_REGISTERS, NULL);
        if (is_pause_x86(code, size)) qemu_plugin_register_vcpu_insn_exec_cb(insn, on_pause, NO_REGISTERS, NULL);
    }
}

static void on_exit_(qemu_plugin_id_t id, void *data) {
    FILE *out = fopen(out_path, "w");
    (void)id, (void)data;
    if (out) {
        fprintf(out, "{\"quantum\":%lld,\"behind\":%lld,\"waited\":%llu,\"passed_over\":%llu,\"over\":%lld,\"polls\":%s,\"cpus\":[",
                (long long)quantum, (long long)behind, (unsigned long long)waited, (unsigned long long)passed_over, (long long)longest,
                after < SWITCHING_OFF ? "true" : "false");
        for (int i = 0; i < vcpus; i++)
            fprintf(out, "%s[%llu,%llu]", i ? "," : "", (unsigned long long)turns[i], (unsigned long long)executed[i]);
        fputs("]}\n", out);
    }
    if (switches && fclose(switches)) out = NULL;
    if (!out || fclose(out)) {
        perror(out_path);
        abort();
    }
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **words) {
    for (int i = 0; i < count; i++) {
        if (!strncmp(words[i], "out=", 4)) out_path = words[i] + 4;
        else if (!strncmp(words[i], "switches=", 9)) switches = fopen(words[i] + 9, "w");
        else if (!strncmp(words[i], "pid=", 4)) pid_at = strtol(words[i] + 4, NULL, 0);
        else if (!strncmp(words[i], "comm=", 5)) comm_at = strtol(words[i] + 5, NULL, 0);
        else if (!strncmp(words[i], "quantum=", 8)) quantum = strtoll(words[i] + 8, NULL, 0);
    }
    if (!find_vcpus(info)) return 1;
    keep_turn = (void (*)(void *))(uintptr_t)dlsym(RTLD_DEFAULT, "kduel_guard_pausing");
    if (!keep_turn) fprintf(stderr, "kduel turns: needs the guard, preloaded\n");
    if (!keep_turn || !exported("cpu_loop_exit_noexc")) return 1;
    if (!out_path || quantum < 1) {
        fprintf(stderr, "kduel turns: needs a file to write, and a turn of one instruction at least\n");
        return 1;
    }
    if (switches) read_memory = (int (*)(void *, uint64_t, void *, size_t, bool))(uintptr_t)exported("cpu_memory_rw_debug");
    if (switches && (!read_memory || pid_at < 0 || comm_at < 0)) return 1;
    turn = quantum;
    (void)counter_now, (void)count_executions, (void)counter_new;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
    return 0;
}
