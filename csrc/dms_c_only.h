/* dms_c_only.h - one error if the core is compiled as C++, instead of hundreds */
#ifdef __cplusplus
#error "dmlsplit's sources are C: compile them by a C compiler, and link what it makes with the C++ program"
#include <dmlsplit_is_C>    /* There is no such file: the compiler stops here and reports nothing else. */
#endif
