/* Operations of kbench that containers ask for: moving a task to another control group, a packet through a filter. */
#ifndef KDUEL_CONTAINERS_H
#define KDUEL_CONTAINERS_H

#include "conditions.h"
#include "kmodules.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

/* Control groups */

#define GROUPS "/sys/fs/cgroup"
static char attach_groups[2][32] = {GROUPS "/kbench-a", GROUPS "/kbench-b"};
static int attach_files[2], attached, attach_claim, shares_given;

static void join_group(int file) {
    if (write(file, "0", 1) != 1) die("moving to another control group");
}
static void remove_groups(void) {
    for (int i = 0; i < 2; i++) rmdir(attach_groups[i]);
    if (shares_given) put(GROUPS "/cgroup.subtree_control", "-cpu");
    close(attach_claim);
}

/* Whether groups below the first one have shares of the CPU. */
static int shares_there(void) {
    char line[1024] = "";
    FILE *list = fopen(GROUPS "/cgroup.subtree_control", "r");
    if (list && !fgets(line, sizeof line, list)) *line = 0;
    if (list) fclose(list);
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
        if (!strcmp(word, "cpu")) return 1;
    return 0;
}
static void open_attach(long argument) {
    char path[64];
    (void)argument;
    if (access(GROUPS "/cgroup.procs", W_OK) < 0) errno = errno == ENOENT ? ENODEV : errno, die("control groups (version 2)");
    attach_claim = claim_directory(attach_groups[0], 0755);
    if (mkdir(attach_groups[1], 0755) < 0 && errno != EEXIST) die(attach_groups[1]);
    shares_given = !shares_there() && put(GROUPS "/cgroup.subtree_control", "+cpu");
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/cpu.weight", attach_groups[i]);
        if (access(path, F_OK) < 0) remove_groups(), errno = ENODEV, die("control groups' shares of CPU");
        snprintf(path, sizeof path, "%s/cgroup.procs", attach_groups[i]);
        attach_files[i] = (int)need(open(path, O_WRONLY | O_CLOEXEC), path);
    }
}
static void attach(void) { join_group(attach_files[attached ^= 1]); }

/* A directory of a group in which a task is cannot be removed; so the process goes where its parent is. */
static void rejoin_parent(void) {
    char path[4096], line[3072];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)getppid());
    FILE *list = fopen(path, "r");
    while (list && fgets(line, sizeof line, list))
        if (!strncmp(line, "0::", 3)) {
            line[strcspn(line, "\n")] = 0;
            snprintf(path, sizeof path, GROUPS "%s/cgroup.procs", line + 3);
            put(path, "0");
        }
    if (list) fclose(list);
}
static void close_attach(void) {
    rejoin_parent();
    for (int i = 0; i < 2; i++) close(attach_files[i]);
    remove_groups();
}

/* A round trip in a group so many levels below the root, all with shares of the CPU of their own. */

static long levels;

/* The path of a file in the group of a level, from 1. */
static const char *in_level(long level, const char *file) {
    static char path[128];
    int used = snprintf(path, sizeof path, "%s", attach_groups[0]);
    while (--level > 0) used += snprintf(path + used, sizeof path - (size_t)used, "/g");
    snprintf(path + used, sizeof path - (size_t)used, "/%s", file);
    return path;
}
static void remove_levels(void) {
    for (long level = levels; level > 1; level--) rmdir(in_level(level, ""));
    remove_groups();
}
static void open_deep_pipe(long argument) {
    if (access(GROUPS "/cgroup.procs", W_OK) < 0) errno = errno == ENOENT ? ENODEV : errno, die("control groups (version 2)");
    attach_claim = claim_directory(attach_groups[0], 0755);
    shares_given = !shares_there() && put(GROUPS "/cgroup.subtree_control", "+cpu");
    for (levels = 1; levels < argument; levels++) {
        put(in_level(levels, "cgroup.subtree_control"), "+cpu");
        if (mkdir(in_level(levels + 1, ""), 0755) < 0 && errno != EEXIST) die("a control group");
    }
    if (access(in_level(levels, "cpu.weight"), F_OK) < 0) remove_levels(), errno = ENODEV, die("control groups' shares of CPU");
    if (!put(in_level(levels, "cgroup.procs"), "0")) die("moving to another control group");
    open_pipe(0);
}
static void close_deep_pipe(void) {
    close_pair();
    rejoin_parent();
    remove_levels();
}

/* Netfilter: rules of nftables, in a network namespace of the process's own, by netlink(7) */

struct message {
    char bytes[1 << 16];
    size_t used;
    unsigned sequence;
};
static struct message filter;

static size_t put_bytes(struct message *to, const void *data, size_t length) {
    size_t at = to->used;
    memcpy(to->bytes + at, data, length);
    to->used += NLMSG_ALIGN(length); /* the rest is zero */
    return at;
}
static size_t begin_message(struct message *to, int type, int flags, uint8_t family, uint16_t resource) {
    struct nlmsghdr header = {.nlmsg_type = (uint16_t)type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags), .nlmsg_seq = ++to->sequence};
    struct nfgenmsg part = {.nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(resource)};
    size_t at = put_bytes(to, &header, sizeof header);
    put_bytes(to, &part, sizeof part);
    return at;
}
static void end_message(struct message *to, size_t at) {
    ((struct nlmsghdr *)(void *)(to->bytes + at))->nlmsg_len = (uint32_t)(to->used - at);
}
static size_t put_attribute(struct message *to, int type, const void *data, size_t length) {
    struct nlattr header = {.nla_len = (uint16_t)(sizeof header + length), .nla_type = (uint16_t)type};
    size_t at = put_bytes(to, &header, sizeof header);
    if (length) put_bytes(to, data, length);
    return at;
}
static void put_text(struct message *to, int type, const char *text) { put_attribute(to, type, text, strlen(text) + 1); }
static void put_number(struct message *to, int type, uint32_t value) {
    value = htonl(value);
    put_attribute(to, type, &value, sizeof value);
}
static size_t begin_nest(struct message *to, int type) { return put_attribute(to, type | NLA_F_NESTED, NULL, 0); }
static void end_nest(struct message *to, size_t at) {
    ((struct nlattr *)(void *)(to->bytes + at))->nla_len = (uint16_t)(to->used - at);
}

