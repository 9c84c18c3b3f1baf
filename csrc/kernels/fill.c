/* fill.c - an element that is repeated over contiguous memory: the input was broadcast along that dimension
 *
 * Ordinary stores: the source stays in a register, and half the traffic of a copy fits the caches twice as long.
 */
#include "../dms_kernel.h"

const char *dms_accept_fill(const dms_nest *nest)
{
    if (nest->run > 16 || (nest->run & (nest->run - 1)) != 0)
        return "elements are not of 1, 2, 4, 8 or 16 bytes";
    if (nest->rank == 0)
        return "it is one run";
    const dms_loop *last = &nest->loops[nest->rank - 1];
    return last->source_stride == 0 && last->target_stride == (int64_t)nest->run ? NULL : "no element is repeated over contiguous memory";
}

static void fill_line(char *to, const char *element, size_t run, uint64_t size)
{
    char pattern[DMS_LINE];             /* a whole number of elements */
    for (size_t i = 0; i < DMS_LINE; i += run)
        memcpy(pattern + i, element, run);
    for (; size >= DMS_LINE; size -= DMS_LINE, to += DMS_LINE)
        memcpy(to, pattern, DMS_LINE);
    dms_copy_short(to, pattern, (size_t)size);
}

void dms_run_fill(const dms_nest *nest, char *target, const char *source)
{
    uint64_t index[DMLSPLIT_MAX_RANK];
    const uint64_t size = nest->loops[nest->rank - 1].size * nest->run;
    dms_first(nest->rank, index);
    do
        fill_line(target, source, nest->run, size);
    while (dms_next(nest->loops, nest->rank - 1, index, &target, &source));
}
