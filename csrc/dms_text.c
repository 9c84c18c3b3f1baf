/* dms_text.c - text in the manner of snprintf, piece by piece */
#include "dms_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

dms_text dms_text_start(char *buffer, size_t capacity)
{
    const dms_text text = {buffer, buffer != NULL ? capacity : 0, 0};
    if (text.capacity > 0)
        buffer[0] = '\0';
    return text;
}

void dms_text_add(dms_text *text, const char *format, ...)
{
    const bool room = text->length < text->capacity;
    va_list arguments;
    va_start(arguments, format);
    const int added = vsnprintf(room ? text->buffer + text->length : NULL, room ? text->capacity - text->length : 0, format, arguments);
    va_end(arguments);
    if (added > 0)
        text->length += (size_t)added;
}
