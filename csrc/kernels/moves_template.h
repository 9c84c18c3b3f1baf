/* moves_template.h - the moves of channels.c in all three regimes: a split into [1,2,5] of 8 bytes, 134 MB, took 0.85 times memcpy's time instead of 1.05, its
 * join 0.78 instead of 1.1 (Zen 5); by SSSE3 0.7 to 0.8 of the time without (Zen 4) */
#include "stretch_template.h"

void DMS_NAME(dms_copy_moves)(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    if (dms_is_streamed(stores))
        DMS_NAME(copy_batches)(c, tables, split, DMS_SMALL_BLOCK / c->row, c->row, stores, dms_copy_channels);
    else
        dms_copy_channels(c, tables, split, stores);
}
