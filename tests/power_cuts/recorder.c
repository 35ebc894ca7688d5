/* Records every change that a process makes to the files of one folder: preloaded, it stands before the C library.

   GAINFUL_RECORD_ROOT is the folder, GAINFUL_RECORD_LOG the file of the recording. An event is a header (struct event)
   followed by a path, a second path and data. Events of all threads and processes are in the order in which they
   happened: each holds a lock from before the call until it is recorded. fsync and fdatasync are recorded and not
   executed, which makes recording independent of the disk. What a program writes through a memory map is not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#undef open
#undef open64
#undef openat
#undef openat64
#undef pwrite
#undef pwrite64
#undef ftruncate
#undef ftruncate64

#define MOST_FDS 65536
#define LONGEST 4096

enum { OPENED = 'o', CLOSED = 'c', WRITTEN = 'w', TRUNCATED = 't', SYNCED = 's', RENAMED = 'r', REMOVED = 'u',
       FOLDER_MADE = 'm', FOLDER_REMOVED = 'd' };

struct event { uint32_t kind; int32_t pid; int32_t fd; int32_t flags; int64_t offset; uint32_t path, second, data; uint32_t pad; };

static char root[LONGEST];
static size_t root_length;
static int record = -1;
static unsigned char watched[MOST_FDS];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("GAINFUL_RECORD_ROOT"), *file = getenv("GAINFUL_RECORD_LOG");
    if (!folder || !file) return;
    snprintf(root, sizeof root, "%s/", folder);
    root_length = strlen(root);
    int (*real)(const char *, int, ...) = next("open");
    int fd = real(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    record = fcntl(fd, F_DUPFD_CLOEXEC, 1000);
    close(fd);
}

static int absolute(const char *path, char *out) {  /* whether the path lies inside the root */
    if (record < 0 || !path) return 0;
    if (path[0] == '/') {
        snprintf(out, LONGEST, "%s", path);
    } else {
        char here[LONGEST / 2];
        if (!getcwd(here, sizeof here)) return 0;
        snprintf(out, LONGEST, "%s/%s", here, path);
    }
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/') out[--n] = 0;
    return strncmp(out, root, root_length) == 0 || (n == root_length - 1 && strncmp(out, root, n) == 0);
}

static int watching(int fd) { return record >= 0 && fd >= 0 && fd < MOST_FDS && watched[fd]; }

static void lock(void) { pthread_mutex_lock(&turn); flock(record, LOCK_EX); }
static void unlock(void) { int e = errno; flock(record, LOCK_UN); pthread_mutex_unlock(&turn); errno = e; }

static void tell(int kind, int fd, int flags, int64_t offset, const char *path, const char *second,
                 const struct iovec *parts, int count, size_t length) {
    struct event e = { kind, getpid(), fd, flags, offset, path ? strlen(path) : 0, second ? strlen(second) : 0, length, 0 };
    struct iovec all[16];
    int n = 0;
    all[n++] = (struct iovec){ &e, sizeof e };
    if (path) all[n++] = (struct iovec){ (void *)path, e.path };
    if (second) all[n++] = (struct iovec){ (void *)second, e.second };
    size_t left = length;
    for (int i = 0; i < count && left && n < 16; i++) {
        size_t size = parts[i].iov_len < left ? parts[i].iov_len : left;
        all[n++] = (struct iovec){ parts[i].iov_base, size };
        left -= size;
    }
    int saved = errno;
    ssize_t (*real)(int, const struct iovec *, int) = next("writev");
    ssize_t wanted = sizeof e + e.path + e.second + length;
    if (left || real(record, all, n) != wanted) {
        static const char words[] = "the recording of file changes cannot be written\n";
        ssize_t (*say)(int, const void *, size_t) = next("write");
        if (say(2, words, sizeof words - 1)) {}
        _exit(70);
    }
    errno = saved;
}

static void opened(int fd, const char *path, int flags, int existed) {
    if (fd < 0 || fd >= MOST_FDS) return;
    watched[fd] = 1;
    tell(OPENED, fd, flags, existed, path, NULL, NULL, 0, 0);
}

