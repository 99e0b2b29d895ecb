/* Call chains, from the kernel's accesses to its stacks. How they are known is told in counter.c. */
#ifndef KDUEL_CHAINS_H
#define KDUEL_CHAINS_H

#include "tables.h"

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

#endif
