/* scalar.c - the reference: copies one run after another
 *
 * Copies any nest on any machine. The other kernels are tested against it, so it is kept simple.
 */
#include "../dms_kernel.h"

/* Copies short runs four at a time, so that addresses do not depend on each other: elements of 1 byte took 0.55 of the time. move and end: see dms_move. */
static DMS_ALWAYS_INLINE void copy_runs(char *to, const char *from, int64_t to_stride, int64_t from_stride, uint64_t count, size_t run, size_t move,
                                        size_t end)
{
    for (; move <= 16 && count >= 4; count -= 4, to += 4 * to_stride, from += 4 * from_stride) {
        dms_move(to, from, run, move, end);
        dms_move(to + to_stride, from + from_stride, run, move, end);
        dms_move(to + 2 * to_stride, from + 2 * from_stride, run, move, end);
        dms_move(to + 3 * to_stride, from + 3 * from_stride, run, move, end);
    }
    for (; count > 0; count--, to += to_stride, from += from_stride)
        dms_move(to, from, run, move, end);
}

void dms_copy_runs(char *to, const char *from, int64_t to_stride, int64_t from_stride, uint64_t count, size_t run)
{
/* Runs of little more than a power of two end with a short move: 66 to 90 bytes took 0.75 to 0.9 of the time, 33 to 48 bytes 0.88 to 1 (Zen 4). */
#define COPY_RUNS_AND(move, end) copy_runs(to, from, to_stride, from_stride, count, run, move, end)
#define COPY_RUNS(move) COPY_RUNS_AND(move, move)
    if (run > DMS_SCALAR_CALLED)
        for (; count > 0; count--, to += to_stride, from += from_stride)
            dms_copy_long(to, from, run);
    else if (run > 96)
        COPY_RUNS(64);
    else if (run > 80)
        COPY_RUNS_AND(64, 32);
    else if (run > 64)
        COPY_RUNS_AND(64, 16);
    else if (run > 48)
        COPY_RUNS(32);
    else if (run > 32)
        COPY_RUNS_AND(32, 16);
    else if (run >= 16)
        COPY_RUNS(16);
    else if (run >= 8)
        COPY_RUNS(8);
    else if (run >= 4)
        COPY_RUNS(4);
    else if (run >= 2)
        COPY_RUNS(2);
    else
        COPY_RUNS(1);
#undef COPY_RUNS
#undef COPY_RUNS_AND
}

const char *dms_can_scalar(const dms_nest *nest)
{
    (void)nest;
    return NULL;
}

void dms_run_scalar(const dms_nest *nest, char *target, const char *source)
{
    if (nest->rank == 0) {              /* one piece: finding a loop for its size would take longer than its copy */
        if (nest->run > DMS_SCALAR_CALLED)
            dms_copy_long(target, source, nest->run);
        else
            dms_copy_short(target, source, nest->run);
        return;
    }
    const dms_loop line = nest->loops[nest->rank - 1];
    const uint32_t outer = nest->rank - 1;
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_first(outer, index);
    do
        dms_copy_runs(target, source, line.target_stride, line.source_stride, line.size, nest->run);
    while (dms_next(nest->loops, outer, index, &target, &source));
}

/* ---- What kernels of all instruction sets can ---- */

const char *dms_can_runs(const dms_nest *nest)
{
    (void)nest;
    return NULL;
}

const char *dms_can_reverse(const dms_nest *nest)
{
    if (nest->run > 16 || (nest->run & (nest->run - 1)) != 0)
        return "elements are not of 1, 2, 4, 8 or 16 bytes";
    if (nest->rank == 0)
        return "it is one run";
    const dms_loop *last = &nest->loops[nest->rank - 1];
    return last->target_stride == (int64_t)nest->run && last->source_stride == -(int64_t)nest->run ? NULL : "no loop goes backwards";
}
