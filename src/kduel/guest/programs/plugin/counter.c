/* A QEMU plug-in that counts the instructions of marked regions, by call chain and block of code, exactly.
 *
 * Arguments: out=FILE (written when QEMU ends), disassemble=on (adds every block's text), lines=on (adds which instructions
 * were the first to touch a cache line in an operation, from BEGIN to END, and how often), boot=ADDRESS (instead of all
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
 */
#include "qemu_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_SHIFT = 6, LINES = 1 << 20 };
enum { STACK_SHIFT = 14, TABLE = 1 << 16, INSN_MAX = 16, VISIT_SHIFT = 16, REGIONS = 1 << VISIT_SHIFT };

/* A place in the tree of call chains: below `parent`, called from just before `site`, or entered at `site`. */
struct node {
    struct node *parent, *next;
    uint64_t site;
    uint32_t id;
    bool entry, used;
};
struct frame {
    uint64_t address;
    struct node *node;
};
struct stack {
    uint64_t key;
    struct stack *next;
    struct node *base;
    struct frame *frames;
    size_t depth, room;
};
/* How often `insns` instructions of `block` from `from` on were executed under `node` in `region`. */
struct tally {
    struct tally *next;
    struct node *node;
    struct block *block;
    uint32_t region, from, insns;
    uint64_t times;
};
struct block {
    struct block *next;
    uint64_t pc, hash;
    uint32_t insns, id;
    bool kernel, used, entry;               /* `entry`: the kernel is entered here */
    bool ends_in_access, ends_in_interrupt_return; /* its last instruction accesses memory, is iret */
    bool ends_in_repetition; /* its last instruction is a string instruction that is repeated: executed once a step */
    struct tally *last; /* the tally that this block went into last */
    uint64_t *ends;     /* address after each instruction */
    char **text;
};
/* One visit of a region. */
struct visit {
    struct visit *next;
    uint32_t id;
    uint64_t begins;
};
/* How often the instruction at `pc` was the first in an operation to touch a cache line. */
struct touch {
    struct touch *next;
    uint64_t pc, times;
    uint32_t region;
};
/* A cache line, and the operation that touched it last; `operation` is 0 in a free slot. */
struct line {
    uint64_t address, operation;
};
struct marker {
    struct block *block;
    uint32_t index;
    int what;
};
enum { BEGIN, END, SELECT, RESET, NO_MARKER };
enum { READS = 1, WRITES = 2 };

static const char *out_path;
static bool disassemble, count_lines, x86, boot_functions;
static uint64_t boot_entry;
static struct node root, *nodes[TABLE];
static struct stack *stacks[TABLE];
static struct tally *tallies[TABLE];
static struct block *blocks[TABLE];
static struct touch *touches[TABLE];
static struct line *lines; /* LINES slots */
static uint64_t operation, line_count;
static uint32_t node_count = 1, block_count;
static uint32_t visits_of[REGIONS]; /* by region: how many ended */
static struct visit *visits, *visit; /* all, the newest first; the present one */

static struct node *current = &root, *began_node;
static struct node *pending; /* an entry in kernel mode that has not yet called anything */
static struct stack *current_stack;
static struct block *began;
static uint32_t began_at, region;
static uint64_t counted; /* at the last account */
static bool accessed;    /* whether the last instruction of the block that began has had its access */
static bool active, in_kernel;

static void *need(void *memory) {
    if (!memory) {
        fprintf(stderr, "kduel counter: out of memory\n");
        abort();
    }
    return memory;
}
static void *fresh(size_t size) { return need(calloc(1, size)); }
static inline uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 29);
}

/* Call chains */

static struct node *child_of(struct node *parent, uint64_t site, bool entry) {
    struct node **slot = &nodes[mix(parent->id, site) % TABLE], *node;
    for (node = *slot; node; node = node->next)
        if (node->parent == parent && node->site == site && node->entry == entry) return node;
    node = fresh(sizeof *node);
    *node = (struct node){.parent = parent, .next = *slot, .site = site, .id = node_count++, .entry = entry};
    return *slot = node;
}

static inline struct stack *stack_of(uint64_t address) {
    uint64_t key = address >> STACK_SHIFT;
    if (current_stack && current_stack->key == key) return current_stack;
    struct stack **slot = &stacks[mix(key, 0) % TABLE], *stack;
    for (stack = *slot; stack; stack = stack->next)
        if (stack->key == key) return stack;
    stack = fresh(sizeof *stack);
    *stack = (struct stack){.key = key, .next = *slot, .base = &root};
    return *slot = stack;
}

