/* Reading code: markers, calls, returns, entries of the kernel, halts, and what accesses memory. */
#ifndef KDUEL_CODE_H
#define KDUEL_CODE_H

#include "tables.h"

static bool is_halt_x86(const uint8_t *b, size_t size) { return size == 1 && b[0] == 0xf4; }
static inline bool is_pause_x86(const uint8_t *b, size_t size) { return size == 2 && b[0] == 0xf3 && b[1] == 0x90; }

/* movs, cmps, stos, lods or scas behind a rep prefix. */
static inline bool is_repetition_x86(const uint8_t *b, size_t size) {
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
static inline int marker_aarch64(const uint8_t *b, size_t size) { /* hint #42 to #45 */
    uint32_t word;
    if (size != 4) return NO_MARKER;
    memcpy(&word, b, 4);
    uint32_t hint = (word - 0xd503201f) >> 5;
    return (word & 0xfffff01f) == 0xd503201f && hint >= 42 && hint <= 45 ? BEGIN + (int)hint - 42 : NO_MARKER;
}

enum { OTHER, CALL, RETURN, INTERRUPT_RETURN };
static inline int kind_x86(const uint8_t *b, size_t size) {
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
static inline bool is_entry_x86(const uint8_t *b, size_t size) {
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
static inline int access_of(const char *text) {
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

#endif
