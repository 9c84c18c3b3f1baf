/* shuffle.c - makes the list of byte shuffles for small rows
 *
 * A block of rows is a whole number of vectors in every stream, so all blocks take the same shuffles. Here a split into parts of 1 and 2 units with vectors
 * of 4: 4 rows are 1 vector of part a, 2 of part b and 3 of the whole. Each load that a vector needs is a pick.
 *
 *     whole  abbabbabbabb       a: aaaa = a..a from byte 0, ..a..a from byte 4
 *            ^ a row            b: bbbb = bb.b from byte 1, then ...b from byte 5; ...
 */
#include "../dms_memory.h"
#include "../dms_shuffle.h"

/* Returns the smallest number of rows that are whole vectors in every part. vector_size is a power of two. */
static size_t rows_of_block(const dms_channels *l, size_t vector_size)
{
    size_t bits = vector_size;
    for (size_t i = 0; i < l->count; i++)
        bits |= l->widths[i];
    return vector_size / (bits & (0 - bits));
}

/* Makes byte t of the last vector come from this byte of a source stream, which has `width` bytes per row. Returns
 * false if there are too many picks. */
static bool add_byte(dms_shuffle *s, size_t vector_size, size_t t, uint32_t source, size_t width, size_t byte)
{
    dms_woven *v = &s->vectors[s->vector_count - 1];
    dms_pick *const end = &s->picks[s->pick_count], *pick = end - v->picks;
    while (pick < end && (pick->source != source || byte < pick->offset || byte >= pick->offset + vector_size))
        pick++;
    if (pick == end) {
        if (s->pick_count == DMS_MOST_PICKS)
            return false;
        s->pick_count++;
        v->picks++;
        memset(pick->table, DMS_NOT_PICKED, sizeof pick->table);
        pick->mask = 0;
        pick->source = source;
        pick->block = (uint32_t)(width * s->rows);      /* no load may go beyond the block: the stream may end there */
        pick->offset = byte + vector_size <= pick->block ? (uint32_t)byte : pick->block - (uint32_t)vector_size;
    }
    pick->table[t] = (uint8_t)(byte - pick->offset);
    pick->mask |= UINT64_C(1) << t;
    return true;
}

/* Adds the vector at this offset of a target stream. Returns false if there are too many vectors or picks. */
static bool add_vector(dms_shuffle *s, const dms_channels *l, bool split, size_t vector_size, uint32_t target, size_t offset)
{
    const size_t width = split ? l->widths[target] : l->row;
    const dms_woven vector = {target, (uint32_t)offset, (uint32_t)(width * s->rows), 0};
    if (s->vector_count == DMS_MOST_VECTORS)
        return false;
    s->vectors[s->vector_count++] = vector;
    DMS_COUNT_STEPS(vector_size);
    for (size_t t = 0; t < vector_size; t++) {
        const size_t row = (offset + t) / width, column = (offset + t) % width;
        uint32_t part = split ? target : 0;
        while (!split && column >= l->row_begins[part] + l->widths[part])
            part++;
        if (split ? !add_byte(s, vector_size, t, 0, l->row, row * l->row + l->row_begins[part] + column)
                  : !add_byte(s, vector_size, t, part, l->widths[part], row * l->widths[part] + column - l->row_begins[part]))
            return false;
    }
    return true;
}

/* Returns false if there are too many vectors or picks. */
static bool build_list(const dmlsplit_plan *plan, size_t vector_size, dms_shuffle *s)
{
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    dms_channels l;
    dms_lay_out_channels(plan, &l);
    s->rows = rows_of_block(&l, vector_size);
    s->vector_count = s->pick_count = 0;
    for (uint32_t i = 0; i < (split ? l.count : 1); i++)
        for (size_t offset = 0; offset < (split ? l.widths[i] : l.row) * s->rows; offset += vector_size)
            if (!add_vector(s, &l, split, vector_size, i, offset))
                return false;
    return true;
}

dms_shuffle *dms_make_shuffle(const dmlsplit_plan *plan, size_t vector_size)
{
    dms_shuffle *made = dms_allocate(1, sizeof *made);
    if (made != NULL)
        (void)build_list(plan, vector_size, made);  /* succeeds: dms_shuffle_takes has built it before */
    return made;
}

uint64_t dms_shuffle_rows(const dmlsplit_plan *plan, size_t vector_size)
{
    dms_channels l;
    dms_lay_out_channels(plan, &l);
    return rows_of_block(&l, vector_size);
}

/* On the heap: the list is too large for the stack. */
bool dms_shuffle_takes(const dmlsplit_plan *plan, size_t vector_size, size_t most)
{
    dms_shuffle *const s = dms_allocate(1, sizeof *s);
    const bool takes = s != NULL && build_list(plan, vector_size, s) && s->pick_count <= most * s->vector_count;
    free(s);
    return takes;
}
