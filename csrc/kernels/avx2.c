/* avx2.c - the kernels of 32-byte vectors */
#include "../dms_kernel.h"

#if DMS_AVX2
#include "vector_avx2.h"

#include "channels_template.h"
#include "moves_avx2.h"
#include "rows_template.h"
#include "shuffle_template.h"
#include "transpose_template.h"

DMS_TARGET void dms_turn_avx2(dms_tile *tile)
{
    turn_avx2(tile);
}
#endif
