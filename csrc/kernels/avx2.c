/* avx2.c - the kernels of 32-byte vectors */
#include "../dms_kernel.h"

#if DMS_AVX2
#define VECTOR 32
#include "vector_x86.h"

#include "channels_template.h"
#include "moves_template.h"
#include "reverse_template.h"
#include "rows_template.h"
#include "shuffle_template.h"
#include "transpose_template.h"
#endif
