/* dms_channels.h - rows that are small enough to be cut inside registers (kernels/channels*, shuffle*, qwords*) */
#pragma once

#include "dms_kernel.h"

enum { DMS_MOST_CHANNELS = 16 };        /* parts */

/* A dms_stretch whose parts have been looked up: pointers, widths and strides of each. */
struct dms_channels {
    size_t count;                       /* parts, without the empty ones */
    size_t row;                         /* bytes of a row of the whole */
    size_t widths[DMS_MOST_CHANNELS];   /* bytes of a row of each part */
    size_t row_begins[DMS_MOST_CHANNELS];   /* offset of each part in a row of the whole */
    char *whole;
    char *parts[DMS_MOST_CHANNELS];
    int64_t stride, strides[DMS_MOST_CHANNELS]; /* bytes from row to row, in the whole and in the parts */
    uint64_t rows;
};

/* Returns the number of parts that are not empty. */
uint64_t dms_full_parts(const dmlsplit_plan *plan);

/* Sets the members that all rows of a plan share: count, row, widths and row_begins. */
void dms_lay_out_channels(const dmlsplit_plan *plan, dms_channels *channels);

/* Returns NULL, or the reason why the plan does not cut rows into contiguous pieces. */
const char *dms_can_pieces(const dmlsplit_plan *plan);

/* True if rows follow each other without gaps in the whole and in every part. */
bool dms_are_packed(const dmlsplit_plan *plan);

/* Returns the width of each part in bytes if all are equal, else 0. */
size_t dms_equal_width(const dmlsplit_plan *plan);

/* Copies, by moves, the rows from `first` on that shuffles left over. */
void dms_move_channels(const dms_channels *channels, bool split, uint64_t first);

/* Advances the pointers by `rows` rows, which must have no gaps. */
static inline void dms_skip_rows(dms_channels *channels, uint64_t rows)
{
    channels->whole += rows * channels->row;
    for (size_t i = 0; i < channels->count; i++)
        channels->parts[i] += rows * channels->widths[i];
}

/* ---- Planes: one part between pixels and planes (dms_pixels) ---- */

extern const char dms_no_pixels[];      /* why kernels of planes cannot copy a nest */

/* Copies a nest that has pixels as a stretch of channels for each index of the other loops. */
void dms_copy_planes(const dms_nest *nest, char *target, const char *source, dms_stretch_copier *copy, const void *tables);
