/* Calls to the system on files of one folder, counted, and the n-th of them changed: for LD_PRELOAD on Linux.
 *
 *     faults_set(folder, n, fault)   counts from 1 from here on; fault: an errno, FAULT_SHORT, FAULT_KILL or 0
 *     faults_count()                 how many calls there were
 *     faults_name(n)                 the call that was changed, "" where none was
 *
 * Calls of other folders, and of the program before faults_set, are those of the C library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FAULT_SHORT = -1, FAULT_KILL = -2 };

static char folder[PATH_MAX];
static long count, fails_at;
static int fault;
static const char *failed = "";

void faults_set(const char *path, long at, int what)
{
    snprintf(folder, sizeof folder, "%s", path);
    count = 0;
    fails_at = at;
    fault = what;
    failed = "";
}

long faults_count(void) { return count; }

const char *faults_name(void) { return failed; }

/* Nonzero where the call of this name is the one to change. */
static int is_changed(const char *name)
{
    if (++count != fails_at) {
        return 0;
    }
    failed = name;
    if (fault == FAULT_KILL) {
        raise(SIGKILL);
    }
    return 1;
}

static int is_inside(const char *path)
{
    size_t length = strlen(folder);
    return length != 0 && strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int of_path(int directory, const char *path)
{
    char whole[2 * PATH_MAX], base[PATH_MAX], link[64];
    if (folder[0] == 0 || path == NULL) {
        return 0;
    }
    if (path[0] == '/') {
        return is_inside(path);
    }
    if (directory == AT_FDCWD) {
        if (getcwd(base, sizeof base) == NULL) {
            return 0;
        }
    } else {
        ssize_t length;
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        length = readlink(link, base, sizeof base - 1);
        if (length < 0) {
            return 0;
        }
        base[length] = 0;
    }
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    return is_inside(whole);
}

static int of_descriptor(int descriptor)
{
    int before = errno;
    char path[PATH_MAX], link[64];
    ssize_t length;
    if (folder[0] == 0) {
        return 0;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0) {
        return 0;
    }
    path[length] = 0;
    return is_inside(path);
}

#define REAL(result, name, ...)                                                                                       \
    static result (*real)(__VA_ARGS__);                                                                               \
    if (real == NULL) {                                                                                               \
        real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);                                                       \
    }
#define FAIL_IF(inside, name)                                                                                         \
    if ((inside) && is_changed(#name) && fault > 0) {                                                                 \
        errno = fault;                                                                                                \
        return -1;                                                                                                    \
    }

#define PATH_CALL(name, parameters, arguments, path, ...)                                                             \
    int name parameters                                                                                               \
    {                                                                                                                 \
        REAL(int, name, __VA_ARGS__)                                                                                  \
        FAIL_IF(of_path(AT_FDCWD, path), name)                                                                        \
        return real arguments;                                                                                        \
    }

PATH_CALL(rename, (const char *from, const char *to), (from, to), to, const char *, const char *)
PATH_CALL(unlink, (const char *path), (path), path, const char *)
PATH_CALL(rmdir, (const char *path), (path), path, const char *)
PATH_CALL(mkdir, (const char *path, mode_t mode), (path, mode), path, const char *, mode_t)
PATH_CALL(chmod, (const char *path, mode_t mode), (path, mode), path, const char *, mode_t)
PATH_CALL(link, (const char *from, const char *to), (from, to), to, const char *, const char *)
PATH_CALL(symlink, (const char *from, const char *to), (from, to), to, const char *, const char *)
PATH_CALL(truncate, (const char *path, off_t size), (path, size), path, const char *, off_t)

int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
    REAL(int, renameat, int, const char *, int, const char *)
    FAIL_IF(of_path(to_directory, to), renameat)
    return real(from_directory, from, to_directory, to);
}

int unlinkat(int directory, const char *path, int flags)
{
    REAL(int, unlinkat, int, const char *, int)
    FAIL_IF(of_path(directory, path), unlinkat)
    return real(directory, path, flags);
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    REAL(int, mkdirat, int, const char *, mode_t)
    FAIL_IF(of_path(directory, path), mkdirat)
    return real(directory, path, mode);
}

