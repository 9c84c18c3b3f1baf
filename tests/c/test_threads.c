/* test_threads.c - runs on several threads give what one thread gives, with every kernel, and from several threads at once, in children of fork() and after cancellation */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "paint.h"
#include "dms_internal.h"

#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#endif

/* ThreadSanitizer ends a child that starts threads, unless it is told not to. */
#ifdef __SANITIZE_THREAD__
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}
#endif

#ifdef __SANITIZE_ADDRESS__
/* A thread that is cancelled does not leave its frames, so AddressSanitizer's own exit of the thread finds their red zones on the signal stack. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}
#endif

enum { RANK = 3, PARTS = 5, CALLERS = 2 };

/* Sizes of the whole, strides in elements of whole and parts (0: packed), lengths on the axis. */
typedef struct shape {
    const char *name;
    uint32_t element_size, axis, part_count;
    uint64_t sizes[RANK];
    int64_t strides[RANK];
    uint64_t lengths[PARTS];
} shape;

static const shape shapes[] = {
    {"one run", 1, 0, 1, {3000001, 1, 1}, {0}, {3000001}},
    {"long runs", 4, 0, 3, {1000, 701, 1}, {0}, {300, 1, 699}},
    {"rows", 4, 1, 3, {1500, 400, 1}, {0}, {100, 101, 199}},
    {"channels", 1, 2, 3, {700, 901, 3}, {0}, {1, 1, 1}},
    {"small rows", 8, 1, 3, {90001, 8, 1}, {0}, {1, 2, 5}},
    {"transposed", 4, 0, 2, {1200, 900, 1}, {1, 1201, 1}, {500, 700}},
    {"padded", 2, 1, 2, {5000, 100, 1}, {117, 1, 1}, {30, 70}},
    {"broadcast", 4, 1, 2, {2000, 100, 1}, {0, 1, 1}, {40, 60}},
    {"a few bytes", 4, 0, 2, {5, 1, 1}, {0}, {2, 3}},
    {"nothing", 4, 0, 2, {0, 7, 1}, {0}, {0, 0}},
};

static uint64_t count_of(const shape *s)
{
    return s->sizes[0] * s->sizes[1] * s->sizes[2];
}

/* The whole's and the parts' memory: all parts lie in one block, one after the other. */
typedef struct memory {
    unsigned char *whole, *block;
    void *parts[PARTS];
    size_t whole_size, block_size;
} memory;

static memory make_memory(const shape *s, const dmlsplit_plan *plan, size_t skew)
{
    memory m;
    int64_t begin, end;
    dmlsplit_plan_whole_range(plan, &begin, &end);
    m.whole_size = (size_t)end + 1;
    m.block_size = (size_t)count_of(s) * s->element_size + 64 + skew;
    m.whole = malloc(m.whole_size);
    m.block = malloc(m.block_size);
    if (m.whole == NULL || m.block == NULL)
        abort();
    unsigned char *next = m.block + skew;
    for (uint32_t i = 0; i < s->part_count; i++) {
        m.parts[i] = next;
        if (s->sizes[s->axis] > 0)
            next += count_of(s) / s->sizes[s->axis] * s->lengths[i] * s->element_size;
    }
    return m;
}

/* What is read, and what is written, before a run. */
static void paint(memory *m, bool split, int digit)
{
    paint_places((char *)(split ? m->whole : m->block), split ? m->whole_size : m->block_size, 0, digit);
    paint_unwritten((char *)(split ? m->block : m->whole), split ? m->block_size : m->whole_size);
}

static void free_memory(memory *m)
{
    free(m->whole);
    free(m->block);
}

static dmlsplit_status run(const dmlsplit_plan *plan, bool split, memory *m, uint32_t threads)
{
    return split ? dmlsplit_split_threads(plan, m->whole, m->parts, threads)
                 : dmlsplit_join_threads(plan, (const void *const *)m->parts, m->whole, threads);
}

