/* transpose_template.h - tiles turned inside registers
 *
 * Included after vector_<isa>.h. Sixteen bytes of a row are n elements; n vectors hold n rows. Interleaving the first half of the vectors with
 * the second half moves the last bit of each element's row number to the front of its column number; as many rounds as n has bits turn
 * the square. Here n = 4, two rounds; wider vectors do this in each of their lanes of 16 bytes, with other rows:
 *
 *     a0 a1 a2 a3        a0 c0 a1 c1        a0 b0 c0 d0   a whole vector of one column:
 *     b0 b1 b2 b3   ->   a2 c2 a3 c3   ->   a1 b1 c1 d1   in lane 1 follow e0 f0 g0 h0 ...
 *     c0 c1 c2 c3        b0 d0 b1 d1        a2 b2 c2 d2
 *     d0 d1 d2 d3        b2 d2 b3 d3        a3 b3 c3 d3
 *
 * Past the caches go whole lines only: as the vectors they are where all rows of the target begin on lines and a vector is one; else a turned
 * tile is collected behind what the tile before it left over, and drained line by line.
 *
 *     row j of turned, before   ..ppp               p: carried, ..: not ours
 *     one tile later            ..pppttt|tttttttt|tt      t: turned; two lines are drained, two bytes carried
 */
#include "../dms_transpose.h"

static DMS_TARGET DMS_ALWAYS_INLINE vector DMS_NAME(interleave)(vector a, vector b, size_t size, bool high)
{
    switch (size) {
    case 1: return high ? UNPACK(hi, 8, a, b) : UNPACK(lo, 8, a, b);
    case 2: return high ? UNPACK(hi, 16, a, b) : UNPACK(lo, 16, a, b);
    case 4: return high ? UNPACK(hi, 32, a, b) : UNPACK(lo, 32, a, b);
    default: return high ? UNPACK(hi, 64, a, b) : UNPACK(lo, 64, a, b);
    }
}

/* One round: from and to are arrays of n vectors. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(shuffle)(vector *to, const vector *from, size_t size)
{
    const size_t n = 16 / size;
    for (size_t k = 0; k < n / 2; k++) {
        to[2 * k] = DMS_NAME(interleave)(from[k], from[k + n / 2], size, false);
        to[2 * k + 1] = DMS_NAME(interleave)(from[k], from[k + n / 2], size, true);
    }
}

/* VECTOR / size staged rows from row on, 16 / size columns from column on. size is a constant, and the arrays are registers. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(turn_square)(const dms_tile *tile, size_t row, size_t column, size_t size)
{
    const size_t n = 16 / size, columns = tile->columns - column, bytes = (tile->rows - row) * size;
    vector a[16], b[16];
    for (size_t k = 0; k < n; k++)
        a[k] = load_lanes(tile->staged + (row + k) * DMS_TILE_PITCH + column * size, n * DMS_TILE_PITCH);
    if (n == 16 || n == 4) {            /* 4 or 2 rounds */
        DMS_NAME(shuffle)(b, a, size);
        DMS_NAME(shuffle)(a, b, size);
    }
    if (n == 16) {
        DMS_NAME(shuffle)(b, a, size);
        DMS_NAME(shuffle)(a, b, size);
    }
    if (n == 8) {                       /* 3 rounds */
        DMS_NAME(shuffle)(b, a, size);
        DMS_NAME(shuffle)(a, b, size);
        DMS_NAME(shuffle)(b, a, size);
    }
    if (n == 2)                         /* 1 round */
        DMS_NAME(shuffle)(b, a, size);
    for (size_t k = 0; k < n && (n == 8 || n == 2); k++)
        a[k] = b[k];

    char *const *to = tile->to + column;
    const int64_t offset = tile->to_offset + (int64_t)(row * size);
    if (columns >= n && bytes >= VECTOR && tile->streamed == DMS_LINE && !tile->carried) {
        for (size_t k = 0; k < n; k++)
            stream(to[k] + offset, a[k]);
    } else if (columns >= n && bytes >= VECTOR) {
        for (size_t k = 0; k < n; k++)
            store(to[k] + offset, a[k]);
    } else {
        char rest[16 * VECTOR];
        for (size_t k = 0; k < n; k++)
            store(rest + k * VECTOR, a[k]);
        for (size_t k = 0; k < n && k < columns; k++)
            dms_copy_short(to[k] + offset, rest + k * VECTOR, bytes < VECTOR ? bytes : VECTOR);
    }
}

