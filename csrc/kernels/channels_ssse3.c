/* channels_ssse3.c - 2, 3 or 4 parts of equal width by ssse3 vectors */
#include "../dms_channels.h"

#if DMS_X86
#include "vector_ssse3.h"

#include "channels_template.h"
#endif