static inline void pop_to(struct stack *stack, uint64_t address) {
    while (stack->depth && stack->frames[stack->depth - 1].address <= address) stack->depth--;
}

static void push(struct stack *stack, uint64_t address, struct node *node) {
    if (stack->depth == stack->room) {
        stack->room = stack->room ? 2 * stack->room : 32;
        stack->frames = need(realloc(stack->frames, stack->room * sizeof *stack->frames));
    }
    stack->frames[stack->depth++] = (struct frame){address, node};
}

static inline struct node *top(const struct stack *stack) {
    return stack->depth ? stack->frames[stack->depth - 1].node : stack->base;
}

static void on_call(unsigned vcpu, uint32_t info, uint64_t address, void *site) {
    (void)vcpu;
    if (!qemu_plugin_mem_is_store(info)) return; /* the read of an indirect call's target */
    if (accessed) return; /* what an interrupt pushes right after it, which QEMU 7.2 takes for the call's */
    accessed = true;
    struct stack *stack = stack_of(address);
    pop_to(stack, address);
    if (!stack->depth && stack != current_stack) stack->base = current;
    if (pending && (stack->depth || stack == current_stack)) push(stack, address + 1, pending);
    pending = NULL;
    push(stack, address, child_of(top(stack), (uint64_t)(uintptr_t)site, false));
    current = top(stack);
    current_stack = stack;
}

static void on_return(unsigned vcpu, uint32_t info, uint64_t address, void *data) {
    (void)vcpu, (void)info, (void)data;
    if (accessed) return;
    accessed = true;
    struct stack *stack = stack_of(address);
    pop_to(stack, address);
    if (stack != current_stack && !stack->depth) stack->base = &root;
    pending = NULL;
    current = top(stack);
    current_stack = stack;
}

static void note_entry(uint64_t pc) {
    for (struct block *block = blocks[mix(pc, 0) % TABLE]; block; block = block->next)
        if (block->pc == pc) block->entry = true;
}

/* From user code: a new chain; on which stack, the first call will tell. */
static void enter_from_user(struct block *block) {
    if (!block->entry) note_entry(block->pc);
    current = child_of(&root, block->pc, true);
    current_stack = NULL;
    pending = NULL;
}

static void return_from_interrupt(void) {
    if (pending) {
        current = pending->parent;
        pending = NULL;
    } else if (current_stack) {
        size_t depth = current_stack->depth;
        while (depth && !current_stack->frames[depth - 1].node->entry) depth--;
        if (!depth) return;
        current_stack->depth = depth - 1;
        current = top(current_stack);
    }
}

static inline void follow(struct block *block) {
    if (block->kernel != in_kernel) {
        in_kernel = block->kernel;
        if (in_kernel) enter_from_user(block);
        else current = &root;
    } else if (in_kernel) {
        if (began && began->ends_in_interrupt_return) return_from_interrupt();
        bool goes_on = current->entry && block->pc - current->site < INSN_MAX; /* the entry's own second block */
        if (block->entry && !goes_on) current = pending = child_of(current, block->pc, true);
    }
}

/* Counting */

static void on_access(unsigned vcpu, uint32_t info, uint64_t address, void *data) {
    (void)vcpu, (void)address;
    if ((uintptr_t)data & (qemu_plugin_mem_is_store(info) ? WRITES : READS)) accessed = true;
}

/* Whether this operation has not touched the line before. */
static bool touches_first(uint64_t address) {
    struct line *line = &lines[mix(address, 1) % LINES];
    while (line->operation && line->address != address)
        if (++line == lines + LINES) line = lines;
    if (!line->operation && ++line_count == LINES) {
        fprintf(stderr, "kduel counter: an operation touches more than %d cache lines\n", LINES / 2);
        abort();
    }
    bool first = line->operation != operation;
    *line = (struct line){address, operation};
    return first;
}

static void on_data(unsigned vcpu, uint32_t info, uint64_t address, void *pc) {
    uint64_t site = (uintptr_t)pc;
    (void)vcpu;
    if (!active) return;
    uint64_t last = (address + (1u << qemu_plugin_mem_size_shift(info)) - 1) >> LINE_SHIFT, times = 0;
    for (uint64_t line = address >> LINE_SHIFT; line <= last; line++) times += touches_first(line);
    if (!times) return;
    struct touch **slot = &touches[mix(site, region) % TABLE], *touch;
    for (touch = *slot; touch && (touch->pc != site || touch->region != region);) touch = touch->next;
    if (!touch) {
        touch = fresh(sizeof *touch);
        *touch = (struct touch){.next = *slot, .pc = site, .region = region};
        *slot = touch;
    }
    touch->times += times;
}

