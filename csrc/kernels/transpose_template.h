/* transpose_template.h - tiles staged in the first-level cache and turned inside registers
 *
 * Included after vector_<isa>.h. Each lane of a vector has other rows of the same columns, so that a turned vector is one column.
 *
 * Past the caches go whole lines only: a turned tile is collected behind what the tile before it left over, and drained line by line.
 *
 *     row j of turned, before   ..ppp               p: carried, ..: not ours
 *     one tile later            ..pppttt|tttttttt|tt      t: turned; two lines are drained, two bytes carried
 */
#include "lines_template.h"
#include "turn_lanes_template.h"

/* VECTOR / size staged rows from row on, 16 / size columns from column on. size is a constant, and the arrays are registers. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(turn_square)(const dms_tile *tile, size_t row, size_t column, size_t size)
{
    const size_t n = 16 / size, columns = tile->columns - column, bytes = (tile->rows - row) * size;
    vector a[16];
    for (size_t k = 0; k < n; k++)
        a[k] = load_lanes(tile->staged + (row + k) * DMS_STAGED_PITCH + column * size, n * DMS_STAGED_PITCH);
    DMS_NAME(turn_lanes)(a, size);

    char *const *to = tile->to + column;
    const int64_t offset = tile->to_offset + (int64_t)(row * size);
    if (columns >= n && bytes >= VECTOR) {
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

/* Rows that are a power of two apart share few sets of the cache, where they would evict each other before the last of their bytes is read: so
 * each row is read once, and whole. */
static DMS_TARGET void DMS_NAME(stage)(dms_tile *tile)
{
    const size_t bytes = tile->columns * tile->element_size;
    for (size_t i = 0; i < tile->rows; i++) {
        const char *from = tile->from[i] + tile->from_offset;
        char *to = tile->staged + i * DMS_STAGED_PITCH;
        for (size_t at = 0; tile->strategy == DMS_STAGED_LINES && at < bytes; at += DMS_LINE)
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
static DMS_TARGET void DMS_NAME(drain_columns)(dms_tile *tile)
{
    for (size_t j = 0; j < tile->columns; j++) {
        DMS_NAME(drain_lines)(&tile->carries[j], tile->rows * tile->element_size);
        tile->to[j] = tile->carries[j].bytes + tile->carries[j].fill;
    }
}

static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(turn_tile)(dms_tile *tile, size_t size)
{
    DMS_NAME(stage)(tile);
    for (size_t column = 0; column < tile->columns; column += 16 / size)
        for (size_t row = 0; row < tile->rows; row += VECTOR / size)
            DMS_NAME(turn_square)(tile, row, column, size);
    for (size_t j = 0; tile->claimed && j < tile->columns; j++)
        for (size_t at = 0; at < tile->rows * size; at += DMS_LINE)
            DMS_CLAIM(tile->to[j] + tile->to_offset, tile->rows * size + at);
    if (tile->strategy == DMS_STAGED_LINES)
        DMS_NAME(drain_columns)(tile);
    else
        tile->to_offset += (int64_t)(tile->rows * size);
}

#define SQUARE 0
#define STAGE NULL
#include "transpose_kernels.h"
