/* stretch_template.h - a stretch of small rows, copied in the three regimes by a kernel that knows plain stores only
 *
 * Included after vector_<isa>.h. Groups of rows are copied one after the other. Past the caches they go by way of the first-level cache, where whole
 * lines are collected for each target:
 *
 *     whole  abcabcabc...  -- copy -->  a..: aaa|aaaaaaaa|aa   b..: b|bbbbbbbb|...   -- drain -->   memory
 */
#pragma once

#include "../dms_channels.h"
#include "lines_template.h"

/* Prefetches what the groups after this one read, or the lines that they write. */
static DMS_TARGET inline void DMS_NAME(prefetch_group)(const dms_channels *group, bool split, const dms_stores *stores)
{
    const bool streamed = dms_is_streamed(stores), pages = split && stores->page > 0;
    const uintptr_t ahead = dms_lines_ahead(stores, split);
    for (size_t i = 0; i <= group->count; i++) {
        const char *const at = i == 0 ? group->whole : group->parts[i - 1];
        const size_t bytes = (size_t)group->rows * (i == 0 ? group->row : group->widths[i - 1]);
        const bool is_source = (i == 0) == split;
        for (size_t line = 0; streamed && is_source && line < bytes; line += DMS_LINE)
            DMS_PREFETCH_AT(at + line, ahead);
        for (size_t line = 0; pages && is_source && line < bytes; line += DMS_LINE)
            DMS_FETCH_PAGE(at + line, stores);
        for (size_t line = 0; !streamed && !is_source && line < bytes; line += DMS_LINE)
            DMS_CLAIM(at + bytes, line);
    }
}

/* rows: of a group, of DMS_STAGED_GROUP bytes at most. copy: by plain stores, whatever it is given. */
static DMS_TARGET void DMS_NAME(copy_groups)(const dms_channels *c, const void *tables, bool split, uint64_t rows, const dms_stores *stores,
                                             dms_stretch_copier *copy)
{
    _Alignas(DMS_LINE) char staged[DMS_STAGED_GROUP + 2 * DMS_LINE * DMS_MOST_CHANNELS];
    dms_lines lines[DMS_MOST_CHANNELS];
    const size_t targets = split ? c->count : 1;
    const bool streamed = dms_is_streamed(stores);
    dms_channels group = *c;
    if (stores->regime == DMS_PLAIN) {
        copy(c, tables, split, stores);
        return;
    }
    DMS_ASSERT(rows > 0 && rows * c->row <= DMS_STAGED_GROUP);
    for (size_t i = 0, place = 0; streamed && i < targets; i++) {
        lines[i] = dms_start_lines(split ? c->parts[i] : c->whole, staged + place);
        place += ((size_t)rows * (split ? c->widths[i] : c->row) + 2 * DMS_LINE - 1) / DMS_LINE * DMS_LINE;
    }
    for (uint64_t row = 0; row < c->rows; row += group.rows) {
        group.rows = c->rows - row < rows ? c->rows - row : rows;
        group.whole = c->whole + row * c->row;
        for (size_t i = 0; i < c->count; i++)
            group.parts[i] = c->parts[i] + row * c->widths[i];
        DMS_NAME(prefetch_group)(&group, split, stores);
        for (size_t i = 0; streamed && i < targets; i++)
            *(split ? &group.parts[i] : &group.whole) = lines[i].bytes + lines[i].fill;
        copy(&group, tables, split, stores);
        for (size_t i = 0; streamed && i < targets; i++)
            DMS_NAME(drain_lines)(&lines[i], (size_t)group.rows * (split ? c->widths[i] : c->row));
    }
    for (size_t i = 0; streamed && i < targets; i++)
        dms_finish_lines(&lines[i]);
}
