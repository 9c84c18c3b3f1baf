/* strided.c - single elements in a long loop and in short loops: a block of steps of the long loop at a time, for each step of the short ones
 *
 *     1000 rows of 3   for each row: 3 steps, and a loop to begin   ->   for each 64 rows: for each of 3: 64 steps
 *     3 rows of 1000   for each row: 1000 steps                     ->   the same: cache lines that rows share are used while cached
 */
#include "../dms_checked.h"
#include "../dms_kernel.h"

/* The innermost long loop; the short loops that run within its blocks, which are the inner ones and the outer ones with smaller steps in the source; and the
 * other loops. Both lists end at the end of their arrays, the innermost loop last. */
typedef struct nesting {
    dms_loop line;
    uint32_t inner, outer;              /* where the lists begin */
    dms_loop inners[DMLSPLIT_MAX_RANK], outers[DMLSPLIT_MAX_RANK];
} nesting;

/* Returns the innermost loop of at least `steps` steps; nest->rank if there is none. */
static uint32_t find_loop(const dms_nest *nest, uint64_t steps)
{
    uint32_t d = nest->rank;
    while (d > 0 && nest->loops[d - 1].size < steps)
        d--;
    return d > 0 ? d - 1 : nest->rank;
}

/* Returns false if there is no long loop. */
static bool sort_loops(const dms_nest *nest, nesting *n)
{
    uint64_t inside = 1;
    const uint32_t any = find_loop(nest, DMS_STRIDED_LONG), line = any < nest->rank ? any : find_loop(nest, DMS_STRIDED_LEAST);
    if (line == nest->rank)
        return false;
    n->line = nest->loops[line];
    n->inner = n->outer = DMLSPLIT_MAX_RANK;
    for (uint32_t d = nest->rank; d-- > 0;) {
        const dms_loop *loop = &nest->loops[d];
        const bool shares = d > line || dms_abs_i64(loop->source_stride) < dms_abs_i64(n->line.source_stride);
        if (d != line && shares && loop->size < DMS_STRIDED_LONG && inside * loop->size <= DMS_STRIDED_INSIDE) {
            inside *= loop->size;
            n->inners[--n->inner] = *loop;
        } else if (d != line) {
            n->outers[--n->outer] = *loop;
        }
    }
    return true;
}

const char *dms_can_strided(const dms_nest *nest)
{
    nesting n;
    return sort_loops(nest, &n) ? NULL : "there is no loop of 16 steps or more";
}

/* Returns the number of steps in a block whose cache lines stay in the first-level cache. */
static uint64_t block_of(const dms_loop *line)
{
    const uint64_t to = dms_abs_i64(line->target_stride), from = dms_abs_i64(line->source_stride), stride = to > from ? to : from;
    if (stride > DMS_STRIDED_BLOCK / DMS_STRIDED_BLOCK_LEAST)
        return DMS_STRIDED_BLOCK_LEAST;
    return stride < DMS_STRIDED_BLOCK / DMS_STRIDED_BLOCK_MOST ? DMS_STRIDED_BLOCK_MOST : DMS_STRIDED_BLOCK / stride;
}

void dms_run_strided(const dms_nest *nest, char *target, const char *source)
{
    nesting n;
    (void)sort_loops(nest, &n);
    const int64_t to_stride = n.line.target_stride, from_stride = n.line.source_stride;
    const uint64_t block = block_of(&n.line);
    const uint32_t outer = DMLSPLIT_MAX_RANK - n.outer, inner = DMLSPLIT_MAX_RANK - n.inner;
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_first(outer + inner, index);
    do
        for (uint64_t first = 0, steps; first < n.line.size; first += steps) {
            char *to = target + (int64_t)first * to_stride;
            const char *from = source + (int64_t)first * from_stride;
            steps = n.line.size - first < block ? n.line.size - first : block;
            do
                dms_copy_runs(to, from, to_stride, from_stride, steps, nest->run);
            while (dms_next(n.inners + n.inner, inner, index + outer, &to, &from));
        }
    while (dms_next(n.outers + n.outer, outer, index, &target, &source));
}
