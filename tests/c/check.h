/* check.h - the few lines that the C tests need of a framework */
#ifndef CHECK_H
#define CHECK_H

#include "dmlsplit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;
static const char *check_case = "";     /* named in front of a failure */

/* Prints and counts a failure; evaluates to the condition, so that a test can stop where going on makes no sense. */
#define CHECK(condition) check((condition) ? 1 : 0, __FILE__, __LINE__, #condition)

/* Integers of any type that fits a long long. */
#define CHECK_EQUAL(actual, expected) check_equal((long long)(actual), (long long)(expected), __FILE__, __LINE__, #actual)

static inline int check(int condition, const char *file, int line, const char *text)
{
    if (!condition) {
        printf("%s:%d: %s%sfailed: %s\n", file, line, check_case, *check_case ? ": " : "", text);
        if (++check_failures == 20) {
            printf("giving up after 20 failures\n");
            exit(1);
        }
    }
    return condition;
}

static inline int check_equal(long long actual, long long expected, const char *file, int line, const char *text)
{
    if (actual != expected)
        printf("%s: is %lld, expected %lld\n", text, actual, expected);
    return check(actual == expected, file, line, text);
}

/* xorshift64: the same numbers everywhere. */
static uint64_t check_random_state = 88172645463325252u;

static inline uint64_t random_below(uint64_t bound)
{
    check_random_state ^= check_random_state << 13;
    check_random_state ^= check_random_state >> 7;
    check_random_state ^= check_random_state << 17;
    return (check_random_state >> 11) % bound;
}

/* The ways to store, whatever the size of a run: plain, claimed, streamed with lines and with pages fetched, and streamed by a CPU like a Zen 3. */
static const char *const regime_names[] = {"plain", "claimed", "streamed by lines", "streamed by pages", "gathered and streamed"};

enum { PLAIN, CLAIMED, STREAMED, STREAMED_BY_PAGES, GATHERED, REGIMES };

/* Plans from now on store so. */
static inline void use_regime(int regime)
{
    const uint64_t stream = regime >= STREAMED ? 0 : UINT64_MAX, claim = regime == CLAIMED ? 0 : UINT64_MAX;
    dmlsplit_profile profile;
    memset(&profile, 0, sizeof profile);
    profile.struct_size = sizeof profile;
    profile.fetch = regime == STREAMED_BY_PAGES;
    profile.stream_copies = profile.stream_turns = stream;
    profile.claim = claim;
    profile.gathered = regime == GATHERED ? 256 : 64;
    profile.streamed_height = regime == GATHERED ? 2 : 0;
    profile.ahead = regime == GATHERED ? 1536 : 0;
    CHECK_EQUAL(dmlsplit_set_profile(&profile), DMLSPLIT_OK);
}

static inline int check_report(void)
{
    return check_failures == 0 ? 0 : 1;
}

#endif
