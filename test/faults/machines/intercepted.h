/* For libraries that take the place of calls of the system: the call itself, and the file that it is for. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (real == NULL) real = dlsym(RTLD_NEXT, #name)

/* Of an open file, into PATH_MAX characters: 0 where it has none. Leaves errno as it was; it is called within what sets it. */
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
