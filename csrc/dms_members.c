/* dms_members.c - the structs of all operators, member by member; valid C99 and C++11 */
#include "dms_members.h"

#include <string.h>

#include "dms_members.inc"

const dms_operator_row *dms_find_operator(uint32_t type)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

const char *dms_enum_names(char which)
{
    return enums[which - 'a'];
}

typedef struct aligned_scalar {
    char first;
    union {
        uint64_t u64;
        double f64;
    } scalar;
} aligned_scalar;

dms_struct_member dms_first_member(const dms_operator_row *row)
{
    const dms_struct_member before = {row->members, '\0', '\0', 0, "", 0, 0, 0};
    return before;
}

int dms_next_member(dms_struct_member *member)
{
    const char *const at = member->rest;
    size_t alignment;
    if (*at == '\0')
        return 0;
    member->kind = at[0];
    member->which = at[1];
    member->name = at + strcspn(at, " ") + 1;
    member->length = strcspn(member->name, " ");
    member->rest = member->name + member->length + (member->name[member->length] == ' ');
    member->is_pointer = strchr("TROPSuif", member->kind) != NULL;
    member->offset += member->size;
    member->size = member->is_pointer ? sizeof(void *) : member->kind == 'X' || member->kind == 'Z' ? 8u : 4u;
    alignment = member->kind == 'X' ? offsetof(aligned_scalar, scalar) : member->kind == 'Z' ? 4u : member->size;
    member->offset = (member->offset + alignment - 1u) / alignment * alignment;
    return 1;
}

size_t dms_struct_bytes(const dms_operator_row *row)
{
    dms_struct_member member = dms_first_member(row);
    while (dms_next_member(&member))
        ;
    return member.offset + member.size;
}