#define OPEN(NAME)                                                            \
    int NAME(const char *path, int flags, ...) {                              \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        int (*real)(const char *, int, ...) = next(#NAME);                    \
        char full[LONGEST];                                                   \
        if (!absolute(path, full)) return real(path, flags, mode);            \
        lock();                                                               \
        struct stat found;                                                    \
        int existed = stat(full, &found) == 0;                                \
        int fd = real(path, flags, mode);                                     \
        opened(fd, full, flags, existed);                                     \
        unlock();                                                             \
        return fd;                                                            \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(NAME)                                                          \
    int NAME(int folder, const char *path, int flags, ...) {                  \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        int (*real)(int, const char *, int, ...) = next(#NAME);               \
        char full[LONGEST];                                                   \
        if (folder != AT_FDCWD || !absolute(path, full)) return real(folder, path, flags, mode); \
        lock();                                                               \
        struct stat found;                                                    \
        int existed = stat(full, &found) == 0;                                \
        int fd = real(folder, path, flags, mode);                             \
        opened(fd, full, flags, existed);                                     \
        unlock();                                                             \
        return fd;                                                            \
    }
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    int (*real)(int) = next("close");
    if (!watching(fd)) return real(fd);
    lock();
    int done = real(fd);
    watched[fd] = 0;
    tell(CLOSED, fd, 0, 0, NULL, NULL, NULL, 0, 0);
    unlock();
    return done;
}

ssize_t write(int fd, const void *data, size_t size) {
    ssize_t (*real)(int, const void *, size_t) = next("write");
    if (!watching(fd)) return real(fd, data, size);
    lock();
    ssize_t done = real(fd, data, size);
    struct iovec one = { (void *)data, size };
    if (done > 0) tell(WRITTEN, fd, 0, lseek(fd, 0, SEEK_CUR) - done, NULL, NULL, &one, 1, done);
    unlock();
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    ssize_t (*real)(int, const struct iovec *, int) = next("writev");
    if (!watching(fd)) return real(fd, parts, count);
    lock();
    ssize_t done = real(fd, parts, count);
    if (done > 0) tell(WRITTEN, fd, 0, lseek(fd, 0, SEEK_CUR) - done, NULL, NULL, parts, count, done);
    unlock();
    return done;
}

#define PWRITE(NAME, OFFSET)                                                  \
    ssize_t NAME(int fd, const void *data, size_t size, OFFSET at) {          \
        ssize_t (*real)(int, const void *, size_t, OFFSET) = next(#NAME);     \
        if (!watching(fd)) return real(fd, data, size, at);                   \
        lock();                                                               \
        ssize_t done = real(fd, data, size, at);                              \
        struct iovec one = { (void *)data, size };                            \
        if (done > 0) tell(WRITTEN, fd, 0, at, NULL, NULL, &one, 1, done);    \
        unlock();                                                             \
        return done;                                                          \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define FTRUNCATE(NAME, OFFSET)                                               \
    int NAME(int fd, OFFSET length) {                                         \
        int (*real)(int, OFFSET) = next(#NAME);                               \
        if (!watching(fd)) return real(fd, length);                           \
        lock();                                                               \
        int done = real(fd, length);                                          \
        if (!done) tell(TRUNCATED, fd, 0, length, NULL, NULL, NULL, 0, 0);    \
        unlock();                                                             \
        return done;                                                          \
    }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

#define SYNC(NAME)                                                            \
    int NAME(int fd) {                                                        \
        int (*real)(int) = next(#NAME);                                       \
        if (!watching(fd)) return real(fd);                                   \
        lock();                                                               \
        tell(SYNCED, fd, 0, 0, NULL, NULL, NULL, 0, 0);                       \
        unlock();                                                             \
        return 0;                                                             \
    }
SYNC(fsync)
SYNC(fdatasync)

static int named(int kind, int done, const char *path, const char *second) {
    if (!done) tell(kind, -1, 0, 0, path, second, NULL, 0, 0);
    unlock();
    return done;
}

int rename(const char *from, const char *to) {
    int (*real)(const char *, const char *) = next("rename");
    char a[LONGEST], b[LONGEST];
    if (!absolute(from, a) || !absolute(to, b)) return real(from, to);
    lock();
    return named(RENAMED, real(from, to), a, b);
}

#define BY_NAME(NAME, KIND)                                                   \
    int NAME(const char *path) {                                              \
        int (*real)(const char *) = next(#NAME);                              \
        char full[LONGEST];                                                   \
        if (!absolute(path, full)) return real(path);                         \
        lock();                                                               \
        return named(KIND, real(path), full, NULL);                           \
    }
BY_NAME(unlink, REMOVED)
BY_NAME(rmdir, FOLDER_REMOVED)

int mkdir(const char *path, mode_t mode) {
    int (*real)(const char *, mode_t) = next("mkdir");
    char full[LONGEST];
    if (!absolute(path, full)) return real(path, mode);
    lock();
    return named(FOLDER_MADE, real(path, mode), full, NULL);
}
