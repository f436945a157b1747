/* For libraries that replace system calls. REAL: the replaced call; path_of: the file of an fd. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (real == NULL) real = dlsym(RTLD_NEXT, #name)

/*
 * Writes the path of an open file, in at most PATH_MAX characters; returns 0 if it has none.
 * Restores errno, because it is called within functions that set it.
 */
static int path_of(int fd, char *path) {
  char link[64] = "/proc/self/fd/", digits[16];
  int n = 0, at = 14, kept = errno;
  if (fd < 0) return 0;
  do digits[n++] = '0' + fd % 10; while ((fd /= 10) > 0);
  while (n > 0) link[at++] = digits[--n];
  link[at] = 0;
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  errno = kept;
  if (length <= 0) return 0;
  path[length] = 0;
  return 1;
}
