/* rows_ssse3.c - contiguous pieces and runs by ssse3 vectors: the kernels rows_ssse3 and runs_ssse3 */
#include "../dms_kernel.h"

#if DMS_X86
#include "vector_ssse3.h"

#include "rows_template.h"
#endif
