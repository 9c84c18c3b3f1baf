/* dms_measure.c - measures what CPUID does not report: which of two ways to store is faster for a kernel of runs or of
 * transposes, if the output is read once afterwards
 *
 * On a shared machine times vary from moment to moment. So one way counts as faster only if it wins by a tenth in all
 * of a few rounds, or in nearly all of many; otherwise the defaults for the CPU are kept.
 */
#include "dms_kernel.h"
#include "dms_memory.h"

#include <stdlib.h>
#include <string.h>

#if DMS_X86
#if DMS_MSVC
#include <intrin.h>
#else
#include <x86intrin.h>
#endif

enum { MARGIN = DMS_MEASURED_MARGIN, SIDE = DMS_MEASURED_SIDE, COPIED = DMS_MEASURED_COPIED, FILLED = DMS_MEASURED_FILLED, STREAMED = DMS_MEASURED_STREAMED };

typedef struct memory {
    char *target, *source;
} memory;

/* Returns the kernel with the widest vectors among those with this ability, which is the first of the table; NULL if there is none. */
static const dms_kernel *widest_kernel(const char *(*can)(const dms_nest *nest))
{
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT; i++)
        if (dmlsplit_kernel_available(i) && dms_kernel_table[i].can_nest == can)
            return &dms_kernel_table[i];
    return NULL;
}

/* Returns the ticks of one run and of reading the target once, because a reader usually follows. */
static uint64_t time_of(const dms_kernel *kernel, dms_nest *nest, const dms_stores *stores, const memory *m, size_t bytes)
{
    char sum = 0;
    nest->stores = *stores;
    const uint64_t start = __rdtsc();
    kernel->run_nest(nest, m->target, m->source);
    for (size_t i = 0; i < bytes; i += 64)
        sum = (char)(sum ^ m->target[i]);
    *(volatile char *)m->target = sum;
    return __rdtsc() - start;
}

/* A copy or a transpose that is timed in two ways. */
typedef struct question {
    const dms_kernel *kernel;
    dms_nest nest;
    size_t bytes;                       /* written */
} question;

/* The number of rounds that must agree, and the number of ticks after which measuring ends. */
typedef struct patience {
    int rounds;
    uint64_t begin, ticks;
} patience;

/* Returns 1 if the second way is faster, -1 if the first is, 0 if rounds disagree or time runs out. Stops as soon as
 * rounds disagree. */
static int answer_to(question q, dms_stores first, dms_stores second, const memory *m, const patience *p)
{
    const int most = p->rounds / DMS_MEASURED_OUTLIERS;
    int not_better = 0, not_worse = 0;
    if (q.kernel == NULL)
        return 0;
    (void)time_of(q.kernel, &q.nest, &first, m, q.bytes);
    for (int round = 0; round < p->rounds && (not_better <= most || not_worse <= most); round++) {
        if (__rdtsc() - p->begin > p->ticks)
            return 0;
        const uint64_t a = time_of(q.kernel, &q.nest, &first, m, q.bytes), b = time_of(q.kernel, &q.nest, &second, m, q.bytes);
        not_better += b >= a - a / MARGIN;
        not_worse += a >= b - b / MARGIN;
    }
    return not_better <= most ? 1 : not_worse <= most ? -1 : 0;
}

/* Sets `member` of the profile to the faster one of two values, if the rounds agree. */
#define ASK(question, regime, member, bit, one, other)                                                      \
    do {                                                                                                    \
        dmlsplit_profile first = *profile, second = *profile;                                               \
        first.member = (one);                                                                               \
        second.member = (other);                                                                            \
        const int answer = answer_to(question, dms_stores_for(&first, regime, DMS_CLAIMED_AHEAD),             \
                                   dms_stores_for(&second, regime, DMS_CLAIMED_AHEAD), m, p);               \
        if (answer != 0) {                                                                                  \
            profile->member = answer > 0 ? second.member : first.member;                                    \
            profile->measured |= (uint32_t)(bit);                                                           \
        }                                                                                                   \
    } while (0)

/* Sets *from, the traffic from which a regime is used, to `yes` if it beats plain stores in this copy or transpose, to `no` if it loses. */
static void ask_from(question q, dms_regime regime, uint64_t *from, dmlsplit_member bit, uint64_t yes, uint64_t no, dmlsplit_profile *profile,
                     const memory *m, const patience *p)
{
    const uintptr_t ahead = q.nest.kind == DMS_FILL ? DMS_FILLED_AHEAD : DMS_CLAIMED_AHEAD;
    const int answer = answer_to(q, dms_stores_for(profile, DMS_PLAIN, 0), dms_stores_for(profile, regime, ahead), m, p);
    if (answer == 0)
        return;
    *from = answer > 0 ? yes : no;
    profile->measured |= (uint32_t)bit;
}

