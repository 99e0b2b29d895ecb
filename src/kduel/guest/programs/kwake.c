/* kwake: how long tasks wait to run after they were woken, at a fixed rate of requests, beside CPU hogs.
 *
 * A dispatcher (FIFO 98 where it may, so that its own waiting is not what is measured) posts requests to sleeping
 * workers at times planned beforehand; a worker that is woken does a fixed amount of arithmetic and sleeps again.
 *   start     from the planned time to the worker's first instruction for it, for all requests
 *   wake      from the post to the worker's first instruction, for workers that slept at the post
 *   response  from the planned time to the work's end, for all requests: a slow one delays and so lengthens the next
 *   dispatch  from the planned time to the post: the dispatcher's own lateness, to judge the others by
 * Requests run at a rate that no answer slows down, so a stall is seen by every request that falls into it.
 *
 * With --messengers there is no rate: each messenger, an ordinary task, posts to its workers whatever they have answered so
 * far, again and again, and sleeps while all are at work. Then a request's planned time is that of its post.
 */
#define _GNU_SOURCE
#include "distribution.h"
#include "policy.h"
#include "work.h"

#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { MOST_WORKERS = 4096, MOST_REQUESTS = 4000000, GRACE_S = 20, HOG_CHUNK = 10000, SLOWEST = 5 };

struct worker {
    _Atomic uint32_t posted; /* futex: requests posted so far */
    _Atomic uint32_t waiting, answered;
    atomic_int error, ready;
    pid_t pid;
};

struct request {
    int64_t sent, woke, done;
    int slept;
};

static struct {
    long long workers, rate, requests, work, hogs, messengers;
    const char *policy_text;
    struct policy policy;
} want = {.workers = 2, .rate = 100, .requests = 1000, .work = 20000, .hogs = -1, .policy_text = "other"};

static struct worker *workers;
static struct request *requests; /* those of worker w from w * want.requests on */
static _Atomic uint32_t *hog_chunks;
static pid_t *hogs;
static atomic_int *hogs_may_run;
static _Atomic uint32_t *answers; /* futex of each messenger: what its workers have answered */

static void end_all(void) {
    for (long long i = 0; i < want.workers; i++)
        if (workers[i].pid > 0) {
            policy_set_of(workers[i].pid, &policy_plain);
            kill(workers[i].pid, SIGKILL);
        }
    for (long long i = 0; i < want.hogs; i++)
        if (hogs[i] > 0) kill(hogs[i], SIGKILL);
    while (wait(NULL) > 0) {}
}

static int64_t planned(int64_t begin, long long worker, long long index) {
    if (want.messengers) return requests[worker * want.requests + index].sent;
    int64_t period = 1000000000 / want.rate;
    return begin + index * period + worker * period / want.workers;
}

static void run_worker(int number) {
    struct worker *mine = &workers[number];
    struct request *own = requests + number * want.requests;
    uint64_t state = pi_seed(number);
    volatile uint64_t sink = pi_points(&state, 64);
    struct policy seen;
    int error = policy_set(&want.policy);
    if (!error) error = policy_get(&seen);
    if (!error && !policy_same(&want.policy, &seen)) error = EINVAL;
    atomic_store(&mine->error, error);
    atomic_store(&mine->ready, 1);
    if (error) _exit(3);
    for (uint32_t i = 0; i < (uint32_t)want.requests; i++) {
        int slept = 0;
        while (atomic_load(&mine->posted) <= i) {
            slept = 1;
            atomic_store(&mine->waiting, i + 1);
            futex_wait(&mine->posted, i, NULL);
        }
        own[i].woke = now_ns();
        own[i].slept = slept && own[i].slept;
        sink += pi_points(&state, want.work);
        own[i].done = now_ns();
        atomic_store(&mine->answered, i + 1);
        if (want.messengers) {
            _Atomic uint32_t *told = &answers[number % want.messengers];
            atomic_fetch_add(told, 1);
            futex_wake(told);
        }
    }
    (void)sink;
    _exit(0);
}

static void run_hog(int number) {
    uint64_t state = pi_seed(number);
    volatile uint64_t sink = 0;
    policy_set(&policy_plain);
    for (;;) {
        sink += pi_points(&state, HOG_CHUNK);
        if (atomic_load(hogs_may_run)) atomic_fetch_add(&hog_chunks[number], 1);
    }
}

static uint64_t all_chunks(void) {
    uint64_t sum = 0;
    for (long long i = 0; i < want.hogs; i++) sum += atomic_load(&hog_chunks[i]);
    return sum;
}

static void usage_error(void) {
    fputs("usage: kwake [--workers N] [--rate R] [--requests N] [--work POINTS] [--hogs N] [--messengers N] [--policy POLICY]\n"
          "  --rate      requests a second to each worker   --requests  to each worker\n"
          "  --work      points of pi for each request      --hogs      busy processes beside (OTHER, nice 0)\n"
          "  --messengers N  of workers that ask for the next request, at no rate: at most one for each\n"
          "  --policy    of the workers: as kpolicy has it; by default what KDUEL_POLICY says\n", stderr);
    exit(2);
}

