/* dms_profile_text.c - reads and writes a profile as lines of text, for files */
#include "dms_internal.h"
#include "dms_struct.h"
#include "dms_text.h"

#include <inttypes.h>
#include <stddef.h>

#define NEVER "never"

typedef struct member {
    const char *name;
    dmlsplit_member bit;
    size_t offset, size;                /* in the struct */
    uint64_t most;                      /* UINT64_MAX: bytes of a run, or never */
} member;

#define MEMBER(name, bit, most) {#name, bit, offsetof(dmlsplit_profile, name), sizeof(((dmlsplit_profile *)0)->name), most}
static const member members[] = {
    MEMBER(stream_copies, DMLSPLIT_STREAM_COPIES, UINT64_MAX),
    MEMBER(stream_turns, DMLSPLIT_STREAM_TURNS, UINT64_MAX),
    MEMBER(claim, DMLSPLIT_CLAIM, UINT64_MAX),
    MEMBER(fetch, DMLSPLIT_FETCH, DMLSPLIT_FETCH_PAGES),
    MEMBER(call, DMLSPLIT_CALL, UINT64_MAX),
    MEMBER(ahead, DMLSPLIT_AHEAD, DMS_MOST_AHEAD),
    MEMBER(streamed_height, DMLSPLIT_STREAMED_HEIGHT, DMS_STREAMED_HIGH),
    MEMBER(cached_height, DMLSPLIT_CACHED_HEIGHT, DMS_TILE_HIGH),
    MEMBER(claim_fills, DMLSPLIT_CLAIM_FILLS, UINT64_MAX),
    MEMBER(gathered, DMLSPLIT_GATHERED, DMS_MOST_GATHERED),
};
enum { MEMBERS = sizeof members / sizeof members[0] };

static const char *const fetches[] = {"lines", "pages"};

static uint64_t get_member(const dmlsplit_profile *profile, const member *m)
{
    uint32_t word;
    uint64_t number;
    memcpy(&word, (const char *)profile + m->offset, sizeof word);
    if (m->size == sizeof word)
        return word;
    memcpy(&number, (const char *)profile + m->offset, sizeof number);
    return number;
}

static void set_member(dmlsplit_profile *profile, const member *m, uint64_t number)
{
    const uint32_t word = (uint32_t)number;
    memcpy((char *)profile + m->offset, m->size == sizeof word ? (const void *)&word : &number, m->size);
    profile->given |= (uint32_t)m->bit;
}

size_t dmlsplit_format_profile(const dmlsplit_profile *profile, char *buffer, size_t capacity)
{
    dms_text text = dms_text_start(buffer, capacity);
    dmlsplit_profile p;
    if (profile == NULL || dms_take_struct(&p, sizeof p, profile, profile->struct_size, DMS_FIRST_PROFILE) != DMLSPLIT_OK)
        return 0;
    dms_text_add(&text, "# a profile of dmlsplit " DMLSPLIT_VERSION ": bytes, squares (0: the default), and how memory is prefetched\n");
    for (size_t i = 0; i < MEMBERS; i++) {
        const uint64_t number = get_member(&p, &members[i]);
        if (members[i].bit == DMLSPLIT_FETCH)
            dms_text_add(&text, "%s %s\n", members[i].name, fetches[number == DMLSPLIT_FETCH_PAGES]);
        else if (number == UINT64_MAX)
            dms_text_add(&text, "%s " NEVER "\n", members[i].name);
        else
            dms_text_add(&text, "%s %" PRIu64 "\n", members[i].name, number);
    }
    return text.length;
}

/* Skips spaces, then a word. Returns the word's length, and sets *text to its end. */
static size_t next_word(const char **text, const char **word)
{
    while (**text == ' ' || **text == '\t')
        ++*text;
    *word = *text;
    while (**text != '\0' && **text != ' ' && **text != '\t' && **text != '\r' && **text != '\n')
        ++*text;
    return (size_t)(*text - *word);
}

static bool is_word(const char *word, size_t length, const char *expected)
{
    return length == strlen(expected) && memcmp(word, expected, length) == 0;
}

static bool read_number(const char *word, size_t length, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < length; i++) {
        const uint64_t digit = (uint64_t)(unsigned char)word[i] - '0';
        if (digit > 9 || *number > (UINT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return length > 0;
}

static bool is_value(const member *m, uint64_t number)
{
    if (m->bit == DMLSPLIT_GATHERED)
        return number == 0 || number == DMS_LINE || number == m->most;
    return number <= m->most && (m->bit != DMLSPLIT_CACHED_HEIGHT || (number & (number - 1)) == 0);
}

bool dms_is_profile(const dmlsplit_profile *profile)
{
    bool all = true;
    for (size_t i = 0; i < MEMBERS; i++)
        all = all && is_value(&members[i], get_member(profile, &members[i]));
    return all;
}

static bool read_value(const member *m, const char *word, size_t length, dmlsplit_profile *profile)
{
    uint64_t number = UINT64_MAX;
    if (m->bit == DMLSPLIT_FETCH)
        number = is_word(word, length, fetches[0]) ? 0 : is_word(word, length, fetches[1]) ? 1 : UINT64_MAX;
    else if (!is_word(word, length, NEVER) && !read_number(word, length, &number))
        return false;
    if (!is_value(m, number))
        return false;
    set_member(profile, m, number);
    return true;
}

/* Reads one line, and sets *text to its end. Returns false if the line is malformed. */
static bool read_line(const char **text, dmlsplit_profile *profile)
{
    const char *name, *value, *more;
    const size_t named = next_word(text, &name);
    if (named == 0 || *name == '#') {
        while (**text != '\0' && **text != '\n')
            ++*text;
        return true;
    }
    const size_t valued = next_word(text, &value);
    const bool ends = next_word(text, &more) == 0;
    if (**text == '\r')
        ++*text;
    for (size_t i = 0; i < MEMBERS; i++)
        if (is_word(name, named, members[i].name))
            return ends && (**text == '\n' || **text == '\0') && read_value(&members[i], value, valued, profile);
    return false;
}

dmlsplit_status dmlsplit_parse_profile(const char *text, dmlsplit_profile *profile, uint32_t *line)
{
    dmlsplit_profile read;
    if (text == NULL || profile == NULL)
        return DMLSPLIT_NULL_POINTER;
    const dmlsplit_status status = dms_take_struct(&read, sizeof read, profile, profile->struct_size, DMS_FIRST_PROFILE);
    if (status != DMLSPLIT_OK)
        return status;
    for (uint32_t number = 1; *text != '\0'; number++) {
        if (!read_line(&text, &read)) {
            if (line != NULL)
                *line = number;
            return DMLSPLIT_BAD_PROFILE;
        }
        text += *text == '\n';
    }
    dms_give_struct(profile, profile->struct_size, &read, sizeof read);
    return DMLSPLIT_OK;
}