static void ask(dmlsplit_profile *profile, const memory *m, const patience *p)
{
    const dms_kernel *const runs = widest_kernel(dms_can_runs), *const transposes = widest_kernel(dms_can_transpose);
    dms_loop matrix[2] = {{SIDE, SIDE * 4, 4}, {SIDE, 4, SIDE * 4}}, apart[2] = {{SIDE, SIDE * 4, 4}, {SIDE, 4, SIDE * 4 + DMS_LINE}};
    dms_loop repeated[1] = {{FILLED / DMS_MEASURED_RUN, DMS_MEASURED_RUN, 0}};
    dms_loop pieces[1] = {{COPIED / DMS_MEASURED_PIECE, DMS_MEASURED_PIECE, DMS_MEASURED_PIECE}};
    const question copied = {runs, {.columns = DMS_NO_MATRIX, .run = COPIED}, COPIED};
    const question streamed = {runs, {.columns = DMS_NO_MATRIX, .run = STREAMED}, STREAMED};
    const question in_pieces = {runs, {.columns = DMS_NO_MATRIX, .rank = 1, .run = DMS_MEASURED_PIECE, .loops = pieces}, COPIED};
    const question transposed = {transposes, {.kind = DMS_TRANSPOSE, .rank = 2, .run = 4, .loops = matrix}, SIDE * SIDE * 4};
    const question spread = {transposes, {.kind = DMS_TRANSPOSE, .rank = 2, .run = 4, .loops = apart}, SIDE * SIDE * 4};  /* rows do not evict each other */
    const question filled = {runs, {.kind = DMS_FILL, .columns = DMS_NO_MATRIX, .rank = 1, .run = DMS_MEASURED_RUN, .loops = repeated}, FILLED};
    const uint64_t usual = profile->stream_copies, sooner = 2 * COPIED < profile->stream_turns ? 2 * COPIED : profile->stream_turns;
    const uint64_t later = 2 * COPIED < profile->stream_turns ? profile->stream_turns : usual;      /* a loser at 8 MiB may win later */
    ASK(streamed, DMS_STREAMED, fetch, DMLSPLIT_FETCH, DMLSPLIT_FETCH_LINES, DMLSPLIT_FETCH_PAGES);
    if (profile->fetch == DMLSPLIT_FETCH_LINES)
        ASK(streamed, DMS_STREAMED, ahead, DMLSPLIT_AHEAD, DMS_LINES_AHEAD, DMS_NEAREST_AHEAD);
    ASK(in_pieces, DMS_PLAIN, call, DMLSPLIT_CALL, DMS_LEAST_CALLED, UINT64_MAX);
    ASK(transposed, DMS_STREAMED, gathered, DMLSPLIT_GATHERED, DMS_LINE, DMS_MOST_GATHERED);
    ASK(spread, DMS_STREAMED, streamed_height, DMLSPLIT_STREAMED_HEIGHT, DMS_STREAMED_HIGH, DMS_STREAMED_LOWER);
    if (2 * COPIED < usual && profile->level2 > 0) {
        ask_from(copied, DMS_CLAIMED, &profile->claim, DMLSPLIT_CLAIM, DMS_INTEL_CLAIM * profile->level2, UINT64_MAX, profile, m, p);
        if (profile->claim == UINT64_MAX)   /* otherwise fills of this size are streamed */
            ask_from(filled, DMS_CLAIMED, &profile->claim_fills, DMLSPLIT_CLAIM_FILLS, DMS_FILLS_CLAIM * profile->level2, UINT64_MAX, profile, m, p);
        ask_from(transposed, DMS_STREAMED, &profile->stream_turns, DMLSPLIT_STREAM_TURNS, sooner, later, profile, m, p);
        ask_from(copied, DMS_STREAMED, &profile->stream_copies, DMLSPLIT_STREAM_COPIES, 2 * COPIED, usual, profile, m, p);
        if (profile->stream_turns > profile->stream_copies)
            profile->stream_turns = profile->stream_copies;
    }
    ASK(transposed, DMS_PLAIN, cached_height, DMLSPLIT_CACHED_HEIGHT, DMS_TILE_HIGH, DMS_TILE_LOWER);
}

void dms_measure(dmlsplit_profile *profile, int rounds, uint64_t ticks)
{
    memory m = {dms_allocate(1, STREAMED), dms_allocate(1, STREAMED)};
    const patience p = {rounds, __rdtsc(), ticks};
    if (m.target != NULL && m.source != NULL) {
        memset(m.target, 1, STREAMED);  /* otherwise all pages would map to one page of zeros */
        memset(m.source, 2, STREAMED);
        ask(profile, &m, &p);
    }
    free(m.target);
    free(m.source);
}

#else

/* Without x86's time-stamp counter nothing is measured. */
void dms_measure(dmlsplit_profile *profile, int rounds, uint64_t ticks)
{
    (void)profile, (void)rounds, (void)ticks;
}

#endif
