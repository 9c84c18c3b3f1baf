/* dms_transpose.h - matrices that are turned tile by tile (kernels/transpose*.c) */
#ifndef DMS_TRANSPOSE_H
#define DMS_TRANSPOSE_H

#include "dms_kernel.h"

enum {
    DMS_TILE_ROWS = 64,                 /* of the source: each row of the target gets at least a line of memory */
    DMS_TILE_BYTES = 256,               /* of each of them: measured best of 64 to 512 */
    DMS_TILE_PITCH = DMS_TILE_BYTES + DMS_LINE, /* from row to row of a staged tile: no two rows in one set of the cache */
    DMS_MOST_TURNED = 2 * DMS_TILE_ROWS * DMS_TILE_BYTES    /* a turned tile with a line more in each row */
};

/* What a row of the target has in the turned tile that no whole line of memory holds yet: bytes [begin, fill). Those before begin are not ours. */
typedef struct dms_carry {
    char *line;
    size_t begin, fill;
} dms_carry;

/* A tile of rows x columns elements. Row i lies at from[i] + from_offset, contiguous; column j goes to to[j] + to_offset, contiguous. */
typedef struct dms_tile {
    size_t element_size;                /* 1, 2, 4, 8 or 16 */
    size_t rows, columns;
    const char *from[DMS_TILE_ROWS];
    int64_t from_offset;
    char *to[DMS_TILE_BYTES];
    int64_t to_offset;
    int64_t next;                       /* bytes from each row to that of the next tile, which can be fetched meanwhile */
    size_t streamed;                    /* stores had better pass by the caches, so many bytes at once; 0: by no means */
    bool carried;                       /* they could not fill whole lines: to[j] is in turned, and memory gets whole lines from there */
    dms_carry carries[DMS_TILE_BYTES];  /* of the columns, where carried */
    _Alignas(DMS_LINE) char staged[DMS_TILE_ROWS * DMS_TILE_PITCH];
    _Alignas(DMS_LINE) char turned[DMS_MOST_TURNED];
} dms_tile;

/* Turns a tile, and moves to_offset behind it. */
typedef void dms_turn(dms_tile *tile);

/* The loops of a nest that turns a matrix: rows are contiguous in the target, columns in the source. around: the other loops. */
typedef struct dms_matrix {
    const dms_loop *rows, *columns;
    uint32_t count;
    dms_loop around[DMLSPLIT_MAX_RANK];
} dms_matrix;

dms_matrix dms_find_matrix(const dms_nest *nest);

/* NULL, or why not. A nest that turns a matrix, the loops around it apart. */
const char *dms_refuse_transpose(const dms_nest *nest);
void dms_transpose(const dms_nest *nest, char *target, const char *source, dms_turn *turn, size_t streamed);

/* Parts of one element a row: the columns of a matrix. */
const char *dms_refuse_columns(const dmlsplit_plan *plan);
void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, dms_turn *turn,
                           size_t streamed);

#endif
