/* What we use of QEMU's plug-in interface, declared here because no distribution packages its header.
 *
 * KDUEL_API is the version built for: 1 (QEMU 4.2 to 8.2) or 3 (QEMU 9.1 and later, which still accept it). They
 * differ in where counters live and in how an instruction's bytes are had; this header hides both.
 * Source: QEMU's documentation of TCG plug-ins.
 */
#ifndef KDUEL_QEMU_API_H
#define KDUEL_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

typedef struct {
    const char *target_name;
    struct { int min, cur; } version;
    bool system_emulation;
    struct { int smp_vcpus, max_vcpus; } system;
} qemu_info_t;

enum { NO_REGISTERS = 0 };                /* qemu_plugin_cb_flags */
enum { READS_AND_WRITES = 3 };            /* qemu_plugin_mem_rw; QEMU 7.2 mixes up the other two */
enum { INLINE_ADD = 0 };                  /* qemu_plugin_op */

typedef void (*on_udata)(unsigned vcpu, void *data);
typedef void (*on_memory)(unsigned vcpu, uint32_t info, uint64_t address, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, on_udata, int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, on_udata, int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_memory, int flags, int rw, void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
bool qemu_plugin_mem_is_store(uint32_t info);
unsigned qemu_plugin_mem_size_shift(uint32_t info);
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *);
struct qemu_plugin_hwaddr;
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

EXPORT int qemu_plugin_version = KDUEL_API;

#if KDUEL_API == 1
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int op, void *counter, uint64_t amount);


static uint64_t the_counter;
static void counter_new(void) {}
static inline uint64_t counter_now(void) { return the_counter; }
static void count_executions(struct qemu_plugin_insn *insn) {
    qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD, &the_counter, 1);
}
static size_t bytes_of(const struct qemu_plugin_insn *insn, uint8_t *into, size_t most) {
    size_t size = qemu_plugin_insn_size(insn);
    memcpy(into, qemu_plugin_insn_data(insn), size < most ? size : most);
    return size;
}
#else
struct qemu_plugin_scoreboard;
typedef struct { struct qemu_plugin_scoreboard *score; size_t offset; } qemu_plugin_u64;
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *, unsigned vcpu);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *, int op, qemu_plugin_u64, uint64_t);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *into, size_t most);


static struct qemu_plugin_scoreboard *board;
static void counter_new(void) { board = qemu_plugin_scoreboard_new(sizeof(uint64_t)); }
static inline uint64_t counter_now(void) {
    /* The board moves when a vCPU appears, and never afterwards: there is one vCPU. */
    static uint64_t *found;
    if (!found) found = qemu_plugin_scoreboard_find(board, 0);
    return *found;
}
static void count_executions(struct qemu_plugin_insn *insn) {
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, INLINE_ADD, (qemu_plugin_u64){board, 0}, 1);
}
static size_t bytes_of(const struct qemu_plugin_insn *insn, uint8_t *into, size_t most) {
    qemu_plugin_insn_data(insn, into, most);
    return qemu_plugin_insn_size(insn);
}
#endif

#endif
