/* stretch_template.h - copies a stretch of small rows past the caches by a kernel that has plain stores only
 *
 * Included after vector_<isa>.h. Rows are copied batch by batch. A batch is staged in the first-level cache, where each target collects whole cache lines:
 *
 *     whole  abcabcabc...  -- copy -->  a..: aaa|aaaaaaaa|aa   b..: b|bbbbbbbb|...   -- drain -->   memory
 */
#pragma once

#include "../dms_channels.h"
#include "lines_template.h"

/* True if hardware prefetches the source of staged batches well enough: on a Zen 4 sources of joins of 3 parts and more (8 to 33 MB by AVX2 and SSSE3 took 0.75
 * to 0.99 of the time, of 4 x 16 bytes 1.07), and wholes of which a part is read at short steps (8 to 33 MB in steps of 64 to 128 bytes 0.77 to 1, of 234 and
 * 336 bytes 1.15 to 1.3). On a Zen 5 these joins by vectors of less than 64 bytes (10 to 34 MB of 3 to 8 parts took 0.75 to 1.03, of 5 + 7 + 9 bytes 1.04 to
 * 1.15; by 64 bytes 0.97 to 2). Where single lines may not take turns, and where pages are prefetched, it was not measured. */
static inline bool is_left_to_hardware(const dms_channels *c, bool split, size_t step, const dms_stores *stores)
{
    const bool lines = stores->gathered <= DMS_LINE, far = lines && dms_fetches_far(stores);
    if (split)
        return far && step <= DMS_STAGED_STEP;
    return (far || (lines && VECTOR < DMS_LINE && stores->page_mask == 0)) && c->count > DMS_STAGED_FEW;
}

/* Prefetches the source of later batches. On a Zen 4, what is prefetched for a batch at once would evict the staged lines from the first-level cache, so it is
 * prefetched into the second-level one: splits of rows of 4 + 1 + 80 + 32 elements of 2 bytes took 0.75 of the time, of 20 + 60 bytes 0.7. Of several sources
 * each gets less of a batch: joins of 2 parts took 0.75 to 0.9, of 4 and more 1.05 to 1.15. On a Zen 5 the first-level cache is better: 15 shapes took 0.95 of
 * the time, joins of 2 parts 0.8 to 0.95. */
static DMS_TARGET inline void DMS_NAME(prefetch_batch)(const dms_channels *batch, bool split, bool fetched, const dms_stores *stores)
{
    const bool pages = split && stores->page_mask > 0;
    const bool is_far = dms_fetches_far(stores) && (split || batch->count <= DMS_STAGED_FEW);
    const uintptr_t ahead = split && stores->page_mask == 0 ? DMS_LINES_AHEAD : DMS_NEAR_AHEAD;
    for (size_t i = 0; i < (split ? 1 : batch->count); i++) {
        const char *const at = split ? batch->whole : batch->parts[i];
        const size_t bytes = (size_t)batch->rows * (split ? batch->row : batch->widths[i]);
        for (size_t line = 0; fetched && line < bytes; line += DMS_LINE)
            if (is_far)
                DMS_PREFETCH_FAR((uintptr_t)(at + line) + ahead);
            else
                DMS_PREFETCH_AT(at + line, ahead);
        for (size_t line = 0; pages && line < bytes; line += DMS_LINE)
            DMS_FETCH_PAGE(at + line, stores);
    }
}

/* Copies a stretch past the caches in batches of `rows` rows, at most DMS_STAGED_BATCH bytes each. copy: a function that copies with plain stores when
 * stores are streamed; step: bytes of the whole from one of its reads for a part to the next. */
static DMS_TARGET void DMS_NAME(copy_batches)(const dms_channels *c, const void *tables, bool split, uint64_t rows, size_t step,
                                             const dms_stores *stores, dms_stretch_copier *copy)
{
    enum { MOST_LEFT = DMS_PAGE };      /* left out, so that what is staged for a target lies in one page */
    _Alignas(DMS_LINE) char staged[DMS_STAGED_BATCH + 2 * DMS_LINE * DMS_MOST_CHANNELS + MOST_LEFT];
    dms_lines lines[DMS_MOST_CHANNELS];
    const size_t targets = split ? c->count : 1;
    const bool fetched = !is_left_to_hardware(c, split, step, stores);
    dms_channels batch = *c;
    DMS_ASSERT(dms_is_streamed(stores) && rows > 0 && rows * c->row <= DMS_STAGED_BATCH);
    char *at = staged;                  /* inline: d22 and j6 took 1.05 times as long where a function had the address of `lines` */
    for (size_t i = 0, left = MOST_LEFT; i < targets; i++) {
        const size_t size = ((size_t)rows * (split ? c->widths[i] : c->row) + 2 * DMS_LINE - 1) / DMS_LINE * DMS_LINE, skipped = dms_left_out(at, size);
        if (skipped <= left) {
            left -= skipped;
            at += skipped;
        }
        DMS_ASSERT(dms_left_out(at, size) == 0 || skipped > left);
        lines[i] = dms_start_lines(split ? c->parts[i] : c->whole, at);
        at += size;
    }
    for (uint64_t row = 0; row < c->rows; row += batch.rows) {
        batch.rows = c->rows - row < rows ? c->rows - row : rows;
        batch.whole = c->whole + row * c->row;
        for (size_t i = 0; i < c->count; i++)
            batch.parts[i] = c->parts[i] + row * c->widths[i];
        DMS_NAME(prefetch_batch)(&batch, split, fetched, stores);
        for (size_t i = 0; i < targets; i++)
            *(split ? &batch.parts[i] : &batch.whole) = lines[i].bytes + lines[i].fill;
        copy(&batch, tables, split, stores);
        for (size_t i = 0; i < targets; i++)
            DMS_NAME(drain_lines)(&lines[i], (size_t)batch.rows * (split ? c->widths[i] : c->row));
    }
    for (size_t i = 0; i < targets; i++)
        dms_finish_lines(&lines[i]);
}
