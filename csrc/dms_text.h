/* dms_text.h - text in the manner of snprintf, piece by piece */
#pragma once

#include <stddef.h>

/* capacity: bytes left at buffer. length: length of the whole text, whether written or not. Starts with a terminated
 * buffer and length 0. */
typedef struct dms_text {
    char *buffer;
    size_t capacity;
    size_t length;
} dms_text;

/* Returns an empty text in buffer, which may be NULL; with capacity, the terminating 0 is written. */
dms_text dms_text_start(char *buffer, size_t capacity);

/* Appends as printf does. Text beyond the capacity is cut off, but counts in text->length. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void dms_text_add(dms_text *text, const char *format, ...);