static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(turn_tile)(const dms_tile *tile, size_t size)
{
    for (size_t column = 0; column < tile->columns; column += 16 / size)
        for (size_t row = 0; row < tile->rows; row += VECTOR / size)
            DMS_NAME(turn_square)(tile, row, column, size);
}

/* Rows that are a power of two apart share few sets of the cache, where they would evict each other before the last of their bytes is read: so
 * each row is read once, and whole. */
static DMS_TARGET void DMS_NAME(stage)(dms_tile *tile)
{
    const size_t bytes = tile->columns * tile->element_size;
    for (size_t i = 0; i < tile->rows; i++) {
        const char *from = tile->from[i] + tile->from_offset;
        char *to = tile->staged + i * DMS_TILE_PITCH;
        for (size_t at = 0; tile->streamed > 0 && at < bytes; at += DMS_LINE)
            DMS_PREFETCH_AT(from + at, tile->next);
        if (bytes < VECTOR) {
            dms_copy_short(to, from, bytes);
            continue;
        }
        for (size_t at = 0; at < bytes - VECTOR; at += VECTOR)
            store(to + at, load(from + at));
        store(to + bytes - VECTOR, load(from + bytes - VECTOR));
    }
}

/* What the columns of the turned tile have of whole lines goes to memory, and their rest to the front. */
static DMS_TARGET void DMS_NAME(drain)(dms_tile *tile)
{
    const size_t pitch = DMS_TILE_ROWS * tile->element_size + DMS_LINE;
    for (size_t j = 0; j < tile->columns; j++) {
        dms_carry *c = &tile->carries[j];
        char *const turned = tile->turned + j * pitch;
        const size_t end = c->fill + tile->rows * tile->element_size;
        size_t at = 0;
        if (c->begin > 0 && end >= DMS_LINE) {
            dms_copy_short(c->line + c->begin, turned + c->begin, DMS_LINE - c->begin);
            c->begin = 0;
            at = DMS_LINE;
        }
        for (; at + DMS_LINE <= end; at += DMS_LINE)
            for (size_t i = 0; i < DMS_LINE; i += VECTOR)
                stream(c->line + at + i, load(turned + at + i));
        for (size_t i = 0; at > 0 && i < DMS_LINE; i += VECTOR)
            store(turned + i, load(turned + at + i));
        c->line += at;
        c->fill = end - at;
        tile->to[j] = turned + c->fill;
    }
}

static DMS_TARGET void DMS_NAME(turn)(dms_tile *tile)
{
    DMS_NAME(stage)(tile);
    switch (tile->element_size) {
    case 1: DMS_NAME(turn_tile)(tile, 1); break;
    case 2: DMS_NAME(turn_tile)(tile, 2); break;
    case 4: DMS_NAME(turn_tile)(tile, 4); break;
    case 8: DMS_NAME(turn_tile)(tile, 8); break;
    default: DMS_NAME(turn_tile)(tile, 16); break;
    }
    if (tile->carried)
        DMS_NAME(drain)(tile);
    else
        tile->to_offset += (int64_t)(tile->rows * tile->element_size);
}

const char *DMS_NAME(dms_accept_transpose)(const dms_nest *nest)
{
    return dms_refuse_transpose(nest);
}

DMS_TARGET void DMS_NAME(dms_run_transpose)(const dms_nest *nest, char *target, const char *source)
{
    dms_transpose(nest, target, source, DMS_NAME(turn), nest->stream ? VECTOR : 0);
    LEAVE(nest->stream);
}

const char *DMS_NAME(dms_accept_columns)(const dmlsplit_plan *plan)
{
    return dms_refuse_columns(plan);
}

DMS_TARGET void DMS_NAME(dms_run_columns)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_transpose_columns(plan, buffers, first, last, DMS_NAME(turn), plan->stream ? VECTOR : 0);
    LEAVE(plan->stream);
}
