/* neon.c - the kernels of 16-byte vectors on Arm */
#include "../dms_kernel.h"

#if DMS_NEON
#include "vector_neon.h"

#include "channels_template.h"
#include "reverse_template.h"
#include "rows_template.h"
#include "shuffle_template.h"
#include "transpose_template.h"
#endif
