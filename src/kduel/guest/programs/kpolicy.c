/* kpolicy POLICY PROGRAM [ARGUMENT...]: run a program under a scheduling policy that is known to have taken effect. */
#define _GNU_SOURCE
#include "policy.h"

int main(int count, char **words) {
    struct policy wanted, seen;
    if (count == 2 && !strcmp(words[1], "--show")) {
        if (policy_get(&seen)) return 3;
        policy_print(stdout, &seen);
        putchar('\n');
        return 0;
    }
    if (count < 3 || policy_parse(words[1], &wanted)) {
        fputs("usage: kpolicy POLICY PROGRAM [ARGUMENT...]\n"
              "  POLICY: other batch idle ext fifo:PRIORITY rr:PRIORITY deadline:RUNTIME,DEADLINE,PERIOD (ns)\n"
              "          nice:N slice:NS, joined by '+'\n"
              "kpolicy --show\n", stderr);
        return 2;
    }
    int status = policy_take("kpolicy", words[1], &wanted, &seen);
    if (status) return status;
    execvp(words[2], words + 2);
    fprintf(stderr, "kpolicy: %s: %s\n", words[2], strerror(errno));
    return 127;
}
