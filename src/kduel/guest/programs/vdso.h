/* Random numbers without a system call, from the kernel's code in the process (the vDSO; 6.11 or later, and the C library has no part). */
#ifndef KDUEL_VDSO_H
#define KDUEL_VDSO_H

#include "operations.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#ifdef __LP64__
typedef ssize_t vdso_getrandom(void *, size_t, unsigned, void *, size_t);

/* A function of the vDSO, by its name; its file lies in memory as it is, with the table of its sections. */
static uintptr_t in_vdso(const char *name) {
    const char *file = (const char *)getauxval(AT_SYSINFO_EHDR);
    const ElfW(Ehdr) *header = (const void *)file;
    const ElfW(Shdr) *sections = (const void *)(file ? file + header->e_shoff : NULL);
    for (int i = 0; file && i < header->e_shnum; i++) {
        const ElfW(Sym) *symbols = (const void *)(file + sections[i].sh_offset);
        if (sections[i].sh_type != SHT_DYNSYM) continue;
        for (size_t at = 0; at < sections[i].sh_size / sizeof *symbols; at++)
            if (!strcmp(file + sections[sections[i].sh_link].sh_offset + symbols[at].st_name, name))
                return (uintptr_t)file + symbols[at].st_value;
    }
    return 0;
}

static vdso_getrandom *quick_random;
static void *random_state;
static size_t random_state_size;

static void open_vdso_random(long argument) {
    (void)argument;
    struct {
        uint32_t size, protection, flags, reserved[13];
    } asked; /* a vgetrandom_opaque_params */
    uintptr_t at = in_vdso("__vdso_getrandom");
    if (!at) at = in_vdso("__kernel_getrandom");
    if (!at) errno = ENOSYS, die("getrandom in the vDSO");
    memcpy(&quick_random, &at, sizeof at);
    if (quick_random(NULL, 0, 0, &asked, ~(size_t)0)) errno = ENOSYS, die("getrandom in the vDSO");
    random_state = mmap(NULL, PAGE_MAX, (int)asked.protection, (int)asked.flags, -1, 0);
    if (random_state == MAP_FAILED) die("mmap");
    random_state_size = asked.size;
}
static void vdso_random(void) {
    char bytes[16];
    if (quick_random(bytes, sizeof bytes, 0, random_state, random_state_size) != sizeof bytes) die("getrandom");
}
#else
static void open_vdso_random(long argument) { (void)argument, errno = ENOSYS, die("getrandom in the vDSO"); }
static void vdso_random(void) {}
#endif

#endif