static long long count_of(const char *word, long long least, long long most) {
    long long value;
    if (!policy_number(word, word + strlen(word), &value) || value < least || value > most) usage_error();
    return value;
}

static void read_options(int count, char **words) {
    static const struct option options[] = {{"workers", 1, 0, 'w'}, {"rate", 1, 0, 'r'},   {"requests", 1, 0, 'n'},
                                            {"work", 1, 0, 'k'},    {"hogs", 1, 0, 'h'},   {"policy", 1, 0, 'p'},
                                            {"messengers", 1, 0, 'm'}, {0, 0, 0, 0}};
    if (getenv("KDUEL_POLICY") && *getenv("KDUEL_POLICY")) want.policy_text = getenv("KDUEL_POLICY");
    want.hogs = 0;
    for (int c; (c = getopt_long(count, words, "", options, NULL)) != -1;) {
        if (c == 'w') want.workers = count_of(optarg, 1, MOST_WORKERS);
        else if (c == 'r') want.rate = count_of(optarg, 1, 100000);
        else if (c == 'n') want.requests = count_of(optarg, 1, MOST_REQUESTS);
        else if (c == 'k') want.work = count_of(optarg, 0, 1LL << 40);
        else if (c == 'h') want.hogs = count_of(optarg, 0, MOST_WORKERS);
        else if (c == 'm') want.messengers = count_of(optarg, 0, MOST_WORKERS);
        else if (c == 'p') want.policy_text = optarg;
        else usage_error();
    }
    if (optind != count || want.workers * want.requests > MOST_REQUESTS || want.messengers > want.workers) usage_error();
    if (policy_parse(want.policy_text, &want.policy)) usage_error();
}

static pid_t fork_or_end(const char *role, long long number) {
    char name[16];
    pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "kwake: %s %lld could not be made: %s\n", role, number, strerror(errno));
        end_all();
        exit(1);
    }
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing outlives a dispatcher that was killed */
    snprintf(name, sizeof name, "%s %lld", role, number);
    prctl(PR_SET_NAME, name);
    return child;
}

static void start_all(void) {
    for (int i = 0; i < want.workers; i++) {
        pid_t child = fork_or_end("worker", i + 1);
        if (!child) run_worker(i);
        workers[i].pid = child;
    }
    for (int i = 0; i < want.hogs; i++) {
        pid_t child = fork_or_end("hog", i + 1);
        if (!child) run_hog(i);
        hogs[i] = child;
    }
}

/* All workers with their policy and asleep, or the end. */
static void wait_for_workers(void) {
    int64_t until = now_ns() + (int64_t)GRACE_S * 1000000000;
    for (long long i = 0; i < want.workers; i++) {
        while (!atomic_load(&workers[i].waiting)) {
            int error = atomic_load(&workers[i].ready) ? atomic_load(&workers[i].error) : 0;
            if (error) {
                fprintf(stderr, "kwake: the kernel refused the policy %s: %s\n", want.policy_text, strerror(error));
                end_all();
                exit(3);
            }
            if (now_ns() > until) {
                fprintf(stderr, "kwake: worker %lld did not get to run within %d s\n", i + 1, GRACE_S);
                end_all();
                exit(124);
            }
            usleep(1000);
        }
    }
}

static void post(long long w, uint32_t i) {
    struct request *r = &requests[w * want.requests + i];
    /* It sleeps if it has answered all so far and said that it waits for this one. */
    r->slept = atomic_load(&workers[w].waiting) == i + 1;
    r->sent = now_ns();
    atomic_store(&workers[w].posted, i + 1);
    futex_wake(&workers[w].posted);
}

static void run_messenger(int number) {
    for (long long left = 1; left;) {
        uint32_t seen = atomic_load(&answers[number]);
        left = 0;
        for (long long w = number; w < want.workers; w += want.messengers) {
            uint32_t answered = atomic_load(&workers[w].answered);
            left += answered < (uint32_t)want.requests;
            if (answered < (uint32_t)want.requests && atomic_load(&workers[w].posted) == answered) post(w, answered);
        }
        if (left) futex_wait(&answers[number], seen, NULL);
    }
    _exit(0);
}

/* Until all messengers have all answers; main itself sleeps meanwhile. */
static void dispatch_by_messengers(void) {
    pid_t own[want.messengers];
    for (int i = 0; i < want.messengers; i++) {
        own[i] = fork_or_end("messenger", i + 1);
        if (own[i] == 0) run_messenger(i);
    }
    for (int i = 0; i < want.messengers; i++)
        while (waitpid(own[i], NULL, 0) < 0 && errno == EINTR) {}
}

