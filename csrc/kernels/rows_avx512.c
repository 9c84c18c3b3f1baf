/* rows_avx512.c - contiguous pieces and runs by avx512 vectors: the kernels rows_avx512 and runs_avx512 */
#include "../dms_kernel.h"

#if DMS_X86
#include "vector_avx512.h"

#include "rows_template.h"
#endif
