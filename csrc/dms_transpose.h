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

/* A tile of rows x columns elements. Row i lies at from[i] + from_offset, contiguous; column j goes to to[j] + to_offset, contiguous. */
typedef struct dms_tile {
    size_t element_size;                /* 1, 2, 4, 8 or 16 */
    size_t square;                      /* as in dms_turner */
    size_t height, width;               /* rows and columns, but of the last tiles */
    size_t rows, columns;
    const char *from[DMS_TILE_MOST];
    int64_t from_offset;
    char *to[DMS_TILE_MOST];
    int64_t to_offset;
    int64_t next;                       /* bytes from each row to that of the next tile, which can be fetched meanwhile */
    size_t streamed;                    /* stores had better pass by the caches, so many bytes at once; 0: by no means */
    bool claimed;                       /* lines are asked for before they are written */
    bool carried;                       /* stores could not fill whole lines; where staged, to[j] is in turned */
    dms_lines carries[DMS_MOST_CARRIED];  /* of the columns, where carried: what no whole line of memory holds yet waits in turned */
    _Alignas(DMS_LINE) char staged[DMS_STAGED_ROWS * DMS_STAGED_PITCH];
    _Alignas(DMS_LINE) char turned[DMS_MOST_TURNED];
} dms_tile;

/* How a kernel turns. */
typedef struct dms_turner {
    void (*turn)(dms_tile *tile);       /* turns a tile, and moves to_offset behind it */
    size_t square;                      /* bytes of a row of the squares that it turns without staging the tile; 0: it stages */
    size_t streamed;                    /* as in dms_tile */
    const struct dms_turner *staged;    /* turns what is streamed to odd addresses, where squares cannot be carried on; NULL: it stages itself */
} dms_turner;

#if DMS_AVX2
void dms_turn_avx2(dms_tile *tile);
#endif

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
