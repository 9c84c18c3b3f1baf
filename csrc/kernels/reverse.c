/* reverse.c - elements that lie backwards in the source, on any machine */
#define DMS_NAME(name) name
#define DMS_TARGET
#define LEAVE(streamed) ((void)(streamed))

#include "reverse_template.h"
