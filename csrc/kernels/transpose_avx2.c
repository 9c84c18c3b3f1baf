/* transpose_avx2.c - matrices turned by avx2 vectors: the kernels columns_avx2 and transpose_avx2 */
#include "../dms_transpose.h"

#if DMS_X86
#include "vector_avx2.h"

#include "transpose_template.h"

DMS_TARGET void dms_turn_avx2(dms_tile *tile)
{
    turn_avx2(tile);
}
#endif
