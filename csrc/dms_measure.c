/* dms_measure.c - what CPUID does not tell, asked of the machine: three questions, each to two kernels of rows or of turned matrices
 *
 * A machine that others use answers differently from moment to moment, so an answer counts if it is the same, by a tenth, in all of a few rounds;
 * else what is known of such CPUs holds.
 */
#include "dms_internal.h"

#include <stdlib.h>
#include <string.h>

#if DMS_X86
#if DMS_MSVC
#include <intrin.h>
#else
#include <x86intrin.h>
#endif

enum { ROUNDS = DMS_MEASURED_ROUNDS, TENTH = DMS_MEASURED_MARGIN, SIDE = DMS_MEASURED_SIDE, COPIED = DMS_MEASURED_COPIED, STREAMED = DMS_MEASURED_STREAMED };

typedef struct memory {
    char *target, *source;
} memory;

/* The widest kernel of a family; NULL: there is none. */
static const dms_kernel *widest_kernel(const char *prefix)
{
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT; i++)
        if (dmlsplit_kernel_available(i) && strncmp(dms_kernel_table[i].name, prefix, strlen(prefix)) == 0)
            return &dms_kernel_table[i];
    return NULL;
}

/* Ticks of one run, and of reading the target once, as somebody will. */
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

/* Whether the second way is the better one; otherwise: what is known where rounds disagree, which ends the question at once. */
static bool is_better(const dms_kernel *kernel, dms_nest *nest, const dms_stores ways[2], const memory *m, size_t bytes, bool otherwise)
{
    bool better = true, worse = true;
    if (kernel == NULL)
        return otherwise;
    (void)time_of(kernel, nest, &ways[0], m, bytes);
    for (int round = 0; round < ROUNDS && (better || worse); round++) {
        const uint64_t first = time_of(kernel, nest, &ways[0], m, bytes), second = time_of(kernel, nest, &ways[1], m, bytes);
        better = better && second < first - first / TENTH;
        worse = worse && first < second - second / TENTH;
    }
    return better || (otherwise && !worse);
}

static void ask(dmlsplit_profile *profile, const memory *m)
{
    const dms_kernel *const runs = widest_kernel("runs_"), *const turns = widest_kernel("transpose_");
    const dms_stores fetches[2] = {dms_streamed_stores(DMLSPLIT_FETCH_LINES), dms_streamed_stores(DMLSPLIT_FETCH_PAGES)};
    const dms_stores claims[2] = {{DMS_PLAIN, 0, 0}, {DMS_CLAIMED, 0, DMS_CLAIMED_AHEAD}}, streams[2] = {claims[0], fetches[0]};
    dms_loop matrix[2] = {{SIDE, SIDE * 4, 4}, {SIDE, 4, SIDE * 4}};
    dms_nest run = {DMS_MOVE, DMS_NO_MATRIX, 0, STREAMED, 0, 0, claims[0], NULL}, turned = {DMS_TRANSPOSE, 0, 2, 4, 0, 0, claims[0], matrix};
    const bool pages = is_better(runs, &run, fetches, m, STREAMED, profile->fetch == DMLSPLIT_FETCH_PAGES);
    profile->fetch = pages ? DMLSPLIT_FETCH_PAGES : DMLSPLIT_FETCH_LINES;
    run.run = COPIED;
    if (2 * COPIED < profile->stream_copies && profile->level2 > 0) {
        const bool claim = is_better(runs, &run, claims, m, COPIED, profile->claim < UINT64_MAX);
        const bool turn = is_better(turns, &turned, streams, m, COPIED, profile->stream_turns < profile->stream_copies);
        profile->claim = claim ? DMS_INTEL_CLAIM * profile->level2 : UINT64_MAX;
        const uint64_t sooner = DMS_INTEL_STREAM_TURNS * profile->level2;
        profile->stream_turns = turn && sooner < profile->stream_copies ? sooner : profile->stream_copies;
    }
}

void dms_measure(dmlsplit_profile *profile)
{
    memory m = {malloc(STREAMED), malloc(STREAMED)};
    if (m.target != NULL && m.source != NULL) {
        memset(m.target, 1, STREAMED);  /* or all pages would be one, of zeros */
        memset(m.source, 2, STREAMED);
        ask(profile, &m);
    }
    free(m.target);
    free(m.source);
}

#else

/* No store is non-temporal, and nothing is claimed. */
void dms_measure(dmlsplit_profile *profile)
{
    (void)profile;
}

#endif
