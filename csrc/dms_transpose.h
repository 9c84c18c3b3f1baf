/* dms_transpose.h - matrices that are turned tile by tile (kernels/transpose*.c) */
#ifndef DMS_TRANSPOSE_H
#define DMS_TRANSPOSE_H

#include "dms_kernel.h"

enum {
    DMS_TILE_ROWS = 64,                 /* of the source: each row of the target gets at least a line of memory */
    DMS_TILE_BYTES = 256,               /* of each of them: measured best of 64 to 512 */
    DMS_TILE_PITCH = DMS_TILE_BYTES + 16    /* from row to row of a staged tile: no two rows in one set of the cache */
};

/* A tile of rows x columns elements. Row i lies at from[i], contiguous; column j goes to to[j], contiguous. */
typedef struct dms_tile {
    size_t element_size;                /* 1, 2, 4, 8 or 16 */
    size_t rows, columns;
    const char *from[DMS_TILE_ROWS];
    char *to[DMS_TILE_BYTES];
    int64_t next;                       /* bytes from each row to that of the next tile, which can be fetched meanwhile */
    bool streamed;                      /* every to[j] begins a line of memory, and its stores had better pass by the caches */
    _Alignas(64) char staged[DMS_TILE_ROWS * DMS_TILE_PITCH];
} dms_tile;

typedef void dms_turn(dms_tile *tile);

/* Reads the tile's rows, one after the other, into staged: rows that are a power of two apart share few sets of the cache. */
void dms_stage(dms_tile *tile);

/* The loops of a nest that turns a matrix: rows are contiguous in the target, columns in the source. around: the other loops. */
typedef struct dms_matrix {
    const dms_loop *rows, *columns;
    uint32_t count;
    dms_loop around[DMLSPLIT_MAX_RANK];
} dms_matrix;

dms_matrix dms_find_matrix(const dms_nest *nest);

/* NULL, or why not. A nest that turns a matrix, the loops around it apart. */
const char *dms_refuse_transpose(const dms_nest *nest);
void dms_transpose(const dms_nest *nest, char *target, const char *source, dms_turn *turn);

/* Parts of one element a row: the columns of a matrix. */
const char *dms_refuse_columns(const dmlsplit_plan *plan);
void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, dms_turn *turn);

#endif
