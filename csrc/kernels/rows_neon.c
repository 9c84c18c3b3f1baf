/* rows_neon.c - contiguous pieces copied by neon vectors: the kernels rows_neon and runs_neon */
#include "../dms_kernel.h"

#if DMS_NEON
#include "vector_neon.h"

#include "rows_template.h"
#endif
