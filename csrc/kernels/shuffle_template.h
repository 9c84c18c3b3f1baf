/* shuffle_template.h - small rows of any widths by byte shuffles
 *
 * Included after vector_<isa>.h. A vector of the target is the union of what each step takes from a vector of the source (see shuffle.c). One vector
 * after the other is made for many blocks of rows, so that its tables stay in registers while the blocks stay in the first-level cache:
 *
 *     for each vector of a block:  tables -> registers
 *         for each block:          load, shuffle, load, shuffle ..., store
 *
 * Instructions that shuffle within 16 bytes work on as many blocks at once as vectors have such lanes.
 */
#include "../dms_shuffle.h"
#include "stretch_template.h"

enum {
    UNIT = VECTOR / LANES,
    GROUP_BYTES = 16384                 /* blocks that are woven together: read once for each vector */
};

/* steps is a constant up to 8, and more than it otherwise. one: there is one source stream (a constant), so that one register counts for all. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(weave)(const dms_shuffle *s, const dms_step *step, size_t steps, bool one, const char *const *from,
                                                         char *to, size_t to_step, uint64_t blocks)
{
    enum { IN_REGISTERS = 8 };
    const size_t first = steps < IN_REGISTERS ? steps : IN_REGISTERS;
    vector table[IN_REGISTERS];
    uint64_t mask[IN_REGISTERS];
    const char *source[IN_REGISTERS];
    size_t size[IN_REGISTERS], at = 0;
    for (size_t i = 0; i < first; i++) {
        table[i] = load_table(step[i].table);
        mask[i] = step[i].mask;
        source[i] = from[step[i].source] + step[i].offset;
        size[i] = s->source_block[one ? 0 : step[i].source];
    }
    for (uint64_t block = 0; block < blocks; block += LANES) {
        vector woven = shuffle_bytes(load_lanes(source[0] + at, size[0]), table[0], mask[0]);
        for (size_t i = 1; i < first; i++)
            woven = shuffle_into(woven, load_lanes(source[i] + at, size[one ? 0 : i]), table[i], mask[i]);
        for (size_t i = first; i < steps; i++) {
            const size_t stride = s->source_block[step[i].source];
            const char *bytes = from[step[i].source] + step[i].offset + block * stride;
            woven = shuffle_into(woven, load_lanes(bytes, stride), load_table(step[i].table), step[i].mask);
        }
        store_lanes(to, to_step, woven);
        to += LANES * to_step;
        if (one)
            at += LANES * size[0];
        for (size_t i = 0; i < first && !one; i++)
            source[i] += LANES * size[i];
    }
}

static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(weave_group)(const dms_shuffle *s, bool one, const char *const *from, char *const *to,
                                                               uint64_t blocks)
{
    const dms_step *step = s->steps;
    for (size_t i = 0; i < s->vector_count; i++) {
        const dms_woven *v = &s->vectors[i];
        char *at = to[v->target] + v->offset;
        const size_t to_step = s->target_block[v->target];
        switch (v->steps) {
#define WEAVE(n) case n: DMS_NAME(weave)(s, step, n, one, from, at, to_step, blocks); break;
            WEAVE(1) WEAVE(2) WEAVE(3) WEAVE(4) WEAVE(5) WEAVE(6) WEAVE(7) WEAVE(8)
#undef WEAVE
        default: DMS_NAME(weave)(s, step, v->steps, one, from, at, to_step, blocks); break;
        }
        step += v->steps;
    }
}

static DMS_TARGET void DMS_NAME(shuffle_rows)(const dms_channels *c, const void *tables, bool split)
{
    const dms_shuffle *s = tables;
    const uint64_t most = GROUP_BYTES / ((uint64_t)c->row * s->rows) / LANES * LANES;
    const char *from[DMS_MOST_CHANNELS];
    char *to[DMS_MOST_CHANNELS];
    uint64_t left = c->rows / s->rows / LANES * LANES;      /* blocks */
    const uint64_t done = left * s->rows;
    for (size_t i = 0; i < c->count; i++)
        if (split)
            to[i] = c->parts[i];
        else
            from[i] = c->parts[i];
    if (split)
        from[0] = c->whole;
    else
        to[0] = c->whole;
    for (uint64_t blocks; left > 0; left -= blocks) {
        blocks = left < most ? left : most;
        if (split)
            DMS_NAME(weave_group)(s, true, from, to, blocks);
        else
            DMS_NAME(weave_group)(s, false, from, to, blocks);
        for (size_t i = 0; i < s->sources; i++)
            from[i] += blocks * s->source_block[i];
        for (size_t i = 0; i < s->targets; i++)
            to[i] += blocks * s->target_block[i];
    }
    dms_move_channels(c, split, done);
}

const char *DMS_NAME(dms_accept_shuffle)(const dmlsplit_plan *plan)
{
    return dms_refuse_shuffle(plan, UNIT, 8);
}

void *DMS_NAME(dms_prepare_shuffle)(const dmlsplit_plan *plan)
{
    return dms_make_shuffle(plan, UNIT);
}

DMS_TARGET void DMS_NAME(dms_copy_shuffle)(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    const dms_shuffle *s = tables;
    const uint64_t rows = MOST_STAGED / ((uint64_t)c->row * s->rows) / LANES * LANES * s->rows;
    DMS_NAME(copy_groups)(c, tables, split, rows, stores, DMS_NAME(shuffle_rows));
}