/* NULL where the kernel refuses; kernel NULL: whichever is best. */
static dmlsplit_plan *make_plan(const shape *s, bool split, const char *kernel)
{
    int64_t strides[RANK];
    dmlsplit_geometry g;
    memset(&g, 0, sizeof g);
    for (uint32_t d = 0; d < RANK; d++)
        strides[d] = s->strides[d] * (int64_t)s->element_size;
    g.struct_size = sizeof g;
    g.direction = split ? DMLSPLIT_SPLIT : DMLSPLIT_JOIN;
    g.element_size = s->element_size;
    g.rank = RANK;
    g.axis = s->axis;
    g.part_count = s->part_count;
    g.sizes = s->sizes;
    g.strides = s->strides[1] != 0 || s->strides[0] != 0 ? strides : NULL;
    g.lengths = s->lengths;
    dmlsplit_plan *plan = NULL;
    const dmlsplit_status status = dms_plan_create(&g, kernel, &plan, NULL);
    CHECK(status == DMLSPLIT_OK || (kernel != NULL && status == DMLSPLIT_KERNEL_REFUSED));
    return plan;
}

static void compare(const shape *s, bool split, const char *kernel, uint32_t threads, size_t skew)
{
    /* A broadcast whole cannot be written. */
    if (!split && s->strides[0] == 0 && s->strides[1] != 0)
        return;
    dmlsplit_plan *plan = make_plan(s, split, kernel);
    if (plan == NULL)
        return;
    memory one = make_memory(s, plan, skew), several = make_memory(s, plan, skew);
    for (int digit = 0; digit < paint_digits(one.whole_size + one.block_size); digit++) {
        paint(&one, split, digit);
        paint(&several, split, digit);
        CHECK(run(plan, split, &one, 1) == DMLSPLIT_OK);
        CHECK(run(plan, split, &several, threads) == DMLSPLIT_OK);
        CHECK(memcmp(one.whole, several.whole, one.whole_size) == 0);
        CHECK(memcmp(one.block, several.block, one.block_size) == 0);
    }
    free_memory(&one);
    free_memory(&several);
    dmlsplit_plan_destroy(plan);
}

static void call_chosen(void)
{
    static const uint32_t threads[] = {0, 3, 1000};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++)
            for (int split = 0; split < 2; split++)
                compare(&shapes[i], split == 1, NULL, threads[t], (i * 7 + t) % 64);
}

static void call_every_kernel(void)
{
    for (uint32_t k = 0; k < dmlsplit_kernel_count(); k++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            for (int split = 0; split < 2; split++)
                compare(&shapes[i], split == 1, dmlsplit_kernel_name(k), 3, (i * 7 + k) % 64);
}

/* Callers that are cancelled while they wait for others leave the pool as it was: the next run ends. */
#ifdef PTHREAD_CANCEL_DISABLE
static memory cancelled_memory;

static void *cancelled(void *given)
{
    (void)pthread_cancel(pthread_self());       /* as soon as it can be done */
    while (run(given, true, &cancelled_memory, 3) == DMLSPLIT_OK)
        continue;
    return NULL;
}

static void call_cancelled(void)
{
    dmlsplit_plan *plan = make_plan(&shapes[1], true, NULL);
    check_case = "cancelled";
    cancelled_memory = make_memory(&shapes[1], plan, 0);
    paint(&cancelled_memory, true, 0);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        void *result = NULL;
        (void)alarm(60);
        CHECK(pthread_create(&thread, NULL, cancelled, plan) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        CHECK(run(plan, true, &cancelled_memory, 3) == DMLSPLIT_OK);
        (void)alarm(0);
    }
    free_memory(&cancelled_memory);
    dmlsplit_plan_destroy(plan);
    check_case = "";
}
#else
static void call_cancelled(void)
{
}
#endif

#if defined(_WIN32) || !defined(DMS_TESTING)
static void call_together(void)
{
}
#else
static _Atomic int wanted, arrived, number_of_run, is_late;

/* Waits until as many threads as a run may have are at work on it, once in each thread, but not for ever. */
static void meet(void)
{
    static _Thread_local int seen;
    const struct timespec moment = {0, 1000000L};
    if (seen != number_of_run) {
        seen = number_of_run;
        arrived++;
    }
    (void)nanosleep(&moment, NULL);
    for (int i = 0; i < 20000 && arrived < wanted && !is_late; i++)
        (void)nanosleep(&moment, NULL);
    is_late = arrived < wanted;         /* the others wait no longer, either */
}

/* A run has all the threads that it may have, be they new or not, and no others. */
static void call_together(void)
{
    static const int counts[] = {4, 2, 3, 5, 5, 1, 4};
    dmlsplit_plan *plan = make_plan(&shapes[1], true, NULL);
    memory m = make_memory(&shapes[1], plan, 0);
    check_case = "together";
    paint(&m, true, 0);
    dms_before_slice = meet;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        wanted = counts[i];
        arrived = 0;
        number_of_run++;
        CHECK(run(plan, true, &m, (uint32_t)counts[i]) == DMLSPLIT_OK);
        CHECK_EQUAL(arrived, counts[i] == 1 ? 0 : counts[i]);   /* one copies without slices */
    }
    dms_before_slice = NULL;
    free_memory(&m);
    dmlsplit_plan_destroy(plan);
    check_case = "";
}
#endif

