/* What the plug-in keeps: call chains, blocks of code, counts; and what it was told to do. */
#ifndef KDUEL_TABLES_H
#define KDUEL_TABLES_H

#include "qemu_api.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE_SHIFT = 6, LINES = 1 << 20 };
enum { STACK_SHIFT = 14, TABLE = 1 << 16, TALLIES = 1 << 21, INSN_MAX = 16, VISIT_SHIFT = 16, REGIONS = 1 << VISIT_SHIFT };

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
/* What an operation touches, each once: physical lines and pages of kernel data, lines and pages of kernel code, lines of the
 * kernel's stacks, and lines at addresses of user space. */
enum { DATA_LINES, CODE_LINES, DATA_PAGES, CODE_PAGES, STACK_LINES, USER_LINES, KINDS };
/* How often operations of a visit touched so much. */
struct print {
    uint32_t of[KINDS];
    uint64_t times;
};
/* One visit of a region. */
struct visit {
    struct visit *next;
    uint32_t id;
    uint64_t begins;
    uint64_t (*shares)[2]; /* of each operation: instructions of user code, of the kernel */
    uint64_t total[2];     /* of all of them together */
    struct print *prints;
    size_t prints_used, prints_room;
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

static const char *out_path, *shares_path, *footprint_path;
static bool disassemble, count_lines, x86, boot_functions;
static uint64_t boot_entry;
static struct node root, *nodes[TABLE];
static struct stack *stacks[TABLE];
static struct tally *tallies[TALLIES];
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
static struct print print; /* of the present operation */
static uint64_t share[2]; /* of the present operation: instructions of user code, of the kernel */
static bool accessed;    /* whether the last instruction of the block that began has had its access */
static bool active, in_kernel;

static void *need(void *memory) {
    if (!memory) {
        fprintf(stderr, "kduel counter: out of memory\n");
        abort();
    }
    return memory;
}
static inline void *fresh(size_t size) { return need(calloc(1, size)); }
static inline uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 29);
}

#endif
