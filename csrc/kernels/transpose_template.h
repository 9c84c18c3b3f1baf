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

/* VECTOR / size staged rows from row on, 16 / size columns from column on. size is a constant. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(turn_square)(const dms_tile *tile, size_t row, size_t column, size_t size)
{
    const size_t n = 16 / size;
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
    const vector *turned = n == 8 || n == 2 ? b : a;
    const size_t columns = tile->columns - column < n ? tile->columns - column : n;
    const size_t bytes = (tile->rows - row) * size;
    for (size_t k = 0; k < columns; k++) {
        char *to = tile->to[column + k] + row * size;
        if (bytes < VECTOR) {
            char rest[VECTOR];
            store(rest, turned[k]);
            dms_copy_short(to, rest, bytes);
        } else if (VECTOR == DMS_LINE && tile->streamed) {
            stream(to, turned[k]);
        } else {
            store(to, turned[k]);
        }
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
    if (tile->columns * tile->element_size < DMS_TILE_BYTES) {
        dms_stage(tile);
        return;
    }
    for (size_t i = 0; i < tile->rows; i++) {
        const char *from = tile->from[i];
        char *to = tile->staged + i * DMS_TILE_PITCH;
        for (size_t at = 0; at < DMS_TILE_BYTES; at += DMS_LINE)
            DMS_PREFETCH_AT(from + at, tile->next);
        for (size_t at = 0; at < DMS_TILE_BYTES; at += VECTOR)
            store(to + at, load(from + at));
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
}

const char *DMS_NAME(dms_accept_transpose)(const dms_nest *nest)
{
    return dms_refuse_transpose(nest);
}

DMS_TARGET void DMS_NAME(dms_run_transpose)(const dms_nest *nest, char *target, const char *source)
{
    dms_transpose(nest, target, source, DMS_NAME(turn));
    LEAVE(nest->stream);
}

const char *DMS_NAME(dms_accept_columns)(const dmlsplit_plan *plan)
{
    return dms_refuse_columns(plan);
}

DMS_TARGET void DMS_NAME(dms_run_columns)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_transpose_columns(plan, buffers, first, last, DMS_NAME(turn));
    LEAVE(false);
}