/* One expression of a rule; its attributes follow, up to end_expression. */
struct expression { size_t element, data; };
static struct expression begin_expression(struct message *to, const char *name) {
    struct expression at = {.element = begin_nest(to, NFTA_LIST_ELEM)};
    put_text(to, NFTA_EXPR_NAME, name);
    at.data = begin_nest(to, NFTA_EXPR_DATA);
    return at;
}
static void end_expression(struct message *to, struct expression at) { end_nest(to, at.data), end_nest(to, at.element); }

/* Drop what goes to this port of UDP or TCP. */
static void put_rule(struct message *to, uint16_t port, int flags) {
    size_t message = begin_message(to, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | flags, NFPROTO_IPV4, 0);
    put_text(to, NFTA_RULE_TABLE, "kbench");
    put_text(to, NFTA_RULE_CHAIN, "out");
    size_t list = begin_nest(to, NFTA_RULE_EXPRESSIONS), value;
    port = htons(port);
    struct expression one = begin_expression(to, "payload");
    put_number(to, NFTA_PAYLOAD_DREG, NFT_REG_1);
    put_number(to, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_TRANSPORT_HEADER);
    put_number(to, NFTA_PAYLOAD_OFFSET, 2);
    put_number(to, NFTA_PAYLOAD_LEN, sizeof port);
    end_expression(to, one);
    one = begin_expression(to, "cmp");
    put_number(to, NFTA_CMP_SREG, NFT_REG_1);
    put_number(to, NFTA_CMP_OP, NFT_CMP_EQ);
    value = begin_nest(to, NFTA_CMP_DATA);
    put_attribute(to, NFTA_DATA_VALUE, &port, sizeof port);
    end_nest(to, value), end_expression(to, one);
    one = begin_expression(to, "immediate");
    put_number(to, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    value = begin_nest(to, NFTA_IMMEDIATE_DATA);
    size_t verdict = begin_nest(to, NFTA_DATA_VERDICT);
    put_number(to, NFTA_VERDICT_CODE, NF_DROP);
    end_nest(to, verdict), end_nest(to, value), end_expression(to, one);
    end_nest(to, list), end_message(to, message);
}

/* A table with a chain for outgoing packets, and so many rules; not one of them is for the socket's port. */
static void put_filter(struct message *to, int rules) {
    end_message(to, begin_message(to, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
    size_t at = begin_message(to, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, NLM_F_CREATE, NFPROTO_IPV4, 0);
    put_text(to, NFTA_TABLE_NAME, "kbench");
    end_message(to, at);
    at = begin_message(to, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN, NLM_F_CREATE, NFPROTO_IPV4, 0);
    put_text(to, NFTA_CHAIN_TABLE, "kbench");
    put_text(to, NFTA_CHAIN_NAME, "out");
    size_t hook = begin_nest(to, NFTA_CHAIN_HOOK);
    put_number(to, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    put_number(to, NFTA_HOOK_PRIORITY, 0);
    end_nest(to, hook);
    put_text(to, NFTA_CHAIN_TYPE, "filter");
    end_message(to, at);
    /* The last one is answered: not all kernels answer the end of a batch. */
    for (int i = 1; i <= rules; i++) put_rule(to, (uint16_t)i, i == rules ? NLM_F_ACK : 0);
    end_message(to, begin_message(to, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
}

static void set_filter(int rules) {
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    char answer[4096];
    int fd = (int)need(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER), "netfilter's netlink (module nf_tables)");
    put_filter(&filter, rules);
    need(sendto(fd, filter.bytes, filter.used, 0, (struct sockaddr *)&kernel, sizeof kernel), "sending rules");
    /* One answer for each message that failed; where none did, one for the last rule. */
    ssize_t got = need(recv(fd, answer, sizeof answer, 0), "the answer to rules");
    struct nlmsghdr *header = (void *)answer;
    struct nlmsgerr *error = NLMSG_DATA(header);
    if (got < (ssize_t)NLMSG_LENGTH(sizeof *error) || header->nlmsg_type != NLMSG_ERROR) errno = EPROTO, die("the answer to rules");
    if (error->error) errno = error->error == -EINVAL || error->error == -EOPNOTSUPP ? ENODEV : -error->error, die("rules of nftables (module nf_tables)");
    close(fd);
}

static int filtered_fd;

static void open_filtered(long argument) {
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    load_module("nf_tables", "");
    if (unshare(CLONE_NEWNET) < 0) errno = errno == EINVAL ? ENOSYS : errno, die("a network namespace");
    filtered_fd = (int)need(socket(AF_INET, SOCK_DGRAM, 0), "UDP socket");
    need(ioctl(filtered_fd, SIOCSIFFLAGS, &lo), "bringing lo up");
    set_filter((int)argument);
    struct sockaddr_in own = loopback(filtered_fd);
    need(connect(filtered_fd, (struct sockaddr *)&own, sizeof own), "UDP connect");
}
static void send_filtered(void) {
    char byte = 0;
    if (send(filtered_fd, &byte, 1, 0) != 1 || recv(filtered_fd, &byte, 1, MSG_DONTWAIT) != 1) die("a packet through the filter");
}
static void close_filtered(void) { close(filtered_fd); }

#endif
