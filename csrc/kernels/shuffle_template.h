/* shuffle_template.h - small rows by pshufb, which shuffles within 16 bytes
 *
 * Included after vector_<isa>.h. A vector of the target is the union of what each step takes from a vector of the source (see shuffle.c). Vectors
 * with two lanes work on two blocks of rows at once, one in each lane.
 */
#include "../dms_shuffle.h"

enum { LANES = VECTOR / 16 };

static DMS_TARGET DMS_ALWAYS_INLINE vector DMS_NAME(weave)(const dms_step *step, size_t count, const char *const *from, const size_t *block)
{
    vector woven = shuffle_bytes(load_lanes(from[step->source] + step->offset, block[step->source]), load_table(step->table));
    for (size_t i = 1; i < count; i++) {
        step++;
        woven = either(woven, shuffle_bytes(load_lanes(from[step->source] + step->offset, block[step->source]), load_table(step->table)));
    }
    return woven;
}

static DMS_TARGET void DMS_NAME(shuffle_rows)(const dms_shuffle *s, const dms_channels *c, bool split)
{
    const char *from[DMS_MOST_CHANNELS];
    char *to[DMS_MOST_CHANNELS];
    uint64_t row = 0;
    dms_shuffle_streams(c, split, from, to);
    for (; c->rows - row >= LANES * s->rows; row += LANES * s->rows) {
        const dms_step *step = s->steps;
        for (size_t i = 0; i < s->vector_count; i++) {
            const dms_woven *v = &s->vectors[i];
            store_lanes(to[v->target] + v->offset, s->target_block[v->target], DMS_NAME(weave)(step, v->steps, from, s->source_block));
            step += v->steps;
        }
        for (size_t i = 0; i < s->sources; i++)
            from[i] += LANES * s->source_block[i];
        for (size_t i = 0; i < s->targets; i++)
            to[i] += LANES * s->target_block[i];
    }
    dms_copy_channels(c, split, row);
}

const char *DMS_NAME(dms_accept_shuffle)(const dmlsplit_plan *plan)
{
    return dms_refuse_shuffle(plan, 16, 8);
}

void DMS_NAME(dms_run_shuffle)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_shuffle shuffle;
    dms_channels channels;
    if (!dms_build_shuffle(plan, 16, &shuffle))
        return;                         /* not after it was accepted */
    while (first < last) {
        dms_next_channels(plan, buffers, &first, last, &channels);
        DMS_NAME(shuffle_rows)(&shuffle, &channels, plan->direction == DMLSPLIT_SPLIT);
    }
}
