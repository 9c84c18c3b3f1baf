/* carried_avx512.h - copies a stretch of rows by stores of whole cache lines, wherever a target begins
 *
 * Each vector is rotated, and its end waits in a register for the begin of the next vector:
 *
 *     now  ijklmnop   rotated  nopijklm   waiting  UVW.....      line in memory   |UVWijklm|    (nop is carried on)
 */
#pragma once

#include "../dms_channels.h"
#include "lines_template.h"

typedef struct carried {
    char *line;                         /* the next one */
    vector waiting, rotation;
    __mmask64 filled;                   /* the bytes of `waiting` that belong to the line */
} carried;

/* Copies whole blocks of rows. ragged: some target does not begin at a cache line boundary. */
typedef void carry_function(const dms_channels *channels, const void *tables, bool split, const dms_stores *stores, carried *to, bool ragged);

/* Returns a target that continues after the bytes before `to`: the bytes of its first line that are already stored
 * are stored again with the line. */
static DMS_TARGET carried carry_on(char *to, bool ragged)
{
    const size_t fill = ragged ? (uintptr_t)to % DMS_LINE : 0;
    const __mmask64 filled = first_bytes(fill);
    const carried begin = {to - fill, _mm512_maskz_loadu_epi8(filled, to - fill), rotation_by(fill), filled};
    return begin;
}

/* Copies a stretch. block: rows that are whole vectors in every target. copy_few copies the first block, whose first
 * lines contain bytes of another owner, and the rows after the last block by unaligned stores; copy_blocks copies
 * the other blocks, also by unaligned stores unless `carries`. */
static DMS_TARGET void copy_carried(const dms_channels *channels, const void *tables, bool split, uint64_t block, const dms_stores *stores, bool carries,
                                    dms_stretch_copier *copy_few, carry_function *copy_blocks)
{
    static const dms_stores plain = {.regime = DMS_PLAIN};
    const size_t targets = split ? channels->count : 1;
    uint64_t left = channels->rows;
    uintptr_t fills = 0;
    carried to[DMS_MOST_CHANNELS];
    dms_channels c = *channels;
    for (size_t i = 0; i < targets; i++)
        fills |= (uintptr_t)(split ? c.parts[i] : c.whole) % DMS_LINE;
    const bool ragged = carries && fills > 0 && fills % ROTATED == 0;
    if (ragged && left > block) {
        c.rows = block;
        copy_few(&c, tables, split, stores);
        dms_skip_rows(&c, block);
        left -= block;
    }
    if (left >= block && (!ragged || c.whole != channels->whole)) {
        c.rows = left / block * block;
        for (size_t i = 0; i < targets; i++)
            to[i] = carry_on(split ? c.parts[i] : c.whole, ragged);
        copy_blocks(&c, tables, split, fills % ROTATED == 0 ? stores : &plain, to, ragged);
        for (size_t i = 0; i < targets; i++)
            _mm512_mask_storeu_epi8((void *)to[i].line, to[i].filled, to[i].waiting);
        dms_skip_rows(&c, c.rows);
        left -= c.rows;
    }
    c.rows = left;
    if (left > 0)
        copy_few(&c, tables, split, stores);
}