/* Lines of earlier operations are forgotten before they fill the table. */
static void begin_operation(void) {
    if (!count_lines) return;
    operation++;
    if (line_count < LINES / 2) return;
    memset(lines, 0, LINES * sizeof *lines);
    line_count = 0;
}

static struct tally *tally_of(struct node *node, struct block *block, uint32_t from, uint32_t insns) {
    uint64_t hash = mix(mix(node->id, block->id), (uint64_t)from << 40 | (uint64_t)insns << 20 | region);
    struct tally **slot = &tallies[hash % TABLE], *tally;
    for (tally = *slot; tally; tally = tally->next)
        if (tally->node == node && tally->block == block && tally->region == region && tally->from == from &&
            tally->insns == insns)
            return tally;
    tally = fresh(sizeof *tally);
    *tally = (struct tally){
        .next = *slot, .node = node, .block = block, .region = region, .from = from, .insns = insns};
    block->used = true;
    for (; node && !node->used; node = node->parent) node->used = true;
    return *slot = tally;
}

/* The instructions since the last account belong to the block that began then. `next` is where it goes on, or 0. */
static inline void account(uint64_t next) {
    uint64_t now = counter_now();
    uint32_t insns = (uint32_t)(now - counted), at = began_at + insns;
    counted = now;
    if (!began || !insns) return;
    bool completed = accessed || !began->ends_in_access;
    accessed = false;
    /* The last one begun did not come to its end if the block was left early, or if its access did not happen;
     * unless it goes on behind it, as after an access to a device or a string instruction of length 0. */
    if (next && next != began->ends[at - 1] && (at < began->insns || !completed)) insns--;
    if (!active || !insns) return;
    struct tally *tally = began->last;
    if (!tally || tally->node != began_node || tally->insns != insns || tally->from != began_at ||
        tally->region != region)
        tally = began->last = tally_of(began_node, began, began_at, insns);
    tally->times++;
}

static void enter_visit(void) {
    visit = fresh(sizeof *visit);
    *visit = (struct visit){.next = visits, .id = visits_of[region] << VISIT_SHIFT | region};
    visits = visit;
    region = visit->id;
}

static void leave_visit(void) {
    if (visit) visits_of[region % REGIONS]++;
    visit = NULL;
    region = 0;
}

/* The boot as a region: from its entry to where the kernel first returns to user code. */
static void follow_boot(const struct block *block) {
    if (block->pc == boot_entry && !visit) {
        region = 1;
        enter_visit();
        visit->begins = 1;
        active = true;
    } else if (active && began && began->kernel && began->ends_in_interrupt_return && !block->kernel) {
        leave_visit();
        active = false;
        boot_functions = false;
    }
}

static void on_block(unsigned vcpu, void *data) {
    (void)vcpu;
    struct block *block = data;
    account(block->pc);
    if (boot_functions) follow_boot(block);
    follow(block);
    began = block;
    began_at = 0;
    began_node = current;
}

static void on_marker(unsigned vcpu, void *data) {
    (void)vcpu;
    struct marker *marker = data;
    account(0);
    active = marker->what == BEGIN && region;
    if (active) {
        if (!visit) enter_visit();
        visit->begins++;
        begin_operation();
    }
    if (marker->what == SELECT && !visit && region < REGIONS - 1) region++;
    if (marker->what == RESET) leave_visit();
    began = marker->block;
    began_at = marker->index + 1;
    began_node = current;
}

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

/* Reading code */

static bool is_halt_x86(const uint8_t *b, size_t size) { return size == 1 && b[0] == 0xf4; }

/* movs, cmps, stos, lods or scas behind a rep prefix. */
static bool is_repetition_x86(const uint8_t *b, size_t size) {
    bool repeated = false;
    size_t i = 0;
    for (; i < size && (b[i] == 0xf2 || b[i] == 0xf3 || b[i] == 0x66 || (b[i] & 0xf0) == 0x40); i++)
        repeated |= b[i] == 0xf2 || b[i] == 0xf3;
    return repeated && i < size && ((b[i] >= 0xa4 && b[i] <= 0xa7) || (b[i] >= 0xaa && b[i] <= 0xaf));
}

