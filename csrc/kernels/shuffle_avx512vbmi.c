/* shuffle_avx512vbmi.c - small rows by byte permutes of 512-bit vectors */
#include "../dms_shuffle.h"

#if DMS_X86
#include "vector_avx512vbmi.h"

#include "shuffle_template.h"
#endif
