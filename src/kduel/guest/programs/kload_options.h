/* The options of kload. */
#ifndef KDUEL_KLOAD_OPTIONS_H
#define KDUEL_KLOAD_OPTIONS_H

#include "kload.h"

#include <getopt.h>

static void usage_error(void) {
    fputs("usage: kload --kind cpu|io|mixed|messages|blocks [--processes N] [--iterations N] [--policy POLICY]\n"
          "  --iterations  points of pi per process (cpu, mixed), or sleeps of 2 ms (blocks)\n"
          "  --transfers N --block BYTES --size BYTES --outputs N --io buffered|direct|dsync --dir DIR\n"
          "                blocks that each process reads from one file and writes to its outputs in turn (io, mixed)\n"
          "                or messages of BYTES that each of the first half sends to each of the others (messages)\n"
          "  --policy      other batch idle ext fifo:P rr:P deadline:R,D,P (ns), nice:N slice:NS, joined by '+';\n"
          "                by default what KDUEL_POLICY says\n"
          "  --deadline S  kill all after so many seconds, exit status 124\n"
          "  --cgroup DIR  a cgroup2 directory to make a group in, for the kernel's second account\n"
          "  --verify      read /proc/self/status too, beside getrusage\n", stderr);
    exit(2);
}

static int one_of(const char *word, const char **names, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(word, names[i])) return i;
    usage_error();
    return -1;
}

static long long count_of(const char *word, long long least, long long most) {
    long long value;
    if (!policy_number(word, word + strlen(word), &value) || value < least || value > most) usage_error();
    return value;
}

static void read_options(int count, char **words) {
    static const struct option options[] = {
        {"kind", 1, 0, 'k'},      {"processes", 1, 0, 'n'}, {"iterations", 1, 0, 'i'}, {"policy", 1, 0, 'p'},
        {"transfers", 1, 0, 't'}, {"block", 1, 0, 'b'},     {"size", 1, 0, 's'},       {"outputs", 1, 0, 'o'},
        {"io", 1, 0, 'm'},        {"dir", 1, 0, 'd'},       {"deadline", 1, 0, 'e'},   {"cgroup", 1, 0, 'c'},
        {"verify", 0, 0, 'v'},    {0, 0, 0, 0}};
    if (getenv("KDUEL_POLICY") && *getenv("KDUEL_POLICY")) want.policy_text = getenv("KDUEL_POLICY");
    for (int c; (c = getopt_long(count, words, "", options, NULL)) != -1;) {
        if (c == 'k') want.kind = one_of(optarg, kinds, 5);
        else if (c == 'n') want.processes = (int)count_of(optarg, 1, MOST_PROCESSES);
        else if (c == 'i') want.iterations = count_of(optarg, 0, 1LL << 50);
        else if (c == 'p') want.policy_text = optarg;
        else if (c == 't') want.transfers = count_of(optarg, 1, 1LL << 40);
        else if (c == 'b') want.block = count_of(optarg, 1, 1 << 26);
        else if (c == 's') want.size = count_of(optarg, 1, 1LL << 40);
        else if (c == 'o') want.outputs = (int)count_of(optarg, 1, MOST_OUTPUTS);
        else if (c == 'm') want.mode = one_of(optarg, modes, 3);
        else if (c == 'd') want.directory = optarg;
        else if (c == 'e') want.deadline = (double)count_of(optarg, 1, 1000000);
        else if (c == 'c') want.cgroup = optarg;
        else if (c == 'v') want.verify = 1;
        else usage_error();
    }
    if (want.kind < 0 || optind != count) usage_error();
    if ((want.kind == IO || want.kind == MIXED) && want.size % want.block) usage_error();
    if (policy_parse(want.policy_text, &want.policy)) usage_error();
}

#endif
