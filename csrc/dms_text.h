/* dms_text.h - text in the manner of snprintf, piece by piece */
#pragma once

#include <stddef.h>

/* capacity is what is left at buffer; length counts everything, written or not. Start with a terminated buffer and length 0. */
typedef struct dms_text {
    char *buffer;
    size_t capacity;
    size_t length;
} dms_text;

dms_text dms_text_start(char *buffer, size_t capacity);

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void dms_text_add(dms_text *text, const char *format, ...);
