/* dms_shuffle.h - small rows of any widths as a list of byte shuffles (kernels/shuffle*.c) */
#pragma once

#include "dms_channels.h"

enum { DMS_MOST_PICKS = 384, DMS_MOST_VECTORS = 96, DMS_WIDEST_VECTOR = 64, DMS_NOT_PICKED = 0x80 };

/* Takes bytes from one source vector: byte t of the target is byte table[t] of the source where mask has bit t. Elsewhere the table holds
 * DMS_NOT_PICKED, which makes pshufb give 0. */
typedef struct dms_pick {
    uint8_t table[DMS_WIDEST_VECTOR];
    uint64_t mask;
    uint32_t source;                    /* index of a source stream */
    uint32_t offset;                    /* offset in the stream from the beginning of the block */
    uint32_t block;                     /* size of a block in the stream */
} dms_pick;

/* A vector of the target and the number of picks that make it. */
typedef struct dms_woven {
    uint32_t target;                    /* index of a target stream */
    uint32_t offset;                    /* offset in the stream from the beginning of the block */
    uint32_t block;                     /* size of a block in the stream */
    uint32_t picks;
} dms_woven;

/* How to copy a block of rows, which is the fewest rows that are whole vectors in every stream. In a split the whole
 * is the only source stream and the parts are the targets; in a join the reverse. */
typedef struct dms_shuffle {
    uint64_t rows;
    size_t vector_count, pick_count;
    dms_woven vectors[DMS_MOST_VECTORS];
    dms_pick picks[DMS_MOST_PICKS];     /* in the order of the vectors */
} dms_shuffle;

/* Returns the list for a plan that dms_shuffle_takes accepts, to be freed by free(); NULL if there is no memory.
 * vector_size is in bytes. */
dms_shuffle *dms_make_shuffle(const dmlsplit_plan *plan, size_t vector_size);

/* Returns the number of rows in a block for vectors of `vector_size` bytes. */
uint64_t dms_shuffle_rows(const dmlsplit_plan *plan, size_t vector_size);

/* True if the list has room for all picks of a plan of packed rows, and needs at most `most` picks a vector on average. */
bool dms_shuffle_takes(const dmlsplit_plan *plan, size_t vector_size, size_t most);

/* Returns the cost of shuffles by vectors of `vector_size` bytes if they are slow for the plan (dms_costs.c). */
dms_slow dms_slow_shuffle(const dmlsplit_plan *plan, size_t vector_size);