static int marker_x86(const uint8_t *b, size_t size) {
    if (size != 3 || b[0] != 0x66 || b[1] != 0x87) return NO_MARKER;
    return b[2] == 0xdb ? BEGIN : b[2] == 0xc9 ? END : b[2] == 0xd2 ? SELECT : b[2] == 0xf6 ? RESET : NO_MARKER;
}
static int marker_aarch64(const uint8_t *b, size_t size) { /* hint #42 to #45 */
    uint32_t word;
    if (size != 4) return NO_MARKER;
    memcpy(&word, b, 4);
    uint32_t hint = (word - 0xd503201f) >> 5;
    return (word & 0xfffff01f) == 0xd503201f && hint >= 42 && hint <= 45 ? BEGIN + (int)hint - 42 : NO_MARKER;
}

enum { OTHER, CALL, RETURN, INTERRUPT_RETURN };
static int kind_x86(const uint8_t *b, size_t size) {
    size_t i = 0;
    while (i < size && (b[i] == 0xf2 || b[i] == 0xf3 || b[i] == 0x66 || b[i] == 0x2e || b[i] == 0x3e ||
                        b[i] == 0x64 || b[i] == 0x65 || (b[i] & 0xf0) == 0x40))
        i++;
    if (i >= size) return OTHER;
    if (b[i] == 0xe8 || (b[i] == 0xff && i + 1 < size && (b[i + 1] >> 3 & 7) == 2)) return CALL;
    return b[i] == 0xc3 || b[i] == 0xc2 ? RETURN : b[i] == 0xcf ? INTERRUPT_RETURN : OTHER;
}

/* Whether code looks like where the kernel is entered by an interrupt or exception: endbr64 and clac perhaps (QEMU ends a
 * block there), then `cld` and a push or a call, or `push $-1` and a call; or a vector that is pushed, and a jump. */
static bool is_entry_x86(const uint8_t *b, size_t size) {
    static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    static const uint8_t clac[][3] = {{0x0f, 0x01, 0xca}, {0x0f, 0x1f, 0x00}, {0x90, 0x90, 0x90}};
    const uint8_t *end = b + size;
    if (size >= 4 && !memcmp(b, endbr, 4)) b += 4;
    for (size_t i = 0; i < sizeof clac / sizeof *clac; i++)
        if (end - b > 3 && !memcmp(b, clac[i], 3)) {
            b += 3;
            break;
        }
    if (end - b < 3) return false;
    if (b[0] == 0xfc) return b[1] == 0x6a || b[1] == 0xe8;
    return b[0] == 0x6a && (b[2] == 0xe9 || b[2] == 0xeb || (b[1] == 0xff && b[2] == 0xe8));
}

/* What the instruction does to memory in its last step: 0, READS, WRITES, or either. */
static int access_of(const char *text) {
    static const char *const none[] = {"nop", "lea", "in ", "out", "prefetch", "hint"};
    static const char *const reads[] = {"ret", "pop", "leave"}, *const writes[] = {"call", "push"};
    if (!text) return 0;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (!strncmp(text, none[i], strlen(none[i]))) return 0;
    if (x86) {
        for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
            if (!strncmp(text, reads[i], strlen(reads[i]))) return READS;
        for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
            if (!strncmp(text, writes[i], strlen(writes[i]))) return WRITES;
    }
    return strchr(text, x86 ? '(' : '[') && !strstr(text, "(%dx)") ? READS | WRITES : 0;
}

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

/* Writing down: lines of words, see kduel.explain.profile */

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
    for (int slot = 0; slot < TABLE; slot++)
        for (struct tally *t = tallies[slot]; t; t = t->next)
            fprintf(out, "C %u %u %u %u %u %llu\n", t->region, t->node->id, t->block->id, t->from, t->insns,
                    (unsigned long long)t->times);
    for (int slot = 0; slot < TABLE; slot++)
        for (struct touch *t = touches[slot]; t; t = t->next)
            fprintf(out, "L %u %llx %llu\n", t->region, (unsigned long long)t->pc, (unsigned long long)t->times);
    fprintf(out, "end\n");
}

static void on_exit_(qemu_plugin_id_t id, void *data) {
    (void)id, (void)data;
    FILE *out = fopen(out_path, "w");
    if (out) write_all(out);
    if (!out || fclose(out)) {
        perror(out_path);
        abort();
    }
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **words) {
    for (int i = 0; i < count; i++) {
        if (!strncmp(words[i], "out=", 4)) out_path = words[i] + 4;
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
    if (!out_path) {
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_guarded_translation);
        return 0;
    }
    counter_new();
    if (count_lines) lines = need(calloc(LINES, sizeof *lines));
    if (boot_entry && !boot_functions) {
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_boot_translation);
        return 0;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
    return 0;
}
