/* shuffle_neon.c - small rows by byte shuffles of neon vectors */
#include "../dms_shuffle.h"

#if DMS_NEON
#include "vector_neon.h"

#include "shuffle_template.h"
#endif