#ifdef _WIN32
static void call_first(void)
{
}

static void call_forked(void)
{
}

static void call_while_measuring(void)
{
}
#else
/* Runs in a child of fork(), by threads that it has to start, into memory that the parent has made. */
static int copies_in_child(const dmlsplit_plan *plan, memory *one, memory *several)
{
    (void)alarm(60);
    return run(plan, true, one, 1) == DMLSPLIT_OK && run(plan, true, several, 3) == DMLSPLIT_OK &&
           memcmp(one->block, several->block, one->block_size) == 0;
}

static void expect_success(pid_t child)
{
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (DMS_SANITIZED && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        /* gcc's AddressSanitizer does not release the locks of its allocator in a child, whichever thread had them. */
        printf("a child of fork() waited for a sanitizer\n");
        return;
    }
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
}

static _Atomic int handled;

static void handle(int number)
{
    handled = number;
}

/* Threads that are started take no signals of the process, and the caller that starts them blocks those that it did before. */
static void call_first(void)
{
    const struct timespec later = {0, 50000000L};
    struct sigaction before, action;
    sigset_t usr1, kept, pending;
    int number = 0;
    check_case = "signals";
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    CHECK(sigemptyset(&action.sa_mask) == 0 && sigemptyset(&usr1) == 0 && sigaddset(&usr1, SIGUSR1) == 0);
    CHECK(sigaction(SIGUSR1, &action, &before) == 0 && pthread_sigmask(SIG_BLOCK, &usr1, NULL) == 0);
    compare(&shapes[1], true, NULL, 3, 0);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &kept) == 0);
    CHECK(sigismember(&kept, SIGUSR1) == 1 && sigismember(&kept, SIGUSR2) == 0 && sigismember(&kept, SIGTERM) == 0);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    (void)nanosleep(&later, NULL);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1 && handled == 0);
    if (sigismember(&pending, SIGUSR1) == 1)
        CHECK(sigwait(&usr1, &number) == 0 && number == SIGUSR1);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &usr1, NULL) == 0 && sigaction(SIGUSR1, &before, NULL) == 0);
    check_case = "";
}

static void *nothing(void *given)
{
    return given;
}

/* Whether a child of a process with threads can start some here: under qemu's emulation of a process it ends. */
static bool children_start_threads(void)
{
    static int known = -1;
    int status = 1;
    if (known >= 0)
        return known == 1;
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        (void)alarm(60);
        _exit(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0 ? 0 : 1);
    }
    known = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!known)
        printf("no children of fork(): they cannot start threads here\n");
    return known == 1;
}

/* The threads of this process; 0: not known. */
static int count_threads(void)
{
    int count = 0;
    DIR *const tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    if (tasks != NULL)
        (void)closedir(tasks);
    return count;
}

static _Atomic int stopping;

static void *run_until_stopped(void *plan)
{
    memory own = make_memory(&shapes[1], plan, 0);
    paint(&own, true, 0);
    while (!stopping)
        CHECK(run(plan, true, &own, 3) == DMLSPLIT_OK);
    free_memory(&own);
    return NULL;
}