static void dispatch(int64_t begin) {
    for (long long i = 0; i < want.requests; i++)
        for (long long w = 0; w < want.workers; w++) {
            int64_t at = planned(begin, w, i);
            struct timespec t = {at / 1000000000, at % 1000000000};
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
            post(w, (uint32_t)i);
        }
}

static void wait_for_answers(void) {
    int64_t until = now_ns() + (int64_t)GRACE_S * 1000000000;
    for (long long w = 0; w < want.workers; w++)
        while (atomic_load(&workers[w].answered) < (uint32_t)want.requests) {
            if (now_ns() > until) {
                fprintf(stderr, "kwake: %lld requests of worker %lld were not answered within %d s after the last\n",
                        want.requests - atomic_load(&workers[w].answered), w + 1, GRACE_S);
                end_all();
                exit(124);
            }
            usleep(1000);
        }
}

/* The workers that slept and ran last after their post: who, when it was posted, when it ran. */
static void put_slowest(int64_t clock) {
    printf(",\n \"clock\":%lld,\"slowest\":[", (long long)clock);
    for (int k = 0; k < SLOWEST; k++) {
        struct request *found = NULL;
        for (long long i = 0; i < want.workers * want.requests; i++)
            if (requests[i].slept && (!found || requests[i].woke - requests[i].sent > found->woke - found->sent))
                found = &requests[i];
        if (!found) break;
        printf("%s[%d,%lld,%lld]", k ? "," : "", (int)workers[(found - requests) / want.requests].pid, (long long)found->sent,
               (long long)found->woke);
        found->slept = 0;
    }
    putchar(']');
}

int main(int count, char **words) {
    read_options(count, words);
    workers = shared_memory("kwake", (size_t)want.workers * sizeof *workers);
    requests = shared_memory("kwake", (size_t)(want.workers * want.requests) * sizeof *requests);
    hog_chunks = shared_memory("kwake", (size_t)want.hogs * sizeof *hog_chunks);
    hogs = shared_memory("kwake", (size_t)want.hogs * sizeof *hogs);
    hogs_may_run = shared_memory("kwake", sizeof *hogs_may_run);
    answers = shared_memory("kwake", (size_t)want.messengers * sizeof *answers);
    long long all = want.workers * want.requests;
    int64_t *samples = malloc((size_t)all * sizeof *samples);
    if (!samples) return 1;
    mlockall(MCL_CURRENT);
    struct policy above = {.size = 48, .policy = FIFO, .priority = 98, .flags = RESET_ON_FORK};
    int raised = policy_set(&above) == 0;
    fflush(stdout);
    start_all();
    wait_for_workers();

    usleep(200000); /* the hogs spread over the CPUs */
    MARK_CLOCK();
    int64_t clock = now_ns(), begin = clock + (want.messengers ? 0 : 10000000);
    uint64_t chunks = all_chunks();
    atomic_store(hogs_may_run, 1);
    if (want.messengers) dispatch_by_messengers();
    else dispatch(begin);
    chunks = all_chunks() - chunks;
    int64_t took = now_ns() - begin;
    wait_for_answers();
    end_all();

    printf("{\"kwake\":1,\"workers\":%lld,\"rate\":%lld,\"requests\":%lld,\"work\":%lld,\"hogs\":%lld,\"messengers\":%lld,"
           "\"policy_wanted\":\"%s\",\"policy\":", want.workers, want.rate, want.requests, want.work, want.hogs,
           want.messengers, want.policy_text);
    policy_print(stdout, &want.policy);
    printf(",\"dispatcher_policy\":\"%s\",\"seconds\":%.9f", raised ? "fifo:98" : "other", (double)took / 1e9);
    if (want.hogs) printf(",\"hog_points_per_s\":%.3f", (double)chunks * HOG_CHUNK / ((double)took / 1e9));
    else printf(",\"hog_points_per_s\":null");
    long long kept = 0, late = 0;
    for (long long i = 0; i < all; i++)
        if (requests[i].slept) samples[kept++] = requests[i].woke - requests[i].sent;
    printf(",\"queued\":%lld", all - kept);
    put_distribution("wake", samples, kept);
    for (long long i = 0; i < all; i++)
        samples[i] = requests[i].woke - planned(begin, i / want.requests, i % want.requests);
    put_distribution("start", samples, all);
    for (long long i = 0; i < all; i++) {
        samples[i] = requests[i].done - planned(begin, i / want.requests, i % want.requests);
        late += samples[i] > 1000000000 / want.rate;
    }
    put_distribution("response", samples, all);
    for (long long i = 0; i < all; i++)
        samples[i] = requests[i].sent - planned(begin, i / want.requests, i % want.requests);
    put_distribution("dispatch", samples, all);
    for (long long i = 0; i < all; i++) samples[i] = requests[i].done - requests[i].woke;
    put_distribution("work", samples, all);
    put_slowest(clock);
    if (want.messengers) puts(",\n \"late\":null}");
    else printf(",\n \"late\":%lld}\n", late);
    return fflush(stdout) ? 1 : 0;
}
