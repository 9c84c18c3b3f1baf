/* fill.c - a run that is repeated over contiguous memory, by ordinary stores: the source stays in a register or the first-level cache */
#include "../dms_kernel.h"

/* The bytes that are copied over and over: enough for memcpy to be at full speed. A page exactly, or clearly less: a load waits for an earlier store whose
 * address has nearly the same low 12 bits. */
#define PAGE_BYTES 4096
#define PATTERN_BYTES 3072

const char *dms_accept_fill(const dms_nest *nest)
{
    return dms_is_fill(nest) ? NULL : "no run is repeated over contiguous memory";
}

/* run divides a line. */
static void fill_lines(char *to, const char *element, size_t run, uint64_t size, bool claimed)
{
    char pattern[DMS_LINE];
    for (size_t i = 0; i < DMS_LINE; i += run)
        memcpy(pattern + i, element, run);
    for (; size >= DMS_LINE; size -= DMS_LINE, to += DMS_LINE) {
        if (claimed)
            DMS_CLAIM(to, DMS_CLAIMED_AHEAD);
        memcpy(to, pattern, DMS_LINE);
    }
    dms_copy_short(to, pattern, (size_t)size);
}

/* Copies what is there already, twice as much every time, as far as that stays in the cache. */
static void fill_runs(char *to, const char *from, size_t run, uint64_t size)
{
    const size_t most = PAGE_BYTES % run == 0 ? PAGE_BYTES : run < PATTERN_BYTES ? PATTERN_BYTES / run * run : run;
    uint64_t done = run;
    memcpy(to, from, run);
    while (done < size) {
        const uint64_t ready = done < most ? done : most;
        const uint64_t some = ready < size - done ? ready : size - done;
        memcpy(to + done, to, (size_t)some);
        done += some;
    }
}

void dms_run_fill(const dms_nest *nest, char *target, const char *source)
{
    uint64_t index[DMLSPLIT_MAX_RANK];
    const uint64_t size = nest->loops[nest->rank - 1].size * nest->run;
    const bool divides = DMS_LINE % nest->run == 0, claimed = nest->stores.regime == DMS_CLAIMED;
    dms_first(nest->rank, index);
    do
        if (divides)
            fill_lines(target, source, nest->run, size, claimed);
        else
            fill_runs(target, source, nest->run, size);
    while (dms_next(nest->loops, nest->rank - 1, index, &target, &source));
}
