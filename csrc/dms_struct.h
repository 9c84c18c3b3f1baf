/* dms_struct.h - structs that begin with struct_size, exchanged with programs compiled with a later or an earlier
 * header
 *
 * As in openat2(2), members are only ever added at the end, and 0 in a new member means the previous behaviour. A
 * struct may have any size from the first version's on. Missing members are taken as 0; bytes that this library does
 * not know must be 0.
 */
#pragma once

#include "dmlsplit.h"

#include <stdbool.h>
#include <string.h>

#define DMS_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* Sizes in version 0.1.0. */
#define DMS_FIRST_GEOMETRY DMS_SIZE_UP_TO(dmlsplit_geometry, part_strides)
#define DMS_FIRST_PROFILE DMS_SIZE_UP_TO(dmlsplit_profile, reserved)

enum { DMS_LARGEST_STRUCT = 4096 };     /* bytes; a larger struct_size is garbage, and its bytes may be unreadable */

/* True if a caller's struct may have `size` bytes. first: the struct's size in version 0.1.0. */
static inline bool dms_is_struct_size(uint32_t size, size_t first)
{
    return size >= first && size <= DMS_LARGEST_STRUCT;
}

/* Copies the caller's struct of `size` bytes into own, with 0 for missing members, and sets own's struct_size.
 * Returns DMLSPLIT_BAD_STRUCT_SIZE, and leaves own alone, if the size is wrong or bytes beyond own_size are not 0. */
static inline dmlsplit_status dms_take_struct(void *own, uint32_t own_size, const void *given, uint32_t size, size_t first)
{
    if (!dms_is_struct_size(size, first))
        return DMLSPLIT_BAD_STRUCT_SIZE;
    for (uint32_t i = own_size; i < size; i++)
        if (((const char *)given)[i] != 0)
            return DMLSPLIT_BAD_STRUCT_SIZE;
    memset(own, 0, own_size);
    memcpy(own, given, size < own_size ? size : own_size);
    memcpy(own, &own_size, sizeof own_size);
    return DMLSPLIT_OK;
}

/* Copies own into the caller's struct of `size` bytes, up to the shorter size. The caller's struct_size stays. */
static inline void dms_give_struct(void *given, uint32_t size, const void *own, uint32_t own_size)
{
    memcpy((char *)given + sizeof size, (const char *)own + sizeof size, (size < own_size ? size : own_size) - sizeof size);
}
