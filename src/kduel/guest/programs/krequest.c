/* krequest: one request of an application, counted call by call, as kbench counts an operation.
 *
 *   krequest [--conditions K] [--seed N] [--count N] [--region N] [--send FILE]
 *            (--port PORT [--new] | --command "WORDS")
 *
 * A request is the bytes of FILE, sent to a server at 127.0.0.1:PORT over one connection (with --new: over one of its own,
 * until the server closes it) or to the standard input of COMMAND, which stays; its answer is as many bytes as the first one
 * has. Without --send a request is a run of COMMAND, from fork to its end. --region says which of the plug-in's regions it is.
 * One line of JSON for each condition, as kbench's. Between the markers all that the machine does is counted: client, server,
 * and kernel.
 */
#define _GNU_SOURCE
#include "table.h"

enum { REGIONS_MAX = 64 };
static struct operation regions[REGIONS_MAX], *asked = regions;
static char *again_words[16];
#define FIRST regions
#define AGAIN again_words
#pragma clang diagnostic ignored "-Wunused-function"
#include "measuring.h"
#include "randomness.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>

enum { WORDS_MAX = 32, MISSING_MS = 10000, QUIET_MS = 1000 };

static char request[1 << 20], answer[1 << 20], *command[WORDS_MAX + 1];
static size_t request_size, answer_size;
static int port, into = -1, from = -1, nowhere = -1;

static void wrong(const char *what) {
    fprintf(stderr, "krequest: %s\n", what);
    exit(1);
}

static void connect_server(void) {
    static const int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    into = from = (int)need(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    need(setsockopt(into, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    need(connect(into, (struct sockaddr *)&address, sizeof address), "connect");
}

static void start_command(void) {
    int to_it[2], to_us[2];
    need(pipe2(to_it, O_CLOEXEC), "pipe");
    need(pipe2(to_us, O_CLOEXEC), "pipe");
    pid_t pid = (pid_t)need(fork(), "fork");
    if (pid == 0) {
        dup2(to_it[0], 0);
        dup2(to_us[1], 1);
        execvp(command[0], command);
        die(command[0]);
    }
    close(to_it[0]);
    close(to_us[1]);
    into = to_it[1], from = to_us[0];
}

static void send_request(void) {
    for (size_t sent = 0; sent < request_size;) {
        ssize_t more = write(into, request + sent, request_size - sent);
        /* A command that has ended: reading tells how much of an answer it gave. */
        if (more < 0 && errno == EPIPE) return;
        sent += (size_t)need(more, "send");
    }
}

/* The first answer ends where nothing more comes. */
static void learn_answer(void) {
    struct pollfd one = {.fd = from, .events = POLLIN};
    send_request();
    for (answer_size = 0; poll(&one, 1, answer_size ? QUIET_MS : MISSING_MS) > 0;) {
        ssize_t got = need(read(from, answer, sizeof answer), "the answer");
        if (!got) break;
        answer_size += (size_t)got;
    }
    if (!answer_size) wrong("there is no answer to the request");
}

static void open_kept(long argument) {
    (void)argument;
    if (port) connect_server();
    else start_command();
    learn_answer();
}

static void ask(void) {
    send_request();
    for (size_t got = 0; got < answer_size;) {
        ssize_t more = need(read(from, answer, answer_size - got), "the answer");
        if (!more) wrong("an answer is shorter than the first one");
        got += (size_t)more;
    }
}

static void close_kept(void) {
    close(into);
    if (from != into) close(from);
}

static void open_new(long argument) {
    (void)argument;
    connect_server();
    learn_answer();
    close_kept();
}

static void ask_new(void) {
    ssize_t more;
    connect_server();
    ask();
    if ((more = need(read(from, answer, sizeof answer), "the answer"))) wrong("an answer is longer than the first one");
    close_kept();
}

static void run_command(void) {
    int status;
    pid_t pid = (pid_t)need(fork(), "fork");
    if (pid == 0) {
        dup2(nowhere, 1);
        execvp(command[0], command);
        _exit(127);
    }
    need(waitpid(pid, &status, 0), "waitpid");
    if (status) wrong("the command failed");
}

static void read_request(const char *path) {
    int file = (int)need(open(path, O_RDONLY), path);
    for (ssize_t got; (got = need(read(file, request + request_size, sizeof request - request_size), path)) > 0;) request_size += (size_t)got;
    if (!request_size || request_size == sizeof request) wrong("a request has 1 byte to 1 MiB");
    close(file);
}

int main(int count, char **words) {
    long times = 40;
    unsigned conditions = 1;
    uint64_t seed = 0;
    struct condition condition = {.times = 1};
    const char *part = NULL;
    int is_new = 0, said = 0;
    for (int at = 1; at < count && words[at][0] == '-'; at++) {
        int first = at;
        if (!strcmp(words[at], "--new")) is_new = 1;
        else if (!strcmp(words[at], "--port")) port = (int)number(words[++at], 1, 65535);
        else if (!strcmp(words[at], "--region")) asked = regions + (int)number(words[++at], 1, REGIONS_MAX) - 1;
        else if (!strcmp(words[at], "--send") && words[at + 1]) read_request(words[++at]);
        else if (!strcmp(words[at], "--command") && words[at + 1]) {
            char *copy = strdup(words[++at]), *rest;
            int used = 0;
            for (char *word = strtok_r(copy, " ", &rest); word && used < WORDS_MAX; word = strtok_r(NULL, " ", &rest)) command[used++] = word;
        } else {
            if (!strcmp(words[at], "--count")) times = (long)number(words[++at], 1, SAMPLES);
            else if (!strcmp(words[at], "--conditions")) conditions = (unsigned)number(words[++at], 1, 1000);
            else if (!strcmp(words[at], "--seed")) seed = (uint64_t)number(words[++at], 0, 1e15);
            else if (!strcmp(words[at], "--part")) part = read_part(words[++at], &condition);
            else wrong("unknown option");
            continue;
        }
        while (first <= at && said < 15) again_words[said++] = words[first++];
    }
    if (!port == !command[0] || (port && !request_size) || (is_new && !port))
        wrong("usage: krequest [--conditions K] [--seed N] [--count N] [--region N] [--send FILE] (--port PORT [--new] | --command WORDS)");
    if (readlink("/proc/self/exe", own_path, sizeof own_path - 1) < 0) die("/proc/self/exe");
    *asked = (struct operation){
        .name = "request",
        .open = !request_size ? NULL : is_new ? open_new : open_kept,
        .run = !request_size ? run_command : is_new ? ask_new : ask,
        .close = request_size && !is_new ? close_kept : NULL,
        .wakes = request_size ? PROCESSES : NEW_TASKS,
    };
    signal(SIGPIPE, SIG_IGN);
    seed_randomness();
    if (!part) {
        exact_under_conditions(asked, times, conditions, seed);
        return 0;
    }
    nowhere = (int)need(open("/dev/null", O_WRONLY | O_CLOEXEC), "/dev/null");
    memset(samples, 0, sizeof samples); /* no page of these faults in while measuring */
    memset(empty_samples, 0, sizeof empty_samples);
    exact(asked, times, &condition, part);
    return 0;
}
