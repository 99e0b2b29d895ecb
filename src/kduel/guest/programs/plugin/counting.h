/* Counts of instructions and of cache lines, for the region and the operation that are measured. */
#ifndef KDUEL_COUNTING_H
#define KDUEL_COUNTING_H

#include "chains.h"
#include "tables.h"

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

/* Pages and lines, of code and of data, are kept in one table: a physical address is below 2^52, and a line of kernel code, which
 * is known by its virtual address, has bit 57 set. */
enum { PAGE_SHIFT = 12 };
static const uint64_t DATA_PAGE = 1ull << 60, CODE_PAGE = 1ull << 61;

/* Code is executed in one place only, so that its virtual address is as good as the physical one. */
static void touch_code(uint64_t first, uint64_t end) {
    for (uint64_t line = first >> LINE_SHIFT; line <= (end - 1) >> LINE_SHIFT; line++) print.of[CODE_LINES] += touches_first(line);
    for (uint64_t page = first >> PAGE_SHIFT; page <= (end - 1) >> PAGE_SHIFT; page++)
        print.of[CODE_PAGES] += touches_first((page & (CODE_PAGE - 1)) | CODE_PAGE);
}

static bool is_stack(uint64_t address) {
    uint64_t key = address >> STACK_SHIFT;
    const struct stack *stack = current_stack && current_stack->key == key ? current_stack : stacks[mix(key, 0) % TABLE];
    while (stack && stack->key != key) stack = stack->next;
    return stack;
}

/* An access that crosses lines lies in one page, nearly always: the second line is the next one. */
static void on_footprint(unsigned vcpu, uint32_t info, uint64_t address, void *data) {
    (void)vcpu, (void)data;
    if (!active) return;
    struct qemu_plugin_hwaddr *found = qemu_plugin_get_hwaddr(info, address);
    if (!found || qemu_plugin_hwaddr_is_io(found)) return;
    uint64_t physical = qemu_plugin_hwaddr_phys_addr(found), last = physical + (1u << qemu_plugin_mem_size_shift(info)) - 1;
    int kind = !(address >> 63) ? USER_LINES : is_stack(address) ? STACK_LINES : DATA_LINES;
    for (uint64_t line = physical >> LINE_SHIFT; line <= last >> LINE_SHIFT; line++) print.of[kind] += touches_first(line);
    if (kind == DATA_LINES) print.of[DATA_PAGES] += touches_first(physical >> PAGE_SHIFT | DATA_PAGE);
}

static void keep_print(void) {
    for (int i = 0; i < 2; i++) visit->total[i] += share[i];
    for (size_t i = 0; i < visit->prints_used; i++)
        if (!memcmp(visit->prints[i].of, print.of, sizeof print.of)) {
            visit->prints[i].times++;
            return;
        }
    if (visit->prints_used == visit->prints_room) {
        visit->prints_room = visit->prints_room ? 2 * visit->prints_room : 16;
        visit->prints = need(realloc(visit->prints, visit->prints_room * sizeof *visit->prints));
    }
    print.times = 1;
    visit->prints[visit->prints_used++] = print;
}

/* Lines of earlier operations are forgotten before they fill the table. */
static void begin_operation(void) {
    if (!count_lines && !footprint_path) return;
    memset(&print, 0, sizeof print);
    operation++;
    if (line_count < LINES / 2) return;
    memset(lines, 0, LINES * sizeof *lines);
    line_count = 0;
}

static struct tally *tally_of(struct node *node, struct block *block, uint32_t from, uint32_t insns) {
    uint64_t hash = mix(mix(node->id, block->id), (uint64_t)from << 40 | (uint64_t)insns << 20 | region);
    struct tally **slot = &tallies[hash % TALLIES], *tally;
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
    share[began->kernel] += insns;
    if (footprint_path && began->kernel)
        touch_code(began_at ? began->ends[began_at - 1] : began->pc, began->ends[began_at + insns - 1]);
    if (!out_path) return;
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

/* What the operation that ends took, by whose code it was; shares are kept in pieces of SHARES. */
static void keep_share(void) {
    enum { SHARES = 64 };
    uint64_t at = visit->begins - 1;
    if (at % SHARES == 0) visit->shares = need(realloc(visit->shares, (at + SHARES) * sizeof *visit->shares));
    memcpy(visit->shares[at], share, sizeof share);
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
    if (active && shares_path) keep_share();
    if (active && footprint_path) keep_print();
    active = marker->what == BEGIN && region;
    if (active) {
        if (!visit) enter_visit();
        visit->begins++;
        memset(share, 0, sizeof share);
        begin_operation();
    }
    if (marker->what == SELECT && !visit && region < REGIONS - 1) region++;
    if (marker->what == RESET) leave_visit();
    began = marker->block;
    began_at = marker->index + 1;
    began_node = current;
}

#endif
