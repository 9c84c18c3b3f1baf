/* dms_transpose.h - matrices that are turned tile by tile (kernels/transpose*.c) */
#ifndef DMS_TRANSPOSE_H
#define DMS_TRANSPOSE_H

#include "dms_lines.h"

enum {
    DMS_TILE_MOST = 1024,               /* rows or columns of a tile */
    DMS_STAGED_ROWS = 64,               /* of a tile that is staged or streamed: each row of the target gets at least a line of memory */
    DMS_STAGED_BYTES = 256,             /* of each of these rows: measured best of 64 to 512 */
    DMS_STAGED_PITCH = DMS_STAGED_BYTES + DMS_LINE,     /* from row to row: no two rows in one set of the cache */
    DMS_MOST_TURNED = 2 * DMS_STAGED_ROWS * DMS_STAGED_BYTES,   /* a turned tile with a line more in each row */
    DMS_MOST_CARRIED = DMS_MOST_TURNED / DMS_LINE               /* columns with a line each in as many bytes */
};

/* How tiles are turned, chosen once for a matrix. Squares are turned in registers, from where the source lies to where the target does. */
typedef enum dms_strategy {
    DMS_STAGED,                         /* a tile is copied to the first-level cache and turned from there */
    DMS_SQUARES,
    DMS_STAGED_LINES,                   /* past the caches: turned tiles are collected, and whole lines are stored */
    DMS_SQUARES_STREAMED,               /* past the caches: squares are whole lines of the target as they are */
    DMS_SQUARES_LINES                   /* past the caches: lines are made of two squares, the end of one and the begin of the next */
} dms_strategy;

/* A tile of rows x columns elements. Row i lies at from[i] + from_offset, contiguous; column j goes to to[j] + to_offset, contiguous. */
typedef struct dms_tile {
    void (*turn)(struct dms_tile *tile);    /* turns a tile, and moves to_offset behind it */
    dms_strategy strategy;
    bool claimed;                       /* lines are asked for before they are written */
    size_t element_size;                /* 1, 2, 4, 8 or 16 */
    size_t height, width;               /* rows and columns, but of the last tiles */
    size_t rows, columns;
    const char *from[DMS_TILE_MOST];
    int64_t from_offset;
    char *to[DMS_TILE_MOST];            /* with DMS_STAGED_LINES in turned */
    int64_t to_offset;
    int64_t next;                       /* bytes from each row to that of the next tile, which can be fetched meanwhile */
    dms_lines carries[DMS_MOST_CARRIED];  /* with *_LINES of the columns: what no whole line of memory holds yet waits in turned */
    const char *staged_rows[DMS_STAGED_ROWS];
    _Alignas(DMS_LINE) char staged[DMS_STAGED_ROWS * DMS_STAGED_PITCH];
    _Alignas(DMS_LINE) char turned[DMS_MOST_TURNED];
} dms_tile;

static inline bool dms_is_carried(const dms_tile *tile)
{
    return tile->strategy == DMS_STAGED_LINES || tile->strategy == DMS_SQUARES_LINES;
}

static inline bool dms_is_staged(const dms_tile *tile)
{
    return tile->strategy == DMS_STAGED || tile->strategy == DMS_STAGED_LINES;
}

/* What a kernel can do. */
typedef struct dms_turner {
    void (*turn)(dms_tile *tile);
    size_t square;                      /* bytes of a row of the squares that it turns; 0: elements, after staging */
} dms_turner;

/* The loops of a nest that turns a matrix: rows are contiguous in the target, columns in the source. around: the other loops. */
typedef struct dms_matrix {
    const dms_loop *rows, *columns;
    uint32_t count;
    dms_loop around[DMLSPLIT_MAX_RANK];
} dms_matrix;

dms_matrix dms_find_matrix(const dms_nest *nest);

/* NULL, or why not. A nest that turns a matrix, the loops around it apart. */
const char *dms_refuse_transpose(const dms_nest *nest);
void dms_transpose(const dms_nest *nest, char *target, const char *source, const dms_turner *turner);

/* Parts of one element a row: the columns of a matrix. */
const char *dms_refuse_columns(const dmlsplit_plan *plan);
void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, const dms_turner *turner);

#endif
