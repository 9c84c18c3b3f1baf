/* dms_transpose.h - matrices that are turned tile by tile (kernels/transpose*.c) */
#ifndef DMS_TRANSPOSE_H
#define DMS_TRANSPOSE_H

#include "dms_lines.h"

enum {
    DMS_TILE_MOST = 1024,               /* rows or columns of a tile */
    DMS_STACK = 4,                      /* squares that are turned at once */
    DMS_MOST_CARRIED = 512,             /* columns of a tile whose lines are carried on */
    DMS_MOST_TURNED = 2 * DMS_LINE * DMS_MOST_CARRIED   /* bytes of these, and as many as are gathered */
};

/* Where turned squares go, chosen once for a matrix. */
typedef enum dms_sink {
    DMS_STORED,
    DMS_STACKED,                        /* a few squares at once, so that each row of the target gets a few lines one after the other */
    DMS_LINES,                          /* past the caches, as they are whole lines of the target */
    DMS_CARRIED,                        /* past the caches: lines are made of two squares, the end of one and the begin of the next */
    DMS_COLLECTED                       /* the same where registers cannot do it: by way of memory that is cached */
} dms_sink;

/* A tile of rows x columns elements. Row i lies at from[i] + from_offset, contiguous; column j goes to to[j] + to_offset, contiguous. */
typedef struct dms_tile {
    void (*turn)(struct dms_tile *tile);    /* turns a tile, and moves to_offset behind it */
    dms_sink sink;
    bool claimed;                       /* lines are asked for before they are written */
    bool fetched;                       /* the next tile is, meanwhile */
    size_t element_size;                /* 1, 2, 4, 8 or 16 */
    size_t head;                        /* rows of the first tile, so that the next ones begin with a line of the target; 0: they do anyway */
    size_t height, width;               /* rows and columns of the others, but of the last ones */
    size_t rows, columns;
    const char *from[DMS_TILE_MOST];
    int64_t from_offset;
    char *to[DMS_TILE_MOST];            /* in turned, where collected */
    int64_t to_offset;
    int64_t next;                       /* bytes from each row to that of the next tile */
    dms_lines carries[DMS_MOST_CARRIED];    /* of the columns: what no whole line of memory holds yet waits in turned */
    _Alignas(DMS_LINE) char turned[DMS_MOST_TURNED];
} dms_tile;

static inline bool dms_is_carried(const dms_tile *tile)
{
    return tile->sink >= DMS_CARRIED;
}

/* The functions of a kernel, and its width. */
typedef struct dms_turner {
    void (*turn)(dms_tile *tile);
    void (*drain)(dms_lines *lines, size_t size);   /* drain_lines of its instruction set */
    size_t vector;                      /* bytes of its vectors, which have non-temporal stores; 0: it has none */
} dms_turner;

/* The loops of a nest that turns a matrix: rows are contiguous in the target, columns in the source. around: the other loops. */
typedef struct dms_matrix {
    const dms_loop *rows, *columns;
    uint32_t count;
    dms_loop around[DMLSPLIT_MAX_RANK];
} dms_matrix;

dms_matrix dms_find_matrix(const dms_nest *nest);

/* NULL, or why not. A nest that turns a matrix, the loops around it apart. */
const char *dms_refuse_transpose(const dms_nest *nest);     /* the kernels accept it where it is not narrow: dms_accept_transpose */
void dms_transpose(const dms_nest *nest, char *target, const char *source, const dms_turner *turner);

/* Parts of one element a row: the columns of a matrix. */
const char *dms_refuse_columns(const dmlsplit_plan *plan);
void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, const dms_turner *turner);

#endif
