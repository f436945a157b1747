/*
 * Loaded into a server with LD_PRELOAD: records, in order, what the server does to the files of its
 * store, and when it synchronises them. From this the test makes the folders that a loss of power
 * may leave. A record is a header, the path and the bytes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include "intercepted.h"

enum { WRITE = 1, TRUNCATE = 2, SYNC = 3, UNLINK = 4 };

struct record {
  uint64_t ns, offset;
  uint32_t kind, path_bytes, data_bytes, unused;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int journal = -1;

static int is_ours(const char *path) {
  const char *folder = getenv("POWER_FOLDER");
  if (folder == NULL || strncmp(path, folder, strlen(folder)) != 0) return 0;
  size_t length = strlen(path);
  /* SQLite makes the shared memory of the WAL anew when it opens the database. */
  return !(length > 4 && strcmp(path + length - 4, "-shm") == 0);
}

static int our_path_of(int fd, char *path) {
  return path_of(fd, path) && is_ours(path);
}

static void note(uint32_t kind, const char *path, uint64_t offset, const void *data, size_t bytes) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  struct record record = {(uint64_t)now.tv_sec * 1000000000u + now.tv_nsec, offset, kind, strlen(path), bytes, 0};
  struct iovec parts[3] = {{&record, sizeof record}, {(void *)path, record.path_bytes}, {(void *)data, bytes}};
  pthread_mutex_lock(&lock);
  if (journal < 0) journal = open(getenv("POWER_JOURNAL"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (writev(journal, parts, 3) < 0) abort();
  pthread_mutex_unlock(&lock);
}

ssize_t write(int fd, const void *data, size_t bytes) {
  REAL(ssize_t, write, int, const void *, size_t);
  char path[PATH_MAX];
  if (!our_path_of(fd, path)) return real(fd, data, bytes);
  off_t offset = lseek(fd, 0, SEEK_CUR);
  ssize_t done = real(fd, data, bytes);
  if (done > 0) note(WRITE, path, offset, data, done);
  return done;
}

#define PWRITE(name) \
  ssize_t name(int fd, const void *data, size_t bytes, off_t offset) { \
    REAL(ssize_t, name, int, const void *, size_t, off_t); \
    char path[PATH_MAX]; \
    ssize_t done = real(fd, data, bytes, offset); \
    if (done > 0 && our_path_of(fd, path)) note(WRITE, path, offset, data, done); \
    return done; \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

#define TRUNC(name) \
  int name(int fd, off_t length) { \
    REAL(int, name, int, off_t); \
    char path[PATH_MAX]; \
    int failed = real(fd, length); \
    if (failed == 0 && our_path_of(fd, path)) note(TRUNCATE, path, length, "", 0); \
    return failed; \
  }
TRUNC(ftruncate)
TRUNC(ftruncate64)

/* Recorded after it has succeeded, because until then the disk guarantees nothing. */
#define SYNCS(name) \
  int name(int fd) { \
    REAL(int, name, int); \
    char path[PATH_MAX]; \
    int failed = real(fd); \
    if (failed == 0 && our_path_of(fd, path)) note(SYNC, path, 0, "", 0); \
    return failed; \
  }
SYNCS(fsync)
SYNCS(fdatasync)

int unlink(const char *path) {
  REAL(int, unlink, const char *);
  int failed = real(path);
  if (failed == 0 && is_ours(path)) note(UNLINK, path, 0, "", 0);
  return failed;
}
