/* The kernel's random number generator, ready as on real machines, and the same in every boot. */
#ifndef KDUEL_RANDOMNESS_H
#define KDUEL_RANDOMNESS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Seed the generator with fixed bytes where nothing has seeded it: on a machine without any source of entropy, where each number
 * that a system call takes would otherwise be extracted anew (some 5,000 instructions) until the machine is switched off.
 * random(4). The kernel then patches its code, in a worker: wait for this. */
static void seed_randomness(void) {
    enum { WORDS = 16 };
    uint32_t fixed[2 + WORDS] = {32 * WORDS, 4 * WORDS}; /* a rand_pool_info: bits of entropy, bytes, and these */
    uint8_t byte;
    if (getrandom(&byte, sizeof byte, GRND_NONBLOCK) == sizeof byte || errno != EAGAIN) return;
    for (unsigned i = 0; i < WORDS; i++) fixed[2 + i] = 0x9e3779b9u * (i + 1);
    int generator = (int)need(open("/dev/urandom", O_WRONLY | O_CLOEXEC), "/dev/urandom");
    need(ioctl(generator, RNDADDENTROPY, fixed), "RNDADDENTROPY");
    close(generator);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

#endif
