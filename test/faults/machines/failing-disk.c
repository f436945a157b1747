/*
 * Loaded into a server with LD_PRELOAD: makes system calls on its store in FAILED_FOLDER fail as a
 * failing disk does. After FAILED_AFTER reads of the database, the next FAILED_READS reads fail.
 * Syncs of the WAL fail while the file FAILED_SYNCS exists.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include "intercepted.h"

static atomic_int reads;

/* Whether fd is the database or, with the suffix "-wal", its WAL. */
static int is_ours(int fd, const char *suffix) {
  char path[PATH_MAX], name[32] = "/strata.db";
  const char *folder = getenv("FAILED_FOLDER");
  if (folder == NULL || !path_of(fd, path)) return 0;
  size_t length = strlen(path), end = strlen(strcat(name, suffix));
  return length >= end && strncmp(path, folder, strlen(folder)) == 0 && strcmp(path + length - end, name) == 0;
}

static int fails(int fd) {
  if (!is_ours(fd, "")) return 0;
  int read = atomic_fetch_add(&reads, 1) - atoi(getenv("FAILED_AFTER"));
  if (read < 0 || read >= atoi(getenv("FAILED_READS"))) return 0;
  errno = EIO;
  return 1;
}

#define PREAD(name) \
  ssize_t name(int fd, void *data, size_t bytes, off_t offset) { \
    REAL(ssize_t, name, int, void *, size_t, off_t); \
    return fails(fd) ? -1 : real(fd, data, bytes, offset); \
  }
PREAD(pread)
PREAD(pread64)

ssize_t read(int fd, void *data, size_t bytes) {
  REAL(ssize_t, read, int, void *, size_t);
  return fails(fd) ? -1 : real(fd, data, bytes);
}

#define SYNC(name) \
  int name(int fd) { \
    REAL(int, name, int); \
    if (access(getenv("FAILED_SYNCS"), F_OK) != 0 || !is_ours(fd, "-wal")) return real(fd); \
    errno = EIO; \
    return -1; \
  }
SYNC(fsync)
SYNC(fdatasync)