/* A child that was forked while others run, with the pool's lock taken or not, begins with a pool of its own. */
static void call_forked(void)
{
    pthread_t callers[CALLERS];
    dmlsplit_plan *plan = make_plan(&shapes[1], true, NULL);
    memory one = make_memory(&shapes[1], plan, 0), several = make_memory(&shapes[1], plan, 0);
    check_case = "forked";
    paint(&one, true, 0);
    paint(&several, true, 0);
    CHECK(run(plan, true, &several, 3) == DMLSPLIT_OK);
    const int threads = count_threads();
    CHECK(threads == 0 || threads >= 3);        /* the caller's and those that it was given */
    CHECK(run(plan, true, &several, 3) == DMLSPLIT_OK);
    CHECK(count_threads() <= threads);          /* which work again; one that was cancelled may have been listed until now */
    paint(&several, true, 0);
    for (int i = 0; i < CALLERS; i++)
        CHECK(pthread_create(&callers[i], NULL, run_until_stopped, plan) == 0);
    for (int i = 0; i < 20 && children_start_threads(); i++) {
        const pid_t child = fork();
        if (child == 0)
            _exit(copies_in_child(plan, &one, &several) ? 0 : 1);
        expect_success(child);
    }
    stopping = 1;
    for (int i = 0; i < CALLERS; i++)
        CHECK(pthread_join(callers[i], NULL) == 0);
    free_memory(&one);
    free_memory(&several);
    dmlsplit_plan_destroy(plan);
    check_case = "";
}

static void *measure(void *unused)
{
    dmlsplit_profile used;
    (void)unused;
    dms_profile_for(UINT64_MAX, &used);
    return NULL;
}

static int keeps_a_profile(uint64_t stream_copies)
{
    dmlsplit_profile profile, used;
    profile.struct_size = sizeof profile;
    if (dmlsplit_get_profile(&profile) != DMLSPLIT_OK)
        return 0;
    profile.stream_copies = stream_copies;
    if (dmlsplit_set_profile(&profile) != DMLSPLIT_OK)
        return 0;
    dms_profile_for(UINT64_MAX, &used);
    return used.stream_copies == stream_copies && used.origin == DMLSPLIT_FROM_SETTINGS;
}

/* A profile that is set while another thread measures one stays; so it does in a child that is forked then, where nobody measures. */
static void call_while_measuring(void)
{
    check_case = "while measuring";
    for (int i = 0; i < 16; i++) {
        const struct timespec later = {0, i / 2 * 8000000L};
        dmlsplit_profile kept;
        pthread_t thread;
        CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
        CHECK(pthread_create(&thread, NULL, measure, NULL) == 0);
        (void)nanosleep(&later, NULL);
        if (i % 2 == 0 && children_start_threads()) {
            const pid_t child = fork();
            if (child == 0) {
                (void)alarm(60);
                _exit(keeps_a_profile(99) ? 0 : 1);
            }
            expect_success(child);
        }
        CHECK(keeps_a_profile(1000 + (uint64_t)i));
        CHECK(pthread_join(thread, NULL) == 0);
        kept.struct_size = sizeof kept;
        CHECK_EQUAL(dmlsplit_get_profile(&kept), DMLSPLIT_OK);
        CHECK(kept.stream_copies == 1000 + (uint64_t)i && kept.origin == DMLSPLIT_FROM_SETTINGS);
    }
    CHECK_EQUAL(dmlsplit_set_profile(NULL), DMLSPLIT_OK);
    check_case = "";
}
#endif

#ifdef _WIN32
static DWORD WINAPI caller(LPVOID unused)
{
    (void)unused;
    call_chosen();
    return 0;
}
#else
static void *caller(void *unused)
{
    (void)unused;
    call_chosen();
    return NULL;
}
#endif

int main(void)
{
    call_first();
    call_chosen();
    call_every_kernel();
    call_together();
    call_cancelled();
    call_forked();
    call_while_measuring();
#ifdef _WIN32
    HANDLE callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        CHECK((callers[i] = CreateThread(NULL, 0, caller, NULL, 0, NULL)) != NULL);
    CHECK(WaitForMultipleObjects(CALLERS, callers, TRUE, INFINITE) == WAIT_OBJECT_0);
#else
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        CHECK(pthread_create(&callers[i], NULL, caller, NULL) == 0);
    for (int i = 0; i < CALLERS; i++)
        CHECK(pthread_join(callers[i], NULL) == 0);
#endif
    return check_report();
}
