/* A library that stops its process when it is loaded. */
#include <signal.h>

__attribute__((constructor)) static void stop(void) { raise(SIGSTOP); }
