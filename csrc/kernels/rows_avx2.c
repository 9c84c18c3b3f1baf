/* rows_avx2.c - contiguous pieces and runs by avx2 vectors: the kernels rows_avx2 and runs_avx2 */
#include "../dms_kernel.h"

#if DMS_X86
#include "vector_avx2.h"

#include "rows_template.h"
#endif
