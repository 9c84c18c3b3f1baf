/* shuffle_avx512vbmi.c - small rows of any widths by byte permutes of 512-bit vectors
 *
 * A vector of the target is put together by masked permutes, one for each step (see shuffle.c), and stored as a whole line (see
 * lines_avx512vbmi.h).
 */
#include "../dms_shuffle.h"

#if DMS_X86
#include <immintrin.h>

#include "lines_avx512vbmi.h"

static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE __m512i take(__m512i woven, const dms_step *step, const char *const *from)
{
    const __m512i bytes = _mm512_loadu_si512((const void *)(from[step->source] + step->offset));
    return _mm512_mask_permutexvar_epi8(woven, step->mask, _mm512_load_si512((const void *)step->table), bytes);
}

static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE void shuffle_rows(const dms_shuffle *s, const dms_channels *c, bool split, bool streamed)
{
    const char *from[DMS_MOST_CHANNELS];
    char *to[DMS_MOST_CHANNELS];
    line_writer writers[DMS_MOST_CHANNELS];
    uint64_t row = 0;
    dms_shuffle_streams(c, split, from, to);
    for (size_t i = 0; i < s->targets; i++)
        writers[i] = start_lines(to[i]);
    for (; c->rows - row >= s->rows; row += s->rows) {
        const dms_step *step = s->steps;
        for (size_t i = 0; streamed && i < s->sources; i++)
            for (size_t at = 0; at < s->source_block[i]; at += DMS_LINE)
                DMS_PREFETCH(from[i] + at);
        for (size_t i = 0; i < s->vector_count; i++) {
            line_writer *w = &writers[s->vectors[i].target];
            __m512i woven = take(_mm512_setzero_si512(), step, from);
            for (const dms_step *end = step++ + s->vectors[i].steps; step < end; step++)
                woven = take(woven, step, from);
            const __m512i line = _mm512_permutex2var_epi8(w->previous, w->rotation, woven);
            if (w->begin == 0)
                store_line(w->line, line, streamed);
            else
                store_some(w, line, DMS_LINE);
            w->begin = 0;
            w->pending = w->shift;
            w->previous = woven;
            w->line += DMS_LINE;
        }
        for (size_t i = 0; i < s->sources; i++)
            from[i] += s->source_block[i];
    }
    for (size_t i = 0; i < s->targets; i++)
        finish_lines(&writers[i]);
    dms_copy_channels(c, split, row);
}

static DMS_TARGET_AVX512VBMI void shuffle_cached(const dms_shuffle *s, const dms_channels *c, bool split)
{
    shuffle_rows(s, c, split, false);
}

static DMS_TARGET_AVX512VBMI void shuffle_streamed(const dms_shuffle *s, const dms_channels *c, bool split)
{
    shuffle_rows(s, c, split, true);
}

const char *dms_accept_shuffle_avx512vbmi(const dmlsplit_plan *plan)
{
    return dms_refuse_shuffle(plan, DMS_LINE, 16);
}

void dms_run_shuffle_avx512vbmi(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    dms_shuffle shuffle;
    dms_channels channels;
    if (!dms_build_shuffle(plan, DMS_LINE, &shuffle))
        return;                         /* not after it was accepted */
    while (first < last) {
        dms_next_channels(plan, buffers, &first, last, &channels);
        if (plan->stream)
            shuffle_streamed(&shuffle, &channels, split);
        else
            shuffle_cached(&shuffle, &channels, split);
    }
    _mm_sfence();
}
#endif