int fchmodat(int directory, const char *path, mode_t mode, int flags)
{
    REAL(int, fchmodat, int, const char *, mode_t, int)
    FAIL_IF(of_path(directory, path), fchmodat)
    return real(directory, path, mode, flags);
}

#define DESCRIPTOR_CALL(name, parameters, arguments, ...)                                                             \
    int name parameters                                                                                               \
    {                                                                                                                 \
        REAL(int, name, __VA_ARGS__)                                                                                  \
        FAIL_IF(of_descriptor(descriptor), name)                                                                      \
        return real arguments;                                                                                        \
    }

DESCRIPTOR_CALL(fsync, (int descriptor), (descriptor), int)
DESCRIPTOR_CALL(fdatasync, (int descriptor), (descriptor), int)
DESCRIPTOR_CALL(fchmod, (int descriptor, mode_t mode), (descriptor, mode), int, mode_t)
DESCRIPTOR_CALL(ftruncate, (int descriptor, off_t size), (descriptor, size), int, off_t)
DESCRIPTOR_CALL(ftruncate64, (int descriptor, off64_t size), (descriptor, size), int, off64_t)

/* As POSIX has it, the error is returned. */
#define ALLOCATE(name, type)                                                                                          \
    int name(int descriptor, type start, type size)                                                                   \
    {                                                                                                                 \
        REAL(int, name, int, type, type)                                                                              \
        if (of_descriptor(descriptor) && is_changed(#name) && fault > 0) {                                            \
            return fault;                                                                                             \
        }                                                                                                             \
        return real(descriptor, start, size);                                                                         \
    }

ALLOCATE(posix_fallocate, off_t)
ALLOCATE(posix_fallocate64, off64_t)

/* The descriptor is closed all the same, as Linux has it. */
int close(int descriptor)
{
    REAL(int, close, int)
    if (of_descriptor(descriptor) && is_changed("close") && fault > 0) {
        real(descriptor);
        errno = fault;
        return -1;
    }
    return real(descriptor);
}

ssize_t write(int descriptor, const void *bytes, size_t size)
{
    REAL(ssize_t, write, int, const void *, size_t)
    if (of_descriptor(descriptor) && is_changed("write")) {
        if (fault > 0) {
            errno = fault;
            return -1;
        }
        if (fault == FAULT_SHORT && size > 1) {
            return real(descriptor, bytes, size / 2);
        }
    }
    return real(descriptor, bytes, size);
}

ssize_t read(int descriptor, void *bytes, size_t size)
{
    REAL(ssize_t, read, int, void *, size_t)
    if (of_descriptor(descriptor) && is_changed("read")) {
        if (fault > 0) {
            errno = fault;
            return -1;
        }
        if (fault == FAULT_SHORT && size > 1) {
            return real(descriptor, bytes, (size + 1) / 2);
        }
    }
    return real(descriptor, bytes, size);
}

#define OPEN(name, directory, parameters, arguments, ...)                                                             \
    int name parameters                                                                                               \
    {                                                                                                                 \
        REAL(int, name, __VA_ARGS__, ...)                                                                             \
        mode_t mode = 0;                                                                                              \
        if (flags & (O_CREAT | __O_TMPFILE)) {                                                                        \
            va_list rest;                                                                                             \
            va_start(rest, flags);                                                                                    \
            mode = va_arg(rest, mode_t);                                                                              \
            va_end(rest);                                                                                             \
        }                                                                                                             \
        FAIL_IF(of_path(directory, path), name)                                                                       \
        return real arguments;                                                                                        \
    }

OPEN(open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode), const char *, int)
OPEN(open64, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode), const char *, int)
OPEN(openat, directory, (int directory, const char *path, int flags, ...), (directory, path, flags, mode), int,
     const char *, int)
OPEN(openat64, directory, (int directory, const char *path, int flags, ...), (directory, path, flags, mode), int,
     const char *, int)
