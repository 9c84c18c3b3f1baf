/* dms_tune.c - times a plan's regimes on the caller's own buffers */
#define _POSIX_C_SOURCE 200809L         /* clock_gettime, in C11 without extensions */
#include "dms_internal.h"

#include <string.h>
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <time.h>
#endif

static const dms_regime regimes[] = {DMS_PLAIN, DMS_CLAIMED, DMS_STREAMED};
enum { REGIMES = sizeof regimes / sizeof regimes[0] };

/* The stores of a plan: those chosen at its creation, or one regime for all kinds. */
typedef struct choice {
    dms_stores stores[DMS_KINDS];
} choice;

static choice choice_of(const dmlsplit_plan *plan)
{
    choice c;
    memcpy(c.stores, plan->stores, sizeof c.stores);
    return c;
}

/* Sets a plan's stores and chooses its kernels again. If there is no memory for tables, the plan copies part after
 * part. */
static void apply(dmlsplit_plan *plan, const choice *c)
{
    memcpy(plan->stores, c->stores, sizeof c->stores);
    for (uint64_t i = 0; i < plan->shape_count; i++)
        plan->shapes[i].nest.stores = c->stores[plan->shapes[i].nest.kind];
    free(plan->tables);
    plan->tables = NULL;
    memset(plan->refusals, 0, sizeof plan->refusals);
    if (dms_choose_kernels(plan, NULL) != DMLSPLIT_OK)
        plan->group = NULL;
}

#ifdef DMS_TESTING
double (*dms_other_clock)(void);
#endif

static double seconds(void)
{
#ifdef DMS_TESTING
    if (dms_other_clock != NULL)
        return dms_other_clock();
#endif
#ifdef _WIN32
    LARGE_INTEGER now, per_second;
    (void)QueryPerformanceCounter(&now);
    (void)QueryPerformanceFrequency(&per_second);
    return (double)now.QuadPart / (double)per_second.QuadPart;
#else
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
#endif
}

static double time_runs(dmlsplit_plan *plan, const choice *c, const dms_buffers *buffers, uint64_t runs)
{
    apply(plan, c);
    dms_run_all(plan, buffers);         /* leaves the caches in the state after such a run */
    const double start = seconds();
    for (uint64_t i = 0; i < runs; i++)
        dms_run_all(plan, buffers);
    return seconds() - start;
}

/* True if `other` wins by the margin in all rounds but one. Each round times one after the other. */
static bool is_better(dmlsplit_plan *plan, const choice *now, const choice *other, const dms_buffers *buffers, uint64_t runs)
{
    int lost = 0;
    for (int round = 0; round < DMS_TRIED_ROUNDS && lost < 2; round++) {
        const double a = time_runs(plan, now, buffers, runs), b = time_runs(plan, other, buffers, runs);
        lost += b >= a - a * DMS_TRIED_MARGIN / 100;
    }
    return lost < 2;
}

static void tune(dmlsplit_plan *plan, const dms_buffers *buffers)
{
    dmlsplit_profile profile = {.struct_size = sizeof profile};
    choice best = choice_of(plan);
    const uint64_t runs = DMS_TRIED_BYTES / plan->bytes + 1;
    (void)dmlsplit_get_profile(&profile);
    for (size_t i = 0; i < REGIMES; i++) {
        const dms_stores stores = dms_stores_for(&profile, regimes[i], DMS_CLAIMED_AHEAD), fills = dms_stores_for(&profile, regimes[i], DMS_FILLED_AHEAD);
        const choice other = {{[DMS_MOVE] = stores, [DMS_FILL] = fills, [DMS_TRANSPOSE] = stores}};
        if (is_better(plan, &best, &other, buffers, runs))
            best = other;
    }
    apply(plan, &best);
}

dmlsplit_status dmlsplit_plan_tune(dmlsplit_plan *plan, void *whole, void *const *parts)
{
    const dms_buffers buffers = {whole, parts};
    const dmlsplit_status status = dms_check_pointers(plan, &buffers);
    if (status == DMLSPLIT_OK && plan->bytes > 0)
        tune(plan, &buffers);
    return status;
}
