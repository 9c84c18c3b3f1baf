/* transpose_neon.c - matrices turned by neon vectors: the kernels columns_neon and transpose_neon */
#include "../dms_transpose.h"

#if DMS_NEON
#include "vector_neon.h"

#include "transpose_template.h"
#endif
