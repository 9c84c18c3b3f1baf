/* neon.h - the intrinsics of Arm's 64-bit architecture under the name that the compiler has for them */
#if DMS_MSVC
#include <arm64_neon.h>
#else
#include <arm_neon.h>
#endif
