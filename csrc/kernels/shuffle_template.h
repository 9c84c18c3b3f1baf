/* shuffle_template.h - small rows of any widths by byte shuffles
 *
 * Included after vector_<isa>.h. A vector of the target is the union of its picks, each a shuffle of one vector of the source (shuffle.c). Each vector is made
 * for many blocks of rows before the next one, so that its tables stay in registers and the blocks in the first-level cache:
 *
 *     for each vector of a block:  tables -> registers
 *         for each block:          load, shuffle, load, shuffle ..., store
 *
 * Instructions that shuffle within 16 bytes work on as many blocks at once as vectors have such lanes.
 */
#include "../dms_shuffle.h"
#include "stretch_template.h"

enum {
    UNIT = VECTOR / LANES
};

/* Makes one vector in each of `blocks` blocks from block `first` on. picks is a constant if at most 8. one (a constant): all picks read one stream, the whole
 * of a split, so that one register counts for all. claimed: the vector claims the line that it reaches in the next batch. Parts of a split are not claimed: 4 to
 * 21 parts of 1.3 to 6 MB took 0.75 to 1 of the time of claimed ones by AVX2, 0.73 to 1.04 by SSSE3; joins took 0.8 to 1 of the time of batches whose lines are
 * claimed at once, and plain ones 0.85 to 1.3 (Intel). */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(weave)(const dms_woven *v, const dms_pick *pick, size_t picks, bool one, char *const *from,
                                                         char *const *to, uint64_t first, uint64_t blocks, bool claimed)
{
    enum { IN_REGISTERS = 8 };
    const size_t held = picks < IN_REGISTERS ? picks : IN_REGISTERS, to_stride = v->block;
    char *target = to[v->target] + v->offset + first * to_stride;
    vector table[IN_REGISTERS];
    uint64_t mask[IN_REGISTERS];
    const char *source[IN_REGISTERS];
    size_t size[IN_REGISTERS], at = 0;
    for (size_t i = 0; i < held; i++) {
        table[i] = load_table(pick[i].table);
        mask[i] = pick[i].mask;
        size[i] = pick[one ? 0 : i].block;
        source[i] = from[pick[i].source] + pick[i].offset + first * size[i];
    }
    DMS_UNROLLED_BY_4                   /* rounds are so short that where the linker puts them cost 1.1 to 1.5 times (SSSE3, Zen 5) */
    for (uint64_t block = 0; block < blocks; block += LANES) {
        vector woven = shuffle_bytes(load_lanes(source[0] + at, (ptrdiff_t)size[0]), table[0], mask[0]);
        for (size_t i = 1; i < held; i++)
            woven = shuffle_into(woven, load_lanes(source[i] + at, (ptrdiff_t)size[one ? 0 : i]), table[i], mask[i]);
        for (size_t i = held; i < picks; i++) {
            const char *bytes = from[pick[i].source] + pick[i].offset + (first + block) * pick[i].block;
            woven = shuffle_into(woven, load_lanes(bytes, pick[i].block), load_table(pick[i].table), pick[i].mask);
        }
        if (!one && claimed && (uintptr_t)target % DMS_LINE < LANES * to_stride)
            DMS_CLAIM(target, blocks * to_stride);
        store_lanes(target, to_stride, woven);
        target += LANES * to_stride;
        if (one)
            at += LANES * size[0];
        for (size_t i = 0; i < held && !one; i++)
            source[i] += LANES * size[i];
    }
}

static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(weave_batch)(const dms_shuffle *s, bool one, char *const *from, char *const *to, uint64_t first,
                                                               uint64_t blocks, bool claimed)
{
    const dms_pick *pick = s->picks;
    for (const dms_woven *v = s->vectors; v < s->vectors + s->vector_count; pick += v++->picks) {
        switch (v->picks) {
#define WEAVE(n) case n: DMS_NAME(weave)(v, pick, n, one, from, to, first, blocks, claimed && v->offset % DMS_LINE == 0); break;
            WEAVE(1) WEAVE(2) WEAVE(3) WEAVE(4) WEAVE(5) WEAVE(6) WEAVE(7) WEAVE(8)
#undef WEAVE
        default: DMS_NAME(weave)(v, pick, v->picks, one, from, to, first, blocks, claimed && v->offset % DMS_LINE == 0); break;
        }
    }
}

static DMS_TARGET void DMS_NAME(shuffle_rows)(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    const dms_shuffle *s = tables;
    const bool claimed = stores->regime == DMS_CLAIMED && !split;
    const uint64_t most = (claimed ? DMS_STAGED_BATCH : DMS_SHUFFLE_BATCH) / ((uint64_t)c->row * s->rows) / LANES * LANES;
    const uint64_t count = c->rows / s->rows / LANES * LANES;       /* blocks */
    for (uint64_t first = 0, blocks; first < count; first += blocks) {
        blocks = count - first < most ? count - first : most;
        if (split)
            DMS_NAME(weave_batch)(s, true, &c->whole, c->parts, first, blocks, claimed);
        else
            DMS_NAME(weave_batch)(s, false, c->parts, &c->whole, first, blocks, claimed);
    }
    dms_move_channels(c, split, count * s->rows);
}

dms_slow DMS_NAME(dms_slow_shuffle)(const dmlsplit_plan *plan)
{
    return dms_slow_shuffle(plan, UNIT);
}

void *DMS_NAME(dms_prepare_shuffle)(const dmlsplit_plan *plan)
{
    return dms_make_shuffle(plan, UNIT);
}

DMS_TARGET void DMS_NAME(dms_copy_shuffle)(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    const dms_shuffle *s = tables;
    const uint64_t rows = DMS_STAGED_BATCH / ((uint64_t)c->row * s->rows) / LANES * LANES * s->rows;
    if (dms_is_streamed(stores))
        DMS_NAME(copy_batches)(c, tables, split, rows, c->row * (size_t)s->rows, stores, DMS_NAME(shuffle_rows));
    else
        DMS_NAME(shuffle_rows)(c, tables, split, stores);
}
